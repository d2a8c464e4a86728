from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from confluent_kafka import KafkaError

from odf_common.catalog.records import SourceSettings
from odf_common.ingest.media_types import media_type_of
from odf_common.metadata.events import DisablePollingSource, DisablePushSource
from odf_common.metadata.sources import (
    ReadStep,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odf_common.repository.repository import Repository
from odf_common.timestamp import Timestamp
from tests.unit.services.gateway.builders import (
    NDJSON,
    FakeProducer,
    a_client,
    a_dataset,
    a_gateway,
    a_polling_source,
    a_snapshot_source,
    a_source,
    append,
    bind,
    post,
    status_of_raw,
)

pytestmark = pytest.mark.anyio

TOPIC = "push.cities.default"
CSV = {"content-type": "text/csv"}
READ_STEPS: list[ReadStep] = [
    ReadStepNdJson(),
    ReadStepJson(),
    ReadStepCsv(header=True),
    ReadStepGeoJson(),
    ReadStepNdGeoJson(),
    ReadStepParquet(),
    ReadStepEsriShapefile(),
]
FEATURE = b'{"type":"Feature","geometry":null,"properties":{"a":1}}'
CONTENT = {
    "NdJson": b'{"a":1}\n',
    "Json": b'[{"a":1}]',
    "Csv": b"a\n1\n",
    "GeoJson": b'{"type":"FeatureCollection","features":[%b]}' % FEATURE,
    "NdGeoJson": FEATURE + b"\n",
    "Parquet": b"PAR1...PAR1",
    "EsriShapefile": b"PK...",
}


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
            told = append(dataset, DisablePushSource(source_name="default"))
            assert (await client.post("/cities/ingest", content=b"{}", headers=NDJSON)).status_code == 202
            gateway.feed.deliver(told)
            assert (await client.post("/cities/ingest", content=b"{}", headers=NDJSON)).status_code == 400

    @pytest.mark.parametrize("query", ["", "?sourceName=default"])
    async def test_a_dataset_that_is_polled_takes_no_pushes(self, repository: Repository, query: str) -> None:
        a_dataset(repository, "cities", a_polling_source())
        answer = await post(repository, f"/cities/ingest{query}")
        assert (answer.status_code, answer.json()["error"]) == (400, "SourceChoice")
        assert "`odf pull cities` fetches now" in answer.json()["message"]

    async def test_a_polling_source_that_was_disabled_is_gone(self, repository: Repository) -> None:
        dataset = a_dataset(repository, "cities", a_polling_source())
        async with a_gateway(repository) as gateway, a_client(gateway) as client:
            assert "odf pull" in (await client.post("/cities/ingest", content=b"{}", headers=NDJSON)).text
            append(dataset, DisablePollingSource())
            answer = await client.post("/cities/ingest", content=b"{}", headers=NDJSON)
        assert answer.json()["message"] == "dataset cities has no active push source"

    async def test_a_source_that_is_switched_off_takes_what_waits(self, repository: Repository) -> None:
        dataset = a_dataset(repository, bound=False)
        bind(repository, dataset, "default", SourceSettings(enabled=False))
        answer = await post(repository, "/cities/ingest?wait=committed")
        assert answer.status_code == 202
        assert "switched off" in answer.json()["note"]
        assert answer.json()["positions"] == [{"partition": 0, "start": 0, "next": 1}]


class TestPayloads:
    @pytest.mark.parametrize(
        "content_type", [None, "text/plain", "application/x-ndjson; charset=x", "a/b\r\nc: d", "x" * 300, "/", ";"]
    )
    async def test_an_unknown_format_is_415(self, repository: Repository, content_type: str | None) -> None:
        a_dataset(repository)
        producer = FakeProducer()
        headers = {} if content_type is None else {"content-type": content_type}
        answer = await post(repository, headers=headers, producer=producer)
        assert (answer.status_code, producer.sent) == (415, [])

    async def test_a_refused_format_says_what_is_read(self, repository: Repository) -> None:
        a_dataset(repository, "cities", a_source(read=ReadStepCsv()))
        answer = await post(repository, headers={"content-type": "text/plain"})
        assert "text/plain" in answer.json()["message"]
        assert answer.json()["message"].endswith("The source reads text/csv")

    @pytest.mark.parametrize("read", READ_STEPS, ids=lambda read: read.kind)
    async def test_the_format_of_the_source_goes_without_saying(self, repository: Repository, read: ReadStep) -> None:
        a_dataset(repository, "cities", a_source(read=read))
        producer = FakeProducer()
        headers = {"content-type": media_type_of(read)}
        assert (
            await post(repository, content=CONTENT[read.kind], headers=headers, producer=producer)
        ).status_code == 202
        assert [value for _, value, _ in producer.sent] == [CONTENT[read.kind].strip()]
        assert producer.headers == [{}]

    @pytest.mark.parametrize("read", READ_STEPS[1:], ids=lambda read: read.kind)
    async def test_another_format_is_said(self, repository: Repository, read: ReadStep) -> None:
        a_dataset(repository)
        producer = FakeProducer()
        headers = {"content-type": media_type_of(read).upper() + "; charset=UTF-8"}
        assert (
            await post(repository, content=CONTENT[read.kind], headers=headers, producer=producer)
        ).status_code == 202
        assert [value for _, value, _ in producer.sent] == [CONTENT[read.kind].strip()]
        assert producer.headers == [{"content-type": media_type_of(read)}]

    async def test_a_payload_of_another_format_is_cut_as_that_one(self, repository: Repository) -> None:
        a_dataset(repository, "cities", a_source(read=ReadStepParquet()))
        producer = FakeProducer()
        answer = await post(repository, content=b"a,b\n" + b"1,2\n" * 100_000, headers=CSV, producer=producer)
        assert answer.json()["records"] == 100_000
        assert {value[:4] for _, value, _ in producer.sent} == {b"a,b\n"}
        assert producer.headers == [{"content-type": "text/csv"}] * 2

    async def test_an_encoded_payload_is_415(self, repository: Repository) -> None:
        a_dataset(repository)
        assert (await post(repository, headers=NDJSON | {"content-encoding": "gzip"})).status_code == 415

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
        answer = await post(repository, content=b"1" * 11, max_upload_size=10)
        assert (answer.status_code, answer.json()["error"]) == (413, "BodyTooLarge")

    async def test_a_large_body_is_413_by_what_came(self, repository: Repository) -> None:
        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"1\n"

        a_dataset(repository)
        producer = FakeProducer()
        answer = await post(repository, content=endless(), max_upload_size=100, producer=producer)
        assert answer.status_code == 413
        assert producer.sent == []

    async def test_a_slow_body_is_408(self, repository: Repository) -> None:
        async def slow() -> AsyncIterator[bytes]:
            yield b"1"
            await asyncio.Event().wait()

        a_dataset(repository)
        assert (await post(repository, content=slow(), body_timeout_s=0.01)).status_code == 408

    @pytest.mark.parametrize("length", ["1", "1000", "9" * 19])
    async def test_a_body_that_lies_about_its_length_is_refused(self, repository: Repository, length: str) -> None:
        a_dataset(repository)
        producer = FakeProducer()
        answer = await post(repository, headers=NDJSON | {"content-length": length}, producer=producer)
        assert answer.status_code == (413 if len(length) > 10 else 400)
        assert producer.sent == []

    @pytest.mark.parametrize("length", ["²", "-1", "x", "0" * 50 + "8"])
    async def test_a_strange_length_is_no_mistake_of_ours(self, repository: Repository, length: str) -> None:
        a_dataset(repository)
        headers = {**NDJSON, "content-length": length}
        async with a_gateway(repository) as gateway:
            assert await status_of_raw(gateway, headers, b'{"a":1}\n') == 202

    async def test_a_snapshot_is_one_message(self, repository: Repository) -> None:
        a_dataset(repository, "cities", a_snapshot_source())
        producer = FakeProducer()
        content = b"\xef\xbb\xbf" + b'{"a":1}\n' * 100_000
        answer = await post(repository, content=content, producer=producer)
        assert (answer.json()["messages"], answer.json()["records"]) == (1, 100_000)
        assert producer.sent == [(TOPIC, content[3:], 0)]

    @pytest.mark.parametrize("content", [b"", b"\n \r\n"])
    async def test_a_snapshot_is_not_empty_by_mistake(self, repository: Repository, content: bytes) -> None:
        a_dataset(repository, "cities", a_snapshot_source())
        producer = FakeProducer()
        answer = await post(repository, content=content, producer=producer)
        assert (answer.status_code, answer.json()["error"], producer.sent) == (400, "EmptyBody", [])
        assert "A snapshot of nothing is `[]` as application/json" in answer.json()["message"]

    @pytest.mark.parametrize(("content", "media_type"), [(b"[]", "application/json"), (b"a\n", "text/csv")])
    async def test_a_snapshot_may_say_that_nothing_is_there(
        self, repository: Repository, content: bytes, media_type: str
    ) -> None:
        a_dataset(repository, "cities", a_snapshot_source())
        producer = FakeProducer()
        answer = await post(repository, content=content, headers={"content-type": media_type}, producer=producer)
        assert (answer.status_code, answer.json()["records"]) == (202, 0)
        assert producer.sent == [(TOPIC, content, 0)]


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
