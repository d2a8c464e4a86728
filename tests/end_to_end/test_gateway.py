"""The gateway for real: a process between HTTP and a broker."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from confluent_kafka import Message

from odf_common.kafka.clients import admin_client, consumer, producer
from odf_common.kafka.topics import BLOCKS, SERVICE_TOPICS, Topic, create_topics
from odf_common.messages.block_appended import BlockAppended
from odf_common.messages.payload import UPLOAD_MEDIA_TYPE, UploadedPayload
from odf_common.repository.repository import Dataset, Repository
from services.broker import EmbeddedBroker
from tests.end_to_end.gateways import GatewayProcess, a_gateway_process
from tests.unit.services.gateway.builders import NDJSON, a_dataset, a_repository, append, covering, watermarks

pytestmark = pytest.mark.slow

TOPIC = "push.cities.default"
LARGE_SIZE = 96 << 20


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    with a_repository(tmp_path) as repository:
        yield repository


@pytest.fixture
def dataset(repository: Repository) -> Dataset:
    return a_dataset(repository)


@pytest.fixture
def broker(own_broker: EmbeddedBroker) -> EmbeddedBroker:
    create_topics(admin_client(own_broker.bootstrap_servers), [*SERVICE_TOPICS, Topic(name=TOPIC, partitions=2)])
    return own_broker


def announce(servers: str, *events: BlockAppended) -> None:
    client = producer(servers)
    for event in events:
        client.produce(BLOCKS, event.to_json(), key=str(event.data.dataset_id))
    assert client.flush(30) == 0


def values(servers: str, count: int) -> list[bytes]:
    return [message.value() or b"" for message in messages(servers, count)]


def messages(servers: str, count: int) -> list[Message]:
    client = consumer(servers, group="test")
    client.subscribe([TOPIC])
    found: list[Message] = []
    while len(found) < count:
        more = client.consume(count - len(found), timeout=30)
        assert more
        found += more
    client.close()
    return found


def events(lines: Iterator[str], count: int) -> list[tuple[str, int]]:
    """The next events: id and sequence number."""
    found: list[tuple[str, int]] = []
    event_id = ""
    while len(found) < count:
        name, _, value = next(lines).partition(": ")
        if name == "id":
            event_id = value
        elif name == "data":
            found.append((event_id, json.loads(value)["data"]["sequenceNumber"]))
    return found


def within(seconds: float, condition: object) -> None:
    deadline = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def subscribers(gateway: GatewayProcess) -> str:
    with gateway.client() as client:
        return client.get("/metrics").text


def test_the_way_of_a_payload(tmp_path: Path, broker: EmbeddedBroker, dataset: Dataset) -> None:
    servers = broker.bootstrap_servers
    with a_gateway_process(tmp_path, servers) as gateway, gateway.client() as client:
        assert client.get("/readyz").json() == {"ready": True, "broker": "ok", "catalog": "ok", "blocks": "ok"}
        published = client.post("/cities/ingest", content=b'{"a":1}\n{"a":2}', headers=NDJSON).json()
        assert values(servers, 1) == [b'{"a":1}\n{"a":2}']
        assert len(published["positions"]) == 1
        answers: list[httpx.Response] = []
        lines = client.stream("GET", "/events?dataset=cities&from=genesis")
        with lines as stream:
            texts = stream.iter_lines()
            assert events(texts, 2) == [("0", 0), ("1", 1)]
            url = f"{gateway.url}/cities/ingest?wait=committed"
            waiting = threading.Thread(
                target=lambda: answers.append(httpx.post(url, content=b"{}", headers=NDJSON, timeout=30))
            )
            waiting.start()
            assert len(values(servers, 2)) == 2
            told = append(dataset, *(covering(TOPIC, 0, 9, partition=partition) for partition in (0, 1)))
            announce(servers, *told, *told)
            waiting.join(10)
            assert events(texts, 2) == [("2", 2), ("3", 3)]
    (answer,) = answers
    assert answer.status_code == 200
    assert answer.json()["blocks"][0]["deadLetters"] == 9


def test_the_broker_may_come_later_and_go(tmp_path: Path, broker: EmbeddedBroker, dataset: Dataset) -> None:
    broker.stop()
    with a_gateway_process(tmp_path, broker.bootstrap_servers) as gateway, gateway.client() as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503
        began = time.monotonic()
        refused = client.post("/cities/ingest", content=b"{}", headers=NDJSON)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert time.monotonic() - began < 8
        broker.start()
        within(20, lambda: client.post("/cities/ingest", content=b"{}", headers=NDJSON).status_code == 202)
        assert client.get("/readyz").status_code == 200
        with client.stream("GET", "/events?dataset=cities") as stream:
            texts = stream.iter_lines()
            assert next(texts) == "retry: 1000"
            broker.kill()
            broker.start()
            announce(broker.bootstrap_servers, *append(dataset, *watermarks(3)))
            assert [number for _, number in events(texts, 3)] == [2, 3, 4]


def test_a_client_comes_back_where_it_was(tmp_path: Path, broker: EmbeddedBroker, dataset: Dataset) -> None:
    append(dataset, *watermarks(30))
    url = "/events?dataset=cities&from=genesis"
    with a_gateway_process(tmp_path, broker.bootstrap_servers) as gateway, gateway.client() as client:
        with client.stream("GET", url) as stream:
            event_id, _ = events(stream.iter_lines(), 10)[-1]
        with client.stream("GET", url, headers={"last-event-id": event_id}) as stream:
            texts = stream.iter_lines()
            assert [number for _, number in events(texts, 22)] == list(range(10, 32))
            announce(broker.bootstrap_servers, *append(dataset, *watermarks(5, after=30)))
            assert [number for _, number in events(texts, 5)] == list(range(32, 37))
        within(10, lambda: "odf_gateway_subscribers 0.0" in subscribers(gateway))


def test_it_stops_at_once_and_with_success(tmp_path: Path, broker: EmbeddedBroker, dataset: Dataset) -> None:
    with a_gateway_process(tmp_path, broker.bootstrap_servers) as gateway, gateway.client() as client:
        with client.stream("GET", "/events?dataset=cities") as stream:
            texts = stream.iter_lines()
            next(texts)
            gateway.process.send_signal(signal.SIGTERM)
            assert "event: problem" in list(texts)
        assert gateway.process.wait(5) == 0


@pytest.mark.parametrize(("point", "written"), [("before-produce", 0), ("after-produce", 1)])
def test_killed_while_publishing_it_told_nobody(
    tmp_path: Path, broker: EmbeddedBroker, dataset: Dataset, point: str, written: int
) -> None:
    crash = {"ODF_CRASH_AT": f"gateway.{point}"}
    with (
        a_gateway_process(tmp_path, broker.bootstrap_servers, **crash) as gateway,
        gateway.client() as client,
        pytest.raises(httpx.TransportError),
    ):
        client.post("/cities/ingest", content=b"{}", headers=NDJSON)
    with a_gateway_process(tmp_path, broker.bootstrap_servers) as gateway, gateway.client() as client:
        assert client.post("/cities/ingest", content=b"[]", headers=NDJSON).status_code == 202
    assert sorted(values(broker.bootstrap_servers, written + 1)) == [b"[]", *[b"{}"] * written]


def disconnect_in_the_middle(gateway: GatewayProcess) -> None:
    address = httpx.URL(gateway.url)
    head = (
        "POST /cities/ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\n"
        f"Content-Length: {LARGE_SIZE}\r\n\r\n"
    )
    with socket.create_connection((address.host, address.port or 80)) as connection:
        connection.sendall(head.encode() + b"{}\n" * (2 << 20))


def test_it_is_small_whatever_comes(tmp_path: Path, broker: EmbeddedBroker, dataset: Dataset) -> None:
    def uploads() -> set[str]:
        return {path.name for path in (tmp_path / "uploads" / dataset.entry.id.multibase).glob("*")}

    servers = broker.bootstrap_servers
    with a_gateway_process(tmp_path, servers) as gateway, gateway.client() as client:
        assert client.post("/cities/ingest", content=b"{}", headers=NDJSON).status_code == 202
        assert client.get("/datasets").status_code == 200
        headers = NDJSON | {"idempotency-key": "k", "odf-event-time": "2020-01-01T00:00:00Z"}
        block = b'{"a":12}\n' * (LARGE_SIZE // 9 // 64)
        large = client.post("/cities/ingest", content=(block for _ in range(64)), headers=headers)
        assert large.status_code == 202
        (message,) = [each for each in messages(servers, 2) if each.headers()]
        assert dict(message.headers() or ()) == {
            "content-type": UPLOAD_MEDIA_TYPE.encode(),
            "ce_id": b"k",
            "ce_source": b"/gateway",
        }
        assert message.timestamp()[1] == 1_577_836_800_000
        reference = UploadedPayload.from_json(message.value() or b"")
        assert (reference.size, str(reference.hash)) == (len(block) * 64, large.json()["upload"]["hash"])
        assert uploads() == {reference.name}
        disconnect_in_the_middle(gateway)
        within(10, lambda: 'route="/{dataset:path}/ingest",status="400"' in subscribers(gateway))
        assert uploads() == {reference.name}
        assert psutil.Process(gateway.process.pid).memory_info().rss < 130 << 20
