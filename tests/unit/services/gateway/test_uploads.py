from __future__ import annotations

import asyncio
import hashlib
import re
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from confluent_kafka import KafkaError
from starlette.requests import ClientDisconnect

from odf_common.identity.multihash import SHA2_256, Multihash
from odf_common.messages.payload import UPLOAD_MEDIA_TYPE, UploadedPayload
from odf_common.metadata.sources import ReadStepParquet
from odf_common.repository.repository import Repository
from odf_common.uploads import UploadWriter
from services.gateway.errors import RequestError
from services.gateway.uploads import parse_token
from tests.unit.services.gateway.builders import (
    NDJSON,
    FakeProducer,
    a_client,
    a_dataset,
    a_gateway,
    a_snapshot_source,
    a_source,
    post,
)

pytestmark = pytest.mark.anyio

MIB = 1 << 20
LARGE = b'{"a":1234}\n' * 300_000
TOKEN = f"{'0' * 32}-1-f1220{'0' * 64}"


@pytest.fixture
def area(tmp_path: Path) -> Path:
    return tmp_path / "uploads"


def files(area: Path) -> list[Path]:
    return [path for path in area.rglob("*") if path.is_file()]


async def parts(content: bytes, size: int = 100_000, *, end: Exception | None = None) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]
    if end is not None:
        raise end


@contextmanager
def a_full_disk(size: int) -> Iterator[None]:
    """No file can become larger than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestLargePayloads:
    async def test_a_message_refers_to_the_upload(self, repository: Repository, area: Path) -> None:
        dataset = a_dataset(repository)
        producer = FakeProducer()
        answer = await post(repository, content=parts(LARGE), producer=producer, uploads=area)
        digest = Multihash(SHA2_256, hashlib.sha256(LARGE).digest())
        assert answer.status_code == 202
        assert answer.json()["upload"] == {"size": len(LARGE), "hash": str(digest)}
        assert answer.json()["messages"] == 1
        assert "records" not in answer.json()
        ((_, value, _),) = producer.sent
        assert producer.headers == [{"content-type": UPLOAD_MEDIA_TYPE}]
        reference = UploadedPayload.from_json(value)
        assert (reference.hash, reference.size, reference.media_type) == (digest, len(LARGE), None)
        assert files(area) == [area / dataset.entry.id.multibase / reference.name]
        assert files(area)[0].read_bytes() == LARGE

    async def test_its_format_is_said_where_it_is_another(self, repository: Repository) -> None:
        a_dataset(repository, "cities", a_source(read=ReadStepParquet()))
        producer = FakeProducer()
        assert (await post(repository, content=LARGE, producer=producer)).status_code == 202
        assert UploadedPayload.from_json(producer.sent[0][1]).media_type == "application/x-ndjson"

    @pytest.mark.parametrize(("size", "is_upload"), [(MIB, False), (MIB + 1, True)])
    @pytest.mark.parametrize("chunk", [MIB + 1, 65_536])
    async def test_up_to_a_mebibyte_it_is_a_message(
        self, repository: Repository, area: Path, size: int, is_upload: bool, chunk: int
    ) -> None:
        a_dataset(repository, "cities", a_snapshot_source())
        content = b'{"a":1}\n' + b"\n" * (size - 8)
        answer = await post(repository, content=parts(content, chunk), uploads=area)
        assert answer.status_code == 202
        assert ("upload" in answer.json(), len(files(area))) == (is_upload, int(is_upload))

    async def test_an_event_id_names_the_reference(self, repository: Repository) -> None:
        a_dataset(repository)
        producer = FakeProducer()
        headers = NDJSON | {"idempotency-key": "k"}
        assert (await post(repository, content=LARGE, headers=headers, producer=producer)).status_code == 202
        assert producer.headers == [{"content-type": UPLOAD_MEDIA_TYPE, "ce_id": "k", "ce_source": "/gateway"}]


async def test_the_area_has_a_bound(repository: Repository, area: Path) -> None:
    a_dataset(repository)
    bound: dict[str, Any] = {"uploads": area, "max_uploads_size": len(LARGE)}
    assert (await post(repository, content=LARGE, **bound)).status_code == 202
    refused = await post(repository, content=LARGE, **bound)
    assert (refused.status_code, len(files(area))) == (503, 1)
    assert "ODF_GATEWAY_MAX_UPLOADS_SIZE" in refused.json()["message"]
    assert refused.headers["retry-after"] == "1"
    assert (await post(repository, content=b'{"a":1}', **bound)).status_code == 202


class TestNothingIsLeftBehind:
    async def check(self, repository: Repository, area: Path, status: int, **more: Any) -> httpx.Response:
        producer = more.pop("producer", FakeProducer())
        answer = await post(repository, producer=producer, uploads=area, **more)
        assert (answer.status_code, files(area)) == (status, [])
        return answer

    async def test_by_what_is_too_large(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        await self.check(repository, area, 413, content=parts(LARGE), max_upload_size=len(LARGE) - 1)

    async def test_by_what_says_that_it_is_too_large(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        await self.check(repository, area, 413, content=LARGE, max_upload_size=len(LARGE) - 1)
        assert not area.exists()

    async def test_by_a_client_that_goes_away(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        producer = FakeProducer()
        content = parts(LARGE, end=ClientDisconnect())
        answer = await self.check(repository, area, 400, content=content, producer=producer)
        assert "went away" in answer.json()["message"]
        assert producer.sent == []

    async def test_by_a_body_that_is_shorter_than_it_says(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        headers = NDJSON | {"content-length": str(len(LARGE) + 1)}
        await self.check(repository, area, 400, content=parts(LARGE), headers=headers)

    async def test_by_a_client_that_falls_asleep(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)

        async def slow() -> AsyncIterator[bytes]:
            yield LARGE
            await asyncio.Event().wait()

        await self.check(repository, area, 408, content=slow(), body_timeout_s=0.05)

    async def test_by_a_gateway_that_stops(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        came = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            yield LARGE
            came.set()
            await asyncio.Event().wait()

        request = asyncio.ensure_future(post(repository, content=endless(), uploads=area))
        async with asyncio.timeout(5):
            await came.wait()
        assert files(area)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert files(area) == []

    async def test_by_a_full_disk(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        producer = FakeProducer()
        with a_full_disk(2 * MIB + 1000):
            answer = await self.check(repository, area, 503, content=LARGE, producer=producer)
        assert "nothing was published" in answer.json()["message"]
        assert answer.headers["retry-after"] == "1"
        assert producer.sent == []

    async def test_by_a_disk_that_fails_at_the_end(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        with mock.patch("odf_common.uploads.os.fsync", side_effect=OSError(5, "Input/output error")):
            await self.check(repository, area, 503, content=LARGE)

    async def test_by_an_area_that_cannot_be_written(self, repository: Repository, area: Path) -> None:
        area.write_text("no folder")
        a_dataset(repository)
        producer = FakeProducer()
        assert (await post(repository, content=LARGE, uploads=area, producer=producer)).status_code == 503
        assert producer.sent == []

    async def test_by_a_broker_that_has_no_such_topic(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        await self.check(repository, area, 503, content=LARGE, producer=FakeProducer(error=KafkaError._UNKNOWN_TOPIC))

    async def test_what_the_broker_may_have_is_kept(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        producer = FakeProducer(error=KafkaError._MSG_TIMED_OUT)
        assert (await post(repository, content=LARGE, producer=producer, uploads=area)).status_code == 503
        assert len(files(area)) == 1


class TestMemory:
    async def test_a_large_payload_takes_no_more_than_a_few_blocks(self, repository: Repository) -> None:
        a_dataset(repository)
        async with a_gateway(repository) as gateway, a_client(gateway) as client:
            largest = 0
            write = UploadWriter.write

            def measured(writer: UploadWriter, data: bytes) -> None:
                nonlocal largest
                largest = max(largest, len(data))
                assert gateway.ingest.budget.size < 5 * MIB
                write(writer, data)

            with mock.patch.object(UploadWriter, "write", measured):
                answer = await client.post("/cities/ingest", content=parts(b"1\n" * 10 * MIB), headers=NDJSON)
            assert answer.status_code == 202
            assert largest < 2 * MIB
            assert (gateway.ingest.budget.count, gateway.ingest.budget.size) == (0, 0)

    async def test_more_than_fit_are_429(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        answer = await post(repository, content=LARGE, uploads=area, max_publishing_size=3 * MIB)
        assert (answer.status_code, files(area)) == (429, [])


class TestTwoSteps:
    async def test_an_upload_is_published_by_its_token(self, repository: Repository, area: Path) -> None:
        dataset = a_dataset(repository)
        producer = FakeProducer()
        async with a_gateway(repository, producer, uploads=area) as gateway, a_client(gateway) as client:
            kept = await client.post("/uploads?dataset=cities", content=b'{"a":1}\n')
            assert kept.status_code == 201
            assert kept.json()["size"] == 8
            url = f"/cities/ingest?uploadToken={kept.json()['uploadToken']}"
            for _ in range(2):
                answer = await client.post(url, headers=NDJSON)
                assert answer.status_code == 202
                assert answer.json()["upload"] == {"size": 8, "hash": kept.json()["hash"]}
        name = UploadedPayload.from_json(producer.sent[0][1]).name
        assert files(area) == [area / dataset.entry.id.multibase / name]
        headers = {"content-type": UPLOAD_MEDIA_TYPE, "ce_id": name, "ce_source": "/gateway/uploads"}
        assert producer.headers == [headers, headers]

    async def test_a_failure_leaves_the_upload_for_another_try(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        producer = FakeProducer(error=KafkaError._UNKNOWN_TOPIC)
        async with a_gateway(repository, producer, uploads=area) as gateway, a_client(gateway) as client:
            token = (await client.post("/uploads?dataset=cities", content=b"{}")).json()["uploadToken"]
            assert (await client.post(f"/cities/ingest?uploadToken={token}", headers=NDJSON)).status_code == 503
        assert len(files(area)) == 1

    async def test_a_token_is_for_one_dataset(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        a_dataset(repository, "others", number=2)
        producer = FakeProducer()
        async with a_gateway(repository, producer, uploads=area) as gateway, a_client(gateway) as client:
            token = (await client.post("/uploads?dataset=cities", content=b"{}")).json()["uploadToken"]
            answer = await client.post(f"/others/ingest?uploadToken={token}", headers=NDJSON)
        assert (answer.status_code, producer.sent) == (400, [])

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "x",
            "x" * 201,
            "../" + TOKEN,
            "%2e%2e%2f" + TOKEN,
            TOKEN,
            TOKEN + "/",
            TOKEN + "%0a",
            TOKEN.replace("-1-", "-01-"),
            TOKEN.replace("-1-", f"-{'9' * 30}-"),
            TOKEN.replace("f1220", "f1620"),
        ],
    )
    async def test_what_is_no_token_is_400(self, repository: Repository, area: Path, token: str) -> None:
        a_dataset(repository)
        producer = FakeProducer()
        answer = await post(
            repository, f"/cities/ingest?uploadToken={token}", content=b"", producer=producer, uploads=area
        )
        assert (answer.status_code, producer.sent) == (400, [])
        assert "uploadToken" in answer.json()["message"] or "upload_token" in answer.json()["message"]

    async def test_a_token_and_a_body_are_one_too_many(self, repository: Repository, area: Path) -> None:
        a_dataset(repository)
        async with a_gateway(repository, uploads=area) as gateway, a_client(gateway) as client:
            token = (await client.post("/uploads?dataset=cities", content=b"{}")).json()["uploadToken"]
            answer = await client.post(f"/cities/ingest?uploadToken={token}", content=b"{}", headers=NDJSON)
        assert answer.status_code == 400

    @pytest.mark.parametrize(
        ("dataset", "status"), [("..%2f..", 400), ("a%00", 400), ("nothing", 404), ("did:odf:f00", 400), ("", 400)]
    )
    async def test_an_upload_needs_a_dataset(
        self, repository: Repository, area: Path, dataset: str, status: int
    ) -> None:
        a_dataset(repository)
        answer = await post(repository, f"/uploads?dataset={dataset}", uploads=area)
        assert (answer.status_code, area.exists()) == (status, False)

    @pytest.mark.parametrize(("content", "status"), [(b"", 400), (b"12345", 413)])
    async def test_an_upload_has_something_but_not_too_much(
        self, repository: Repository, area: Path, content: bytes, status: int
    ) -> None:
        a_dataset(repository)
        answer = await post(repository, "/uploads?dataset=cities", parts(content), uploads=area, max_upload_size=4)
        assert (answer.status_code, files(area)) == (status, [])

    def test_a_token_says_what_it_names(self) -> None:
        upload = parse_token(TOKEN)
        assert (upload.name, upload.size) == ("0" * 32, 1)
        with pytest.raises(RequestError, match=re.escape("POST /uploads")):
            parse_token(TOKEN + "\n")
