"""Filters and signatures."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from services.poller.errors import StepRefusedError
from services.poller.fetch.ethereum_event import EventSignature
from services.poller.fetch.ethereum_filter import LogFilter, parsed_filter

A, B = "ab" * 20, "cd" * 20
T, U = "01" * 32, "02" * 32
TRANSFER = "Transfer(address indexed from, address indexed to, uint256 value)"
TRANSFER_TOPIC = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")


def hexed(*texts: str) -> tuple[bytes, ...]:
    return tuple(map(bytes.fromhex, texts))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, LogFilter()),
        ("  ", LogFilter()),
        (f"address = X'{A}'", LogFilter(addresses=hexed(A))),
        (f"ADDRESS = x'{A.upper()}'", LogFilter(addresses=hexed(A))),
        (f"address = '0x{A}'", LogFilter(addresses=hexed(A))),
        (f"address in (X'{A}', X'{B}')", LogFilter(addresses=hexed(A, B))),
        (f"address in (X'{A}', X'{B}') and address = X'{B}'", LogFilter(addresses=hexed(B))),
        (f"topic0 = X'{T}' and topic2 = X'{U}'", LogFilter(topics=(hexed(T), (), hexed(U), ()))),
        ("block_number > 5", LogFilter(first_block=6)),
        ("block_number >= 5 and (block_number < 10)", LogFilter(first_block=5, last_block=9)),
        ("block_number = 7", LogFilter(first_block=7, last_block=7)),
        (
            f"address = X'{A}'\n and (topic0 = X'{T}' and block_number <= 9)",
            LogFilter(addresses=hexed(A), topics=(hexed(T), (), (), ()), last_block=9),
        ),
    ],
)
def test_filters(text: str | None, expected: LogFilter) -> None:
    assert parsed_filter(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "address",
        "address = 5",
        "address = X'ab'",
        "address = X'zz'",
        "address = '0xzz'",
        "address = address",
        f"address != X'{A}'",
        f"address = X'{A}' or topic0 = X'{T}'",
        f"not address = X'{A}'",
        f"address not in (X'{A}')",
        f"logs.address = X'{A}'",
        f"data = X'{A}'",
        f"topic4 = X'{T}'",
        f"topic0 = X'{A}'",
        "topic1 is null",
        "block_number > 'a'",
        "block_number > -1",
        "block_number > 1.5",
        "block_number between 1 and 2",
        "block_number > 5 and block_number < 5",
        f"address = X'{A}' and address = X'{B}'",
        "address in (select 1)",
        "drop table logs",
        "1 = 1",
        "(",
        "address = X'",
        f"address = X'{A}'; select 1",
        "(" * 2000,
        "block_number > 1 and " * 2000 + "block_number >",
    ],
)
def test_filters_that_are_not_understood_are_refused(text: str) -> None:
    with pytest.raises(StepRefusedError, match="filter"):
        parsed_filter(text)


@given(st.text())
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    with suppress(StepRefusedError):
        parsed_filter(text)


def test_what_a_node_is_asked() -> None:
    chosen = parsed_filter(f"address = X'{A}' and topic1 in (X'{T}', X'{U}')")
    assert chosen.of_event(b"\x09" * 32).to_query(10, 31) == {
        "fromBlock": "0xa",
        "toBlock": "0x1f",
        "address": [f"0x{A}"],
        "topics": [["0x" + "09" * 32], [f"0x{T}", f"0x{U}"]],
    }
    assert LogFilter().to_query(0, 0) == {"fromBlock": "0x0", "toBlock": "0x0"}


def test_a_filter_and_a_signature_that_exclude_each_other() -> None:
    with pytest.raises(StepRefusedError, match="topic0 of the filter is not that of the signature"):
        parsed_filter(f"topic0 = X'{T}'").of_event(TRANSFER_TOPIC)
    assert parsed_filter(f"topic0 = X'{TRANSFER_TOPIC.hex()}'").of_event(TRANSFER_TOPIC).topics[0] == (TRANSFER_TOPIC,)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (TRANSFER, "Transfer(address,address,uint256)"),
        (f" event {TRANSFER};", "Transfer(address,address,uint256)"),
        ("E()", "E()"),
        ("E(uint,int a)", "E(uint256,int256)"),
        ("E((uint a, string b)[] x, bytes32[2] indexed y)", "E((uint256,string)[],bytes32[2])"),
        ("E(tuple(address a, (bool b) c) x)", "E((address,(bool)))"),
        ("E(address indexed)", "E(address)"),
    ],
)
def test_signatures(text: str, canonical: str) -> None:
    assert EventSignature.parse(text).canonical == canonical


def test_the_topic_is_the_one_that_everybody_knows() -> None:
    assert EventSignature.parse(TRANSFER).topic == TRANSFER_TOPIC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Transfer",
        "E(uint256 a",
        "E(uint257 a)",
        "E(foo a)",
        "E(uint a, uint a)",
        "E(uint a b c)",
        "E(uint a,)",
        "E((uint a)",
        "E(uint a))(",
        "E(bytes33 a)",
        "E(uint a) E(uint b)",
        "E(uint indexed a, uint indexed b, uint indexed c, uint indexed d)",
        "E(" + "(" * 40 + "uint a" + ")" * 40 + ")",
        "E(" + "uint a, " * 5000 + ")",
    ],
)
def test_signatures_that_are_not_understood_are_refused(text: str) -> None:
    with pytest.raises(StepRefusedError, match="signature"):
        EventSignature.parse(text)


@given(st.text(alphabet="E(),[] uintaddres256bytx indexed", max_size=60))
def test_any_text_is_a_signature_or_refused(text: str) -> None:
    with suppress(StepRefusedError):
        EventSignature.parse(f"E({text})").arrow_type  # noqa: B018 - it must have one


def padded(address: str) -> bytes:
    return bytes(12) + bytes.fromhex(address)


def test_a_log_is_decoded() -> None:
    event = EventSignature.parse(TRANSFER)
    value = 2**255 + 1
    found = event.decoded([event.topic, padded(A), padded(B)], encode(["uint256"], [value]))
    assert found == {"from": bytes.fromhex(A), "to": bytes.fromhex(B), "value": str(value)}


def test_values_of_all_kinds() -> None:
    event = EventSignature.parse(
        "E(uint8 small, int64 signed, uint64 large, bool flag, string text, bytes raw, bytes4 four, "
        "(address who, uint256[] many) pair, (bool a)[2] both, string indexed hashed)"
    )
    types = [each.type for each in event.parameters if not each.is_indexed]
    values = (
        255,
        -(2**63),
        2**64 - 1,
        True,
        "käse",
        b"\x00\x01",
        b"abcd",
        (f"0x{A}", [1, 2**200]),
        [(True,), (False,)],
    )
    found = event.decoded([event.topic, b"\x07" * 32], encode(types, values))
    assert found == {
        "small": 255,
        "signed": -(2**63),
        "large": str(2**64 - 1),
        "flag": True,
        "text": "käse",
        "raw": b"\x00\x01",
        "four": b"abcd",
        "pair": {"who": bytes.fromhex(A), "many": ["1", str(2**200)]},
        "both": [{"a": True}, {"a": False}],
        "hashed": b"\x07" * 32,
    }
    assert pa.array([found, None], event.arrow_type).to_pylist() == [found, None]


@pytest.mark.parametrize(
    ("topics", "data"),
    [
        ([TRANSFER_TOPIC, padded(A), padded(B), bytes(32)], b""),  # an NFT: the same topic 0
        ([TRANSFER_TOPIC, padded(A), padded(B)], b""),
        ([TRANSFER_TOPIC, padded(A), padded(B)], b"\x01"),
        ([TRANSFER_TOPIC, b"\xff" * 32, padded(B)], bytes(32)),
        ([bytes(32), padded(A), padded(B)], bytes(32)),
        ([], b""),
    ],
)
def test_a_log_of_another_event_has_no_values(topics: list[bytes], data: bytes) -> None:
    assert EventSignature.parse(TRANSFER).decoded(topics, data) is None


@given(st.binary(max_size=300))
def test_any_data_is_decoded_or_not(data: bytes) -> None:
    event = EventSignature.parse("E(string a, (uint8 b, bytes[] c)[] d, bool e, int24 f)")
    found: Any = event.decoded([event.topic], data)
    pa.array([found], event.arrow_type)
