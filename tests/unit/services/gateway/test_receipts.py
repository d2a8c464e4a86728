from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from odf_common.identity.multihash import Multihash
from odf_common.messages.block_appended import BlockAppended
from odf_common.messages.kafka_offsets import AcceptedGap, KafkaOffsets, Repeat
from odf_common.metadata.events import AddData
from odf_common.repository.repository import Repository
from tests.unit.services.gateway.builders import (
    NDJSON,
    NOON,
    a_client,
    a_dataset,
    a_gateway,
    append,
    covering,
    post,
    wait_while,
)

pytestmark = pytest.mark.anyio

TOPIC = "push.cities.default"


class TestReceipts:
    async def test_a_receipt_names_the_blocks_that_cover_the_positions(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        told = append(dataset, covering(TOPIC, 0, 1), covering(TOPIC, 1, 2))
        answer = await wait_while(repository, lambda gateway: gateway.feed.deliver([told[0], *told]))
        assert answer.status_code == 200
        assert answer.json()["blocks"] == [
            {
                "blockHash": str(told[0].data.block_hash),
                "sequenceNumber": 2,
                "numRecords": 0,
                "duplicates": 0,
                "deadLetters": 1,
                "derived": 0,
                "late": 0,
                "watermark": "2024-01-01T12:00:00Z",
            }
        ]

    async def test_positions_in_an_accepted_gap_have_no_receipt(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        gap = AcceptedGap(reason="retention", lost_topic_id="id", lost_next={})
        mark = KafkaOffsets(topic=TOPIC, topic_id="id", start={0: 5}, next={0: 5}, accepted_gap=gap)
        told = append(dataset, AddData(new_source_state=mark.to_state("default"), new_watermark=NOON))
        answer = await wait_while(repository, lambda gateway: gateway.feed.deliver(told))
        assert answer.status_code == 202
        assert answer.json()["note"] == "published, but skipped: a gap was accepted in the source (retention)"
        assert "blocks" not in answer.json()

    async def test_blocks_elsewhere_are_no_receipt(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        told = append(dataset, covering(TOPIC, 0, 9, source="other"), covering("elsewhere", 0, 9))
        answer = await wait_while(repository, lambda gateway: gateway.feed.deliver(told), timeout=0.05)
        assert answer.status_code == 202
        assert answer.json()["note"] == "published, but not committed within 0.05 s"
        assert "blocks" not in answer.json()

    async def test_a_gateway_that_stops_answers_those_who_wait(self, repository: Repository) -> None:
        a_dataset(repository)
        answer = await wait_while(repository, lambda gateway: gateway.feed.close())
        assert answer.status_code == 202
        assert "the gateway stops" in answer.json()["note"]

    @pytest.mark.parametrize("query", ["wait=forever", "wait=committed&timeout=301", "timeout=nan", "timeout=-1"])
    async def test_impossible_waits_are_refused(self, repository: Repository, query: str) -> None:
        a_dataset(repository)
        answer = await post(repository, f"/cities/ingest?{query}")
        assert (answer.status_code, answer.json()["error"]) == (400, "Request")

    async def test_those_who_wait_are_bounded(self, repository: Repository) -> None:
        a_dataset(repository)
        async with a_gateway(repository, max_waiting=1) as gateway, a_client(gateway) as client:
            gateway.ingest._waiting = 1
            answer = await client.post("/cities/ingest?wait=committed", content=b"{}", headers=NDJSON)
        assert answer.status_code == 429


def slice_of(position: int, **more: Any) -> AddData:
    """A block of a large payload, before the last one."""
    return covering(TOPIC, position, position, **more)


class TestSeveralBlocks:
    async def test_all_blocks_of_a_large_payload_are_listed(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        told = append(
            dataset, slice_of(0, late=3), slice_of(0), covering(TOPIC, 0, 1, derived=2), covering(TOPIC, 1, 2)
        )
        answer = await wait_while(repository, lambda gateway: gateway.feed.deliver([told[0], *told]))
        assert answer.status_code == 200
        blocks = answer.json()["blocks"]
        assert [block["sequenceNumber"] for block in blocks] == [2, 3, 4]
        assert [(block["late"], block["derived"]) for block in blocks] == [(3, 0), (0, 0), (0, 2)]

    async def test_blocks_of_the_payload_before_belong_to_that_one(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        told = append(dataset, slice_of(0), covering(TOPIC, 0, 1), slice_of(1), covering(TOPIC, 1, 2))
        answer = await wait_while(repository, lambda gateway: gateway.feed.deliver(told), first_offset=1)
        assert [block["sequenceNumber"] for block in answer.json()["blocks"]] == [4, 5]

    async def test_blocks_of_another_source_come_in_between(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        others = covering("elsewhere", 0, 5, source="other")
        told = append(dataset, slice_of(0), others, covering(TOPIC, 0, 1))
        answer = await wait_while(repository, lambda gateway: gateway.feed.deliver(told))
        assert [block["sequenceNumber"] for block in answer.json()["blocks"]] == [2, 4]

    async def test_the_first_blocks_alone_are_no_receipt(self, repository: Repository) -> None:
        told = append(a_dataset(repository), slice_of(0, late=1), slice_of(0))
        answer = await wait_while(repository, lambda gateway: gateway.feed.deliver(told), timeout=0.05)
        assert answer.status_code == 202
        assert "blocks" not in answer.json()


def a_repeat(offset: int, first: int, block: Multihash | None = None) -> Repeat:
    return Repeat(partition=0, offset=offset, first_partition=0, first_offset=first, block=block)


def repeating(offset: int, first: int, block: Multihash | None = None) -> AddData:
    """A block that dropped the message at `offset`, as the one at `first` has the same event id."""
    return covering(TOPIC, offset, offset + 1, repeats=(a_repeat(offset, first, block),))


async def published_again(repository: Repository, at: int, told: Sequence[BlockAppended]) -> dict[str, Any]:
    """The answer to a payload that comes to a position."""
    answer = await wait_while(repository, lambda gateway: gateway.feed.deliver(told), first_offset=at)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def first_at(offset: int, block: BlockAppended) -> dict[str, Any]:
    positions = [{"partition": 0, "start": offset, "next": offset + 1}]
    return {"blockHash": str(block.data.block_hash), "positions": positions}


class TestDuplicates:
    async def test_the_receipt_names_the_block_that_the_job_names(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        (first,) = append(dataset, covering(TOPIC, 0, 1))
        told = append(dataset, repeating(1, 0, first.data.block_hash))
        answer = await published_again(repository, 1, told)
        assert answer["duplicateOf"] == [first_at(0, first)]
        assert [block["blockHash"] for block in answer["blocks"]] == [str(told[0].data.block_hash)]

    @pytest.mark.parametrize(("repeated", "left"), [(1, 0), (0, 1)])
    async def test_the_file_of_a_duplicate_is_removed(
        self, repository: Repository, tmp_path: Path, repeated: int, left: int
    ) -> None:
        told = append(a_dataset(repository), covering(TOPIC, 0, 2, repeats=(a_repeat(repeated, 0),)))
        area = tmp_path / "uploads"
        answer = await wait_while(
            repository,
            lambda gateway: gateway.feed.deliver(told),
            first_offset=1,
            content=b"{}\n" * 500_000,
            uploads=area,
        )
        assert answer.json()["upload"]["size"] == 1_500_000
        assert len([path for path in area.rglob("*") if path.is_file()]) == left

    async def test_both_may_come_in_one_block(self, repository: Repository) -> None:
        told = append(a_dataset(repository), covering(TOPIC, 0, 2, repeats=(a_repeat(1, 0),)))
        assert (await published_again(repository, 1, told))["duplicateOf"] == [first_at(0, told[0])]

    async def test_a_block_that_the_job_does_not_name_is_looked_for(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        told = append(
            dataset,
            covering(TOPIC, 0, 1),
            slice_of(1),
            covering(TOPIC, 1, 2),
            covering("elsewhere", 0, 9, source="other"),
            repeating(2, 1),
        )
        assert (await published_again(repository, 2, told))["duplicateOf"] == [first_at(1, told[2])]

    async def test_one_that_is_too_far_back_is_told_without_its_block(
        self, repository: Repository, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("services.gateway.duplicates.MAX_BLOCKS", 2)
        told = append(a_dataset(repository), *(covering(TOPIC, at, at + 1) for at in range(3)), repeating(3, 0))
        answer = await published_again(repository, 3, told)
        assert answer["duplicateOf"] == [{"positions": [{"partition": 0, "start": 0, "next": 1}]}]

    async def test_a_topic_that_was_made_anew_has_other_positions(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        append(dataset, covering(TOPIC, 0, 1, topic_id="earlier"))
        told = append(dataset, repeating(1, 0))
        answer = await published_again(repository, 1, told)
        assert "blockHash" not in answer["duplicateOf"][0]

    async def test_duplicates_of_others_are_not_ours(self, repository: Repository) -> None:
        told = append(a_dataset(repository), covering(TOPIC, 0, 3, repeats=(a_repeat(2, 1),)))
        assert "duplicateOf" not in await published_again(repository, 1, told)

    async def test_subscribers_hear_of_it(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        (told,) = append(dataset, covering(TOPIC, 0, 2, repeats=(a_repeat(1, 0),), derived=4, late=2))
        async with a_gateway(repository) as gateway:
            stream = gateway.stream()
            await stream.start([dataset.entry], told.data.sequence_number, None)
            texts = stream.texts()
            lines = [await anext(texts), await anext(texts)][1].splitlines()
            source = json.loads(lines[-2 if not lines[-1] else -1].removeprefix("data: "))["data"]["source"]
        assert (source["derived"], source["late"]) == (4, 2)
        assert source["repeats"] == [{"partition": 0, "offset": 1, "firstPartition": 0, "firstOffset": 0}]
