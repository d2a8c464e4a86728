from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError

from odf_common.messages.kafka_offsets import AcceptedGap, KafkaOffsets
from odf_common.metadata.events import AddData, AddPushSource, DisablePushSource
from odf_common.metadata.sources import ReadStepCsv, ReadStepJson, ReadStepParquet
from odf_common.repository.repository import Repository
from odf_common.timestamp import Timestamp
from services.gateway.gateway import Gateway
from tests.unit.services.gateway.builders import (
    NDJSON,
    NOON,
    FakeProducer,
    a_client,
    a_dataset,
    a_gateway,
    a_source,
    append,
    bind,
    covering,
)

pytestmark = pytest.mark.anyio

TOPIC = "push.cities.default"


async def post(
    repository: Repository,
    path: str = "/cities/ingest",
    content: bytes | AsyncIterator[bytes] = b'{"a":1}\n',
    *,
    producer: FakeProducer | None = None,
    headers: dict[str, str] = NDJSON,
    **settings: Any,
) -> httpx.Response:
    async with a_gateway(repository, producer, **settings) as gateway, a_client(gateway) as client:
        return await client.post(path, content=content, headers=headers)


async def wait_while(repository: Repository, happens: Callable[[Gateway], None], timeout: float = 10) -> httpx.Response:
    """Publish and wait for the commit; something happens as soon as the payload is with the broker."""
    producer = FakeProducer()
    loop = asyncio.get_running_loop()
    async with a_gateway(repository, producer) as gateway, a_client(gateway) as client:
        producer.on_produce = lambda: loop.call_soon_threadsafe(happens, gateway)
        path = f"/cities/ingest?wait=committed&timeout={timeout}"
        return await client.post(path, content=b"{}", headers=NDJSON)


class TestPublishing:
    async def test_a_payload_gets_positions(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        producer = FakeProducer()
        answer = await post(repository, content=b'{"a":1}\n{"a":2}\n', producer=producer)
        assert answer.status_code == 202
        assert answer.json() == {
            "dataset": "cities",
            "datasetId": str(dataset.entry.id),
            "source": "default",
            "topic": TOPIC,
            "positions": [{"partition": 0, "start": 0, "next": 1}],
            "messages": 1,
            "records": 2,
        }
        assert producer.sent == [(TOPIC, b'{"a":1}\n{"a":2}', 0)]

    @pytest.mark.parametrize("dataset", ["kamu/cities", "KAMU/Cities"])
    async def test_a_dataset_may_have_an_account(self, repository: Repository, dataset: str) -> None:
        a_dataset(repository, "kamu/cities")
        assert (await post(repository, f"/{dataset}/ingest")).status_code == 202

    async def test_a_dataset_may_be_named_by_id(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        assert (await post(repository, f"/{dataset.entry.id}/ingest")).status_code == 202

    async def test_a_large_payload_becomes_several_messages(self, repository: Repository) -> None:
        a_dataset(repository)
        answer = await post(repository, content=b"".join(b'{"a":%d}\n' % number for number in range(50_000)))
        assert answer.json()["messages"] == 3
        assert answer.json()["records"] == 50_000
        assert answer.json()["positions"] == [{"partition": 0, "start": 0, "next": 3}]

    async def test_the_event_time_becomes_the_timestamp(self, repository: Repository) -> None:
        a_dataset(repository)
        producer = FakeProducer()
        headers = NDJSON | {"odf-event-time": "2020-01-01T01:00:00.5+01:00"}
        assert (await post(repository, producer=producer, headers=headers)).status_code == 202
        assert producer.sent[0][2] == Timestamp.parse("2020-01-01T00:00:00.5Z").ns // 1_000_000

    @pytest.mark.parametrize("time", ["yesterday", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"])
    async def test_an_impossible_event_time_is_refused(self, repository: Repository, time: str) -> None:
        a_dataset(repository)
        answer = await post(repository, headers=NDJSON | {"odf-event-time": time})
        assert answer.status_code == 400
        assert "odf-event-time" in answer.json()["message"]


class TestSourceChoice:
    async def test_an_unknown_dataset_is_404(self, repository: Repository) -> None:
        answer = await post(repository, "/nothing/ingest")
        assert (answer.status_code, answer.json()["error"]) == (404, "NotFound")

    @pytest.mark.parametrize("path", ["/..%2f..%2fetc/ingest", "/a/b/c/ingest", "/a%00b/ingest", "/did:odf:f00/ingest"])
    async def test_what_is_no_name_is_400(self, repository: Repository, path: str) -> None:
        assert (await post(repository, path)).status_code == 400

    async def test_several_sources_need_a_name(self, repository: Repository) -> None:
        a_dataset(repository, "cities", a_source("one"), a_source("two"))
        answer = await post(repository)
        assert answer.status_code == 400
        assert "explicit source name is required" in answer.json()["message"]
        named = await post(repository, "/cities/ingest?sourceName=two")
        assert named.json()["topic"] == "push.cities.two"

    async def test_an_unknown_source_is_refused(self, repository: Repository) -> None:
        a_dataset(repository)
        answer = await post(repository, "/cities/ingest?sourceName=other")
        assert answer.status_code == 400
        assert answer.json()["message"] == "source not found: dataset cities has 'default'"

    async def test_a_disabled_source_is_gone(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        append(dataset, DisablePushSource(source_name="default"))
        answer = await post(repository)
        assert answer.status_code == 400
        assert answer.json()["message"] == "dataset cities has no active push source"

    async def test_a_source_without_a_topic_will_get_one(self, repository: Repository) -> None:
        dataset = a_dataset(repository, bound=False)
        answer = await post(repository)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        bind(repository, dataset, "default")
        assert (await post(repository)).status_code == 202

    async def test_a_notification_makes_sources_be_read_again(self, repository: Repository) -> None:
        dataset = a_dataset(repository)
        async with a_gateway(repository) as gateway, a_client(gateway) as client:
            gateway.lookup._keep_s = 3600
            assert (await client.post("/cities/ingest", content=b"{}", headers=NDJSON)).status_code == 202
            told = append(dataset, AddPushSource(**dict(a_source("default", ReadStepCsv()))))
            assert (await client.post("/cities/ingest", content=b"{}", headers=NDJSON)).status_code == 202
            gateway.feed.deliver(told)
            assert (await client.post("/cities/ingest", content=b"{}", headers=NDJSON)).status_code == 415


class TestPayloads:
    @pytest.mark.parametrize(
        "content_type", [None, "text/plain", "application/json", "application/x-ndjson; charset=x"]
    )
    async def test_another_format_is_415(self, repository: Repository, content_type: str | None) -> None:
        a_dataset(repository)
        answer = await post(repository, headers={} if content_type is None else {"content-type": content_type})
        assert answer.status_code == 415

    async def test_a_refused_format_says_what_is_read(self, repository: Repository) -> None:
        a_dataset(repository, "cities", a_source(read=ReadStepCsv()))
        answer = await post(repository)
        assert answer.json()["message"] == (
            "the source reads Csv: send Content-Type: text/csv, not 'application/x-ndjson'"
        )

    async def test_an_encoded_payload_is_415(self, repository: Repository) -> None:
        a_dataset(repository)
        assert (await post(repository, headers=NDJSON | {"content-encoding": "gzip"})).status_code == 415

    async def test_a_source_that_reads_files_takes_no_payloads(self, repository: Repository) -> None:
        a_dataset(repository, "cities", a_source(read=ReadStepParquet()))
        assert (await post(repository)).status_code == 415

    @pytest.mark.parametrize("content", [b"", b"\n \n"])
    async def test_an_empty_payload_is_400(self, repository: Repository, content: bytes) -> None:
        a_dataset(repository)
        answer = await post(repository, content=content)
        assert (answer.status_code, answer.json()["error"]) == (400, "EmptyBody")

    async def test_json_that_is_no_array_is_400_and_nothing_is_written(self, repository: Repository) -> None:
        a_dataset(repository, "cities", a_source(read=ReadStepJson()))
        producer = FakeProducer()
        content = b"[" + b",".join([b'{"a":1}'] * 100_000)
        answer = await post(
            repository, content=content, headers={"content-type": "application/json"}, producer=producer
        )
        assert answer.status_code == 400
        assert producer.sent == []

    async def test_a_large_body_is_413_by_its_length(self, repository: Repository) -> None:
        a_dataset(repository)
        answer = await post(repository, content=b"1" * 11, max_body_size=10)
        assert (answer.status_code, answer.json()["error"]) == (413, "BodyTooLarge")

    async def test_a_large_body_is_413_by_what_came(self, repository: Repository) -> None:
        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"1\n"

        a_dataset(repository)
        producer = FakeProducer()
        answer = await post(repository, content=endless(), max_body_size=100, producer=producer)
        assert answer.status_code == 413
        assert producer.sent == []

    async def test_a_slow_body_is_408(self, repository: Repository) -> None:
        async def slow() -> AsyncIterator[bytes]:
            yield b"1"
            await asyncio.Event().wait()

        a_dataset(repository)
        assert (await post(repository, content=slow(), body_timeout_s=0.01)).status_code == 408


class TestTheBrokersAnswer:
    async def test_no_answer_is_503_and_says_that_it_may_be_written(self, repository: Repository) -> None:
        a_dataset(repository)
        answer = await post(repository, producer=FakeProducer(error=KafkaError._MSG_TIMED_OUT))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "may nevertheless have been written" in answer.json()["message"]

    async def test_a_missing_topic_is_503(self, repository: Repository) -> None:
        a_dataset(repository)
        answer = await post(repository, producer=FakeProducer(error=KafkaError._UNKNOWN_TOPIC))
        assert (answer.status_code, answer.json()["error"]) == (503, "NotReady")

    async def test_a_time_that_the_broker_refuses_is_400(self, repository: Repository) -> None:
        a_dataset(repository)
        assert (await post(repository, producer=FakeProducer(error=KafkaError.INVALID_TIMESTAMP))).status_code == 400

    async def test_a_full_queue_is_429(self, repository: Repository) -> None:
        a_dataset(repository)
        answer = await post(repository, producer=FakeProducer(full=True))
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")

    async def test_too_many_bytes_under_way_are_429(self, repository: Repository) -> None:
        a_dataset(repository)
        answer = await post(repository, content=b"1" * 11, max_publishing_size=10)
        assert (answer.status_code, answer.json()["error"]) == (429, "TooBusy")

    async def test_what_was_refused_leaves_no_trace_in_the_budget(self, repository: Repository) -> None:
        a_dataset(repository)
        async with a_gateway(repository, max_publishing_size=100) as gateway, a_client(gateway) as client:
            for _ in range(10):
                await client.post("/cities/ingest", content=b" " * 20, headers=NDJSON)
            assert (gateway.ingest.budget.count, gateway.ingest.budget.size) == (0, 0)


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
