"""Which logs are meant: conditions in SQL's words, joined by AND, that a node can answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from services.poller.errors import StepRefusedError

_ADDRESS_SIZE = 20
_TOPIC_SIZE = 32
_TOPICS = 4
_HINT = (
    "conditions are `address = X'…'`, `topic0 = X'…'` to `topic3 = X'…'` (also with IN) and `block_number >= 1` "
    "(also >, <, <=, =), joined by AND"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """What a node is asked for. Empty means any."""

    addresses: tuple[bytes, ...] = ()
    topics: tuple[tuple[bytes, ...], ...] = ((),) * _TOPICS
    first_block: int = 0
    last_block: int | None = None

    def of_event(self, topic: bytes) -> LogFilter:
        """The filter for one event only."""
        if self.topics[0] and topic not in self.topics[0]:
            raise StepRefusedError("topic0 of the filter is not that of the signature: no log could match both")
        return replace(self, topics=((topic,), *self.topics[1:]))

    def to_query(self, start: int, end: int) -> dict[str, Any]:
        """The parameter of eth_getLogs."""
        query: dict[str, Any] = {"fromBlock": hex(start), "toBlock": hex(end)}
        if self.addresses:
            query["address"] = [f"0x{each.hex()}" for each in self.addresses]
        topics: list[list[str] | None] = [[f"0x{each.hex()}" for each in choice] or None for choice in self.topics]
        while topics and topics[-1] is None:
            topics.pop()
        if topics:
            query["topics"] = topics
        return query


def parsed_filter(text: str | None) -> LogFilter:
    """The filter in a text; StepRefusedError for anything in it that is not understood."""
    found = LogFilter()
    if text is None or not text.strip():
        return found
    for condition in _conditions(text):
        found = _with(found, condition)
    if found.last_block is not None and found.last_block < found.first_block:
        raise StepRefusedError("no block number fits the filter")
    return found


def _conditions(text: str) -> Iterator[Any]:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(text, into=exp.Condition, dialect="sqlite")
    except (SqlglotError, RecursionError) as error:
        raise StepRefusedError(f"the filter cannot be read: {str(error).splitlines()[0]}; {_HINT}") from error
    waiting = [parsed]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            yield node


def _with(found: LogFilter, condition: Any) -> LogFilter:
    """The filter with one more condition."""
    from sqlglot import exp

    name = _column(condition)
    if name == "block_number":
        return _with_blocks(found, condition)
    if isinstance(condition, exp.EQ):
        values = [condition.expression]
    elif isinstance(condition, exp.In) and condition.expressions:
        values = condition.expressions
    else:
        raise _not_understood(condition)
    if name == "address":
        return replace(found, addresses=_both(found.addresses, _bytes(values, _ADDRESS_SIZE), name))
    if name in {f"topic{number}" for number in range(_TOPICS)}:
        number = int(name[-1])
        topics = list(found.topics)
        topics[number] = _both(topics[number], _bytes(values, _TOPIC_SIZE), name)
        return replace(found, topics=tuple(topics))
    raise _not_understood(condition)


def _column(condition: Any) -> str:
    from sqlglot import exp

    column = condition.this if isinstance(condition, exp.Binary | exp.In) else None
    if not isinstance(column, exp.Column) or column.table:
        raise _not_understood(condition)
    return column.name.lower()


def _both(before: tuple[bytes, ...], values: tuple[bytes, ...], name: str) -> tuple[bytes, ...]:
    if not before:
        return values
    common = tuple(value for value in values if value in before)
    if not common:
        raise StepRefusedError(f"no {name} fits the filter: two conditions exclude each other")
    return common


def _bytes(values: list[Any], size: int) -> tuple[bytes, ...]:
    from sqlglot import exp

    found = []
    for value in values:
        is_text = isinstance(value, exp.Literal) and value.is_string and value.name[:2].lower() == "0x"
        if isinstance(value, exp.HexString):
            digits = _hex_digits(value)
        elif is_text:
            digits = value.name[2:]
        else:
            raise _not_understood(value)
        try:
            data = bytes.fromhex(digits)
        except ValueError as error:
            raise StepRefusedError(f"{digits[:80]!r} in the filter is not hexadecimal") from error
        if len(data) != size:
            raise StepRefusedError(f"{digits[:80]!r} in the filter has {len(data)} bytes, not {size}")
        found.append(data)
    return tuple(found)


def _hex_digits(value: Any) -> str:
    return str(value.this)


def _with_blocks(found: LogFilter, condition: Any) -> LogFilter:
    from sqlglot import exp

    value = condition.expression if isinstance(condition, exp.Binary) else None
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdecimal():
        raise _not_understood(condition)
    number = int(value.name)
    first, last = found.first_block, found.last_block
    match condition:
        case exp.GT():
            first = max(first, number + 1)
        case exp.GTE():
            first = max(first, number)
        case exp.LT():
            last = number - 1 if last is None else min(last, number - 1)
        case exp.LTE():
            last = number if last is None else min(last, number)
        case exp.EQ():
            first, last = max(first, number), number if last is None else min(last, number)
        case _:
            raise _not_understood(condition)
    return replace(found, first_block=first, last_block=last)


def _not_understood(condition: Any) -> StepRefusedError:
    return StepRefusedError(f"`{condition.sql(dialect='sqlite')[:200]}` in the filter is not understood: {_HINT}")
