"""The grammar of dataset references, against an independent transcription of the specification's."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from odf_common.errors import InvalidTextError
from odf_common.identity.did import DatasetId
from odf_common.identity.references import (
    AccountName,
    DatasetAlias,
    DatasetAliasRemote,
    DatasetIdRemote,
    DatasetName,
    DatasetRefAny,
    DatasetUrl,
    Name,
    RepoName,
    parse_ref,
    parse_ref_any,
    parse_ref_remote,
)
from odf_common.text_value import TextValue
from tests.strategies import examples

ID = "did:odf:fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6"

# The ABNF of the specification, rule by rule.
SUBDOMAIN = "[a-zA-Z0-9]+(-[a-zA-Z0-9]+)*"
HOSTNAME = rf"{SUBDOMAIN}(\.{SUBDOMAIN})*"
ALIAS = f"({HOSTNAME}/)?{HOSTNAME}"
ALIAS_REMOTE = f"{HOSTNAME}/({HOSTNAME}/)?{HOSTNAME}"
SCHEME = r"[a-zA-Z0-9]+(\+[a-zA-Z0-9]+)*"
URL = f"{SCHEME}://[!-~]+"

_PIECES = st.sampled_from(["a", "Z", "09", "b-c", "x.y", "-", ".", "/", "+", "://", ":", "_", "\u00e9", " ", "~"])
HARD_TEXTS = st.lists(_PIECES, max_size=8).map("".join) | st.text("a0-./", max_size=8) | st.text(max_size=10)


def problem_of(parse: Callable[[str], object], text: str) -> InvalidTextError | None:
    try:
        parse(text)
    except InvalidTextError as error:
        return error
    return None


# ---- The grammar


@pytest.mark.parametrize(
    ("parse", "grammar"),
    [
        (DatasetName.parse, HOSTNAME),
        (AccountName.parse, HOSTNAME),
        (RepoName.parse, HOSTNAME),
        (DatasetAlias.parse, ALIAS),
        (DatasetAliasRemote.parse, ALIAS_REMOTE),
        (DatasetUrl.parse, URL),
        (parse_ref, ALIAS),
        (parse_ref_remote, f"{ALIAS_REMOTE}|{URL}"),
        (parse_ref_any, f"{ALIAS}|{ALIAS_REMOTE}|{URL}"),
    ],
)
@examples(200)
@given(HARD_TEXTS)
def test_a_text_is_read_exactly_when_the_grammar_has_it(
    parse: Callable[[str], TextValue], grammar: str, text: str
) -> None:
    problem = problem_of(parse, text)
    assert (problem is None) == bool(re.fullmatch(grammar, text))
    if problem is None:
        assert str(parse(text)) == text
    else:
        assert problem.text == text
        assert 0 <= problem.position <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        *("property.parcel-polygons", "statcan.gc.ca/census.2016.population", "data.gov/ny-newyork/public-safety.ems"),
        *("https://opendata.ca/odf/x/", "0", "A-1.b-2", "s3+http://bucket/x", ID, f"data.gov/{ID}"),
    ],
)
def test_the_examples_of_the_specification_are_read(text: str) -> None:
    assert str(parse_ref_any(text)) == text


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (".invalid", 0),
        ("invalid-", 7),
        ("in^valid", 2),
        ("invalid_id", 7),
        ("a/b/c", 3),
        ("foo:bar", 3),
        ("", 0),
        ("a..b", 2),
        ("a--b", 2),
        ("a.-b", 2),
        ("a b", 1),
        ("a\0", 1),
        ("a\n", 1),
        ("é", 0),
        ("a\u0431", 1),
        ("a\u0660", 1),
        ("\uff41", 0),
        ("../x", 0),
        ("./x", 0),
        ("x/..", 2),
        ("x/../y", 4),
        ("a//b", 2),
        ("/a", 0),
        ("a/", 2),
        ("account/in valid", 10),
        ("~/x", 0),
        ("C:\\x", 1),
        ("%2e%2e/x", 0),
    ],
)
def test_a_local_alias_is_refused_where_it_leaves_the_grammar(text: str, position: int) -> None:
    problem = problem_of(DatasetAlias.parse, text)
    assert problem is not None
    assert problem.position == position
    assert problem.text == text


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a", 1),
        ("a/b/c/d", 5),
        ("a/b_/c", 3),
        ("a//c", 2),
        ("_/b", 0),
        (f"re_po/{ID}", 2),
        (f"repo/{ID}x", 5 + len(ID)),
        ("repo/did:odf:xed01", 13),
        ("+http://a", 0),
        ("a++b://c", 2),
        ("a+://b", 2),
        ("x/y://z", 1),
        ("https://", 8),
        ("https://a b", 9),
        ("https://é", 8),
        ("https://a\n", 9),
    ],
)
def test_a_remote_reference_is_refused_where_it_leaves_the_grammar(text: str, position: int) -> None:
    problem = problem_of(parse_ref_remote, text)
    assert problem is not None
    assert problem.position == position
    assert problem.text == text


@pytest.mark.parametrize("parse", [parse_ref, parse_ref_remote, parse_ref_any])
@pytest.mark.parametrize("text", ["did:odf:", "did:odf:f", "did:odf:name", f"{ID}00", ID[:-1], f"{ID}/x", "did:odf:z0"])
def test_what_begins_like_an_id_is_never_an_alias(parse: Callable[[str], DatasetRefAny], text: str) -> None:
    problem = problem_of(parse, text)
    assert problem is not None
    assert problem.position >= len("did:odf:")


def test_a_remote_id_needs_a_repository() -> None:
    problem = problem_of(DatasetIdRemote.parse, "repo")
    assert problem is not None
    assert (problem.position, problem.reason) == (4, "expected repository/did:odf:…, found no '/'")


# ---- Length


def test_a_name_has_at_most_253_characters() -> None:
    assert str(DatasetName.parse("a" * 253)) == "a" * 253
    for text, position in [("a" * 254, 253), ("a" * 300, 253), ("a/" + "b" * 300, 255)]:
        problem = problem_of(DatasetAlias.parse, text)
        assert problem is not None
        assert problem.position == position


def test_a_url_has_at_most_2048_characters() -> None:
    url = "https://" + "x" * 2040
    assert str(DatasetUrl.parse(url)) == url
    assert problem_of(DatasetUrl.parse, url + "x") is not None


@pytest.mark.parametrize("text", ["a" * 10_000_000, "a-" * 5_000_000, "/" * 10_000_000, "a+" * 5_000_000 + "://"])
def test_a_hostile_length_costs_nothing_and_is_not_repeated_in_the_message(text: str) -> None:
    problem = problem_of(parse_ref_any, text)
    assert problem is not None
    assert len(str(problem)) < 300


# ---- What kind of reference it is


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (ID, DatasetId),
        ("name", DatasetAlias),
        ("account/name", DatasetAlias),
        ("repo/account/name", DatasetAliasRemote),
        (f"repo/{ID}", DatasetIdRemote),
        ("https://opendata.ca/odf/x/", DatasetUrl),
        (f"https://opendata.ca/{ID}", DatasetUrl),
        ("ipfs+http://x", DatasetUrl),
    ],
)
def test_any_reference_is_recognised_by_its_form(text: str, kind: type) -> None:
    assert type(parse_ref_any(text)) is kind


@pytest.mark.parametrize("known", [[RepoName("kamu")], {RepoName("other"), RepoName("KAMU")}, (RepoName("Kamu"),)])
def test_two_names_are_remote_when_the_first_is_a_known_repository(known: list[RepoName]) -> None:
    assert parse_ref_any("kamu/covid", known_repos=known) == DatasetAliasRemote(
        RepoName("kamu"), None, DatasetName("covid")
    )


def test_two_names_are_an_account_and_a_dataset_otherwise() -> None:
    local = DatasetAlias(AccountName("kamu"), DatasetName("covid"))
    assert parse_ref_any("kamu/covid") == local
    assert parse_ref_any("kamu/covid", known_repos=[RepoName("covid"), RepoName("kam")]) == local
    assert parse_ref("kamu/covid") == local


def test_two_names_are_always_remote_where_only_remote_ones_are_asked_for() -> None:
    assert parse_ref_remote("kamu/covid") == DatasetAliasRemote(RepoName("kamu"), None, DatasetName("covid"))
    assert type(parse_ref_remote(ID)) is DatasetId


def test_a_single_name_is_local_even_if_a_repository_has_it() -> None:
    assert type(parse_ref_any("kamu", known_repos=[RepoName("kamu")])) is DatasetAlias


def test_three_names_are_no_local_reference() -> None:
    with pytest.raises(InvalidTextError, match="more than 2 names"):
        parse_ref("repo/account/name")


# ---- Case


@given(st.lists(st.sampled_from(["a", "Bc", "0", "d-e"]), min_size=1, max_size=5).map(".".join))
def test_names_are_equal_whatever_their_case_and_keep_their_spelling(text: str) -> None:
    shouted = DatasetName.parse(text.upper())
    whispered = DatasetName.parse(text.lower())
    assert shouted == whispered
    assert hash(shouted) == hash(whispered)
    assert not shouted < whispered
    assert shouted <= whispered
    assert str(shouted) == text.upper()


def test_aliases_are_equal_whatever_their_case() -> None:
    assert DatasetAlias.parse("Kamu/Covid") == DatasetAlias.parse("kamu/COVID")
    assert len({DatasetAlias.parse(text) for text in ("A/b", "a/B", "a/b", "b", "B")}) == 2
    assert DatasetAliasRemote.parse("A/b/c") == DatasetAliasRemote.parse("a/B/C")
    assert DatasetIdRemote.parse(f"A/{ID}") == DatasetIdRemote.parse(f"a/{ID}")


def test_names_sort_without_case() -> None:
    names = [DatasetName(text) for text in ("Zebra", "apple", "Banana", "cherry")]
    assert [str(name) for name in sorted(names)] == ["apple", "Banana", "cherry", "Zebra"]


def test_aliases_sort_by_account_and_name_and_those_without_account_come_first() -> None:
    texts = ["Apple", "zebra", "a/X", "A/y", "B/a", "b-c/a", "b.c/a"]
    aliases = [DatasetAlias.parse(text) for text in texts]
    random.Random(0).shuffle(aliases)
    assert [str(alias) for alias in sorted(aliases)] == texts


def test_names_do_not_compare_with_texts() -> None:
    assert DatasetName("a") != "a"
    with pytest.raises(TypeError):
        sorted([DatasetName("a"), "b"])  # type: ignore[type-var]
    with pytest.raises(TypeError):
        sorted([DatasetAlias.parse("a"), "b"])  # type: ignore[type-var]


# ---- In models


class Holder(BaseModel):
    alias: DatasetAlias
    name: Name | None = None


def test_models_hold_references_as_text() -> None:
    holder = Holder.model_validate({"alias": "account/name", "name": "x"})
    assert holder.alias.account == AccountName("account")
    assert holder.model_dump(mode="json") == {"alias": "account/name", "name": "x"}
