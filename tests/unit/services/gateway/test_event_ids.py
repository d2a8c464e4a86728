from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.repository.repository import Repository
from services.gateway.errors import RequestError
from services.gateway.event_ids import EventId, event_id_of
from tests.unit.services.gateway.builders import NDJSON, FakeProducer, a_dataset, a_gateway, post, status_of_raw

KEYS = st.text("a#1", min_size=1, max_size=8)


async def sent_headers(repository: Repository, headers: dict[str, str], content: bytes = b"{}") -> list[dict[str, str]]:
    a_dataset(repository)
    producer = FakeProducer()
    answer = await post(repository, content=content, headers=NDJSON | headers, producer=producer)
    assert answer.status_code == 202
    return producer.headers


@pytest.mark.anyio
async def test_a_key_becomes_an_event_id(repository: Repository) -> None:
    assert await sent_headers(repository, {"Idempotency-Key": "k 1"}) == [{"ce_id": "k 1", "ce_source": "/gateway"}]


@pytest.mark.anyio
async def test_each_piece_of_a_payload_has_an_id(repository: Repository) -> None:
    headers = await sent_headers(repository, {"Idempotency-Key": "k"}, b'{"a":1}\n' * 50_000)
    assert [each["ce_id"] for each in headers] == ["k#0", "k#1"]


@pytest.mark.anyio
async def test_a_cloud_event_brings_its_own(repository: Repository) -> None:
    headers = {"ce-id": "caf%C3%A9", "ce-source": "/mine", "ce-type": "t", "ce-specversion": "1.0"}
    assert await sent_headers(repository, headers) == [{"ce_id": "café", "ce_source": "/mine"}]


@pytest.mark.anyio
async def test_without_an_id_nothing_is_said(repository: Repository) -> None:
    assert await sent_headers(repository, {}) == [{}]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "headers",
    [
        {"idempotency-key": ""},
        {"idempotency-key": " "},
        {"idempotency-key": "k" * 256},
        {"idempotency-key": "a\x00b"},
        {"idempotency-key": "a\nb"},
        {"idempotency-key": "a\x7f"},
        {"idempotency-key": "\x85"},
        {"idempotency-key": "k", "ce-id": "i", "ce-source": "s"},
        {"ce-id": "i"},
        {"ce-source": "s"},
        {"ce-id": "i", "ce-source": ""},
        {"ce-id": "a%00", "ce-source": "s"},
        {"ce-id": "%ff", "ce-source": "s"},
        {"ce-id": "i", "ce-source": "a%0d%0ab"},
    ],
)
async def test_what_cannot_be_an_id_is_400(repository: Repository, headers: dict[str, str]) -> None:
    a_dataset(repository)
    producer = FakeProducer()
    async with a_gateway(repository, producer) as gateway:
        assert await status_of_raw(gateway, NDJSON | headers, b"{}") == 400
    assert producer.sent == []


def test_a_problem_names_the_header() -> None:
    with pytest.raises(RequestError, match="header ce-source: send 1 to 255 printable characters"):
        event_id_of({"ce-id": "i", "ce-source": "\t"})


def ids(key: str, count: int) -> list[str]:
    return [str(dict(headers)["ce_id"], "utf-8") for headers in EventId(key).header_sets(count)]


def test_an_id_like_that_of_a_piece_is_told_apart() -> None:
    assert ids("invoice#12", 1) == ["invoice#12#"]
    assert ids("invoice", 1) == ["invoice"]


@given(KEYS, st.integers(1, 3), KEYS, st.integers(1, 3))
def test_no_two_payloads_share_an_id(one: str, count: int, other: str, other_count: int) -> None:
    if (one, count) == (other, other_count):
        assert ids(one, count) == ids(other, other_count)
    elif one != other or 1 in (count, other_count):
        assert not set(ids(one, count)) & set(ids(other, other_count))
