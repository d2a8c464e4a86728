"""Texts that are hard to write and read, and values made of them."""

from __future__ import annotations

from hypothesis import strategies as st

from odf_common.text.document import JsonValue

_WORDS = """
~ null Null NULL true True TRUE false False yes Yes no NO on off y Y n N
0 -0 +1 007 0o17 0x1f 0b11 1_000 12:30:45 190:20:30 1. .5 -.5e-3 1e5 1E+5 6.02e23 .inf -.INF .nan NaN
= << - -- --- ... . .. + -. ? : :: # ! & * | > % @ ` ' " \\ [ ] { } , [] {} !! &a *a !a %a @a `a a,b it's "a" \\u0041
2020-01-01 2020-01-01T12:00:00Z 2020-13-45 12:30 -1x 0xg 1e 9999999999999999999999999999999999999999999
"""

LOOK_ALIKES = (
    "",
    *_WORDS.split(),
    *("a: b", "a :b", "a #b", "- a", "? a", " a", "a ", "a\tb", "\ta"),
    *("a\nb", "a\nb\n", "a\n\n", "\na", "\n", "a\n\tb", "a\n  b\n", " a\nb", "a \nb", "a\n---\nb", "a\n# b", "a\r\nb"),
    *("\0", "\x7f", "\x85", "\xa0", "\u2028", "a\u2029b", "\ufeff", "\ufffe", "\uffff", "😀", "é😀", "\U0010ffff"),
)
"""Texts that some version of YAML could take for something else."""

hard_texts = (
    st.sampled_from(LOOK_ALIKES)
    | st.text(alphabet=" \t\n\r-#:?'\"|>&*!%@`{}[],a0=~\\\0\x7f\x85\u2028\u2029\ufeff\ufffe😀é.", max_size=8)
    | st.text(max_size=20)
)

scalars: st.SearchStrategy[JsonValue] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | hard_texts
)


def _containers(children: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    return st.lists(children, max_size=4) | st.dictionaries(hard_texts, children, max_size=4)


json_values: st.SearchStrategy[JsonValue] = st.recursive(scalars, _containers, max_leaves=12)
"""Anything that JSON can say."""
