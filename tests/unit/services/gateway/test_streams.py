from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from unittest import mock

import pytest

from odf_common.errors import InvalidTextError, NotFoundError
from odf_common.identity.multihash import Multihash
from odf_common.repository.repository import Dataset, Repository
from services.gateway.gateway import Gateway
from services.gateway.replay import History
from services.gateway.streams import From, parse_from, parse_last_event_id
from tests.unit.services.gateway.builders import a_client, a_dataset, a_gateway, append, watermarks

pytestmark = pytest.mark.anyio

Texts = AsyncIterator[str]


async def stream(gateway: Gateway, *datasets: Dataset, begin: From = None, seen: list[int] | None = None) -> Texts:
    made = gateway.stream()
    await made.start([dataset.entry for dataset in datasets], begin, seen)
    return made.texts()


async def take(texts: Texts, count: int) -> list[tuple[str | None, int]]:
    """The next events: id and sequence number."""
    found: list[tuple[str | None, int]] = []
    async with asyncio.timeout(5):
        while len(found) < count:
            event = fields(await anext(texts))
            if "data" in event:
                assert "event" not in event, event
                found.append((event.get("id"), json.loads(event["data"])["data"]["sequenceNumber"]))
    return found


def fields(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.strip().split("\n") if not line.startswith(":"))


async def last(texts: Texts) -> dict[str, str]:
    async with asyncio.timeout(5):
        return fields([text async for text in texts][-1])


async def ready(texts: Texts, gateway: Gateway) -> asyncio.Task[list[tuple[str | None, int]]]:
    """Wait for one event in the background, from when the stream has subscribed."""
    task = asyncio.ensure_future(take(texts, 1))
    async with asyncio.timeout(5):
        while not gateway.feed._subscriptions:
            await asyncio.sleep(0)
    return task


async def test_a_stream_from_the_beginning_replays_and_goes_on(repository: Repository) -> None:
    dataset = a_dataset(repository)
    append(dataset, *watermarks(3))
    async with a_gateway(repository) as gateway:
        texts = await stream(gateway, dataset, begin=0)
        assert await take(texts, 5) == [(str(number), number) for number in range(5)]
        waiting = await ready(texts, gateway)
        gateway.feed.deliver(append(dataset, *watermarks(1, after=3)))
        assert await waiting == [("5", 5)]


async def test_a_stream_from_the_head_has_later_blocks_only(repository: Repository) -> None:
    dataset = a_dataset(repository)
    async with a_gateway(repository) as gateway:
        texts = await stream(gateway, dataset)
        waiting = await ready(texts, gateway)
        gateway.feed.deliver(append(dataset, *watermarks(1)))
        assert await waiting == [("2", 2)]


async def test_a_client_that_comes_back_misses_nothing(repository: Repository) -> None:
    dataset = a_dataset(repository)
    append(dataset, *watermarks(250))
    async with a_gateway(repository) as gateway:
        texts = await stream(gateway, dataset, seen=[10])
        assert [number for _, number in await take(texts, 241)] == list(range(11, 252))


async def test_repeated_notifications_are_sent_once_and_gaps_are_filled(repository: Repository) -> None:
    dataset = a_dataset(repository)
    async with a_gateway(repository) as gateway:
        texts = await stream(gateway, dataset)
        waiting = await ready(texts, gateway)
        told = append(dataset, *watermarks(6))
        gateway.feed.deliver([told[0], told[0], told[4], told[3], told[4], told[5]])
        assert await waiting == [("2", 2)]
        assert [number for _, number in await take(texts, 5)] == [3, 4, 5, 6, 7]


async def test_ids_hold_the_place_in_every_dataset(repository: Repository) -> None:
    one, two = a_dataset(repository, "one"), a_dataset(repository, "two", number=2)
    async with a_gateway(repository) as gateway:
        texts = await stream(gateway, one, two, begin=0)
        assert await take(texts, 4) == [("0,-1", 0), ("1,-1", 1), ("1,0", 0), ("1,1", 1)]
        again = await stream(gateway, one, two, seen=[1, -1])
        assert await take(again, 2) == [("1,0", 0), ("1,1", 1)]


async def test_a_stream_of_all_datasets_is_live_and_has_no_ids(repository: Repository) -> None:
    async with a_gateway(repository) as gateway:
        texts = await stream(gateway)
        waiting = await ready(texts, gateway)
        gateway.feed.deliver(append(a_dataset(repository), *watermarks(1)))
        assert await waiting == [(None, 2)]


async def test_a_quiet_stream_beats(repository: Repository) -> None:
    async with a_gateway(repository, heartbeat_s=0.01) as gateway:
        texts = await stream(gateway)
        assert [await anext(texts) for _ in range(3)] == ["retry: 1000\n\n", ": heartbeat\n\n", ": heartbeat\n\n"]


async def test_a_slow_client_is_told_and_let_go(repository: Repository) -> None:
    dataset = a_dataset(repository)
    async with a_gateway(repository, max_pending_events=3) as gateway:
        texts = await stream(gateway, dataset)
        waiting = await ready(texts, gateway)
        told = append(dataset, *watermarks(5))
        gateway.feed.deliver(told[:1])
        await waiting
        gateway.feed.deliver(told[1:])
        end = await last(texts)
        assert end["event"] == "problem"
        assert "come back with Last-Event-ID" in end["data"]
        assert not gateway.feed._subscriptions
        again = await stream(gateway, dataset, seen=[2])
        assert [number for _, number in await take(again, 4)] == [3, 4, 5, 6]


async def test_a_gateway_that_stops_ends_its_streams(repository: Repository) -> None:
    dataset = a_dataset(repository)
    async with a_gateway(repository) as gateway:
        texts = await stream(gateway, dataset)
        gateway.feed.close()
        assert "the gateway stops" in (await last(texts))["data"]


async def test_a_damaged_chain_ends_the_stream_with_the_reason(repository: Repository, tmp_path: Path) -> None:
    dataset = a_dataset(repository)
    async with a_gateway(repository) as gateway:
        texts = await stream(gateway, dataset, begin=0)
        for path in (tmp_path / "datasets" / dataset.entry.location / "blocks").iterdir():
            path.chmod(0o600)
            path.write_bytes(b"damaged")
        assert (await last(texts))["data"].startswith("Corrupted: ")


@pytest.mark.parametrize(
    "query",
    [
        "dataset=cities&from=-1",
        "dataset=cities&from=now",
        "dataset=cities&lastEventId=x",
        "dataset=cities&lastEventId=1,2",
        "dataset=cities&lastEventId=" + "9" * 30,
        "dataset=cities&dataset=cities",
        "dataset=..",
        "from=genesis",
        "lastEventId=1",
        "&".join(["dataset=cities"] * 101),
    ],
)
async def test_impossible_requests_are_400(repository: Repository, query: str) -> None:
    a_dataset(repository)
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        assert (await client.get(f"/events?{query}")).status_code == 400


async def test_unknown_datasets_are_404(repository: Repository) -> None:
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        assert (await client.get("/events?dataset=nothing")).status_code == 404


async def test_streams_are_bounded(repository: Repository) -> None:
    async with a_gateway(repository, max_subscribers=1) as gateway, a_client(gateway) as client:
        gateway.streams = 1
        assert (await client.get("/events")).status_code == 429


async def test_streams_count_before_anything_is_waited_for(repository: Repository) -> None:
    may_look = threading.Event()

    def look(ref: object) -> None:
        assert may_look.wait(5)
        raise NotFoundError("there is no such dataset")

    async with a_gateway(repository, max_subscribers=1) as gateway, a_client(gateway) as client:
        with mock.patch.object(gateway.repository.catalog, "dataset", side_effect=look):
            first = asyncio.ensure_future(client.get("/events?dataset=nothing"))
            async with asyncio.timeout(5):
                while not gateway.streams:
                    await asyncio.sleep(0)
            assert (await client.get("/events?dataset=nothing")).status_code == 429
            may_look.set()
            assert (await first).status_code == 404
        assert gateway.streams == 0


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_a_long_chain_is_read_in_stretches(repository: Repository, first: int, length: int) -> None:
    dataset = a_dataset(repository)
    append(dataset, *watermarks(5))
    history = History(repository)
    ends = history.stretches_from(dataset.entry, first, length=length)
    found: list[Multihash] = []
    for end in ends:
        stretch = history.hashes_from(dataset.entry, first + len(found), until=end)
        assert len(stretch) <= length
        found += stretch
    assert found == history.hashes_from(dataset.entry, first)


def test_places_to_begin() -> None:
    assert (parse_from("head"), parse_from("genesis"), parse_from("12")) == (None, 0, 12)
    assert parse_last_event_id("3,-1", 2) == [3, -1]
    with pytest.raises(InvalidTextError, match="one for each dataset"):
        parse_last_event_id("²", 1)
