"""The embedded broker, for real: it serves, it keeps, it goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from odf_common.kafka.clients import admin_client, consumer, producer
from odf_common.kafka.topics import MAX_MESSAGE_SIZE, SERVICE_TOPICS, Topic, create_topics
from services.broker import BrokerRunsError, EmbeddedBroker
from services.broker.ports import PortTakenError
from tests.fixtures.kafka import listens, shared_kafka

T = TypeVar("T")

pytestmark = pytest.mark.slow


def publish(bootstrap_servers: str, topic: str, *values: bytes) -> None:
    client = producer(bootstrap_servers)
    failures: list[object] = []
    for value in values:
        client.produce(topic, value, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert client.flush(30) == 0
    assert failures == []


def read(bootstrap_servers: str, topic: str, count: int) -> list[bytes]:
    client = consumer(bootstrap_servers, group=f"read-{topic}")
    client.subscribe([topic])
    found: list[bytes] = []
    try:
        while len(found) < count:
            messages = client.consume(count - len(found), timeout=30)
            assert messages, f"{len(found)} of {count} messages came"
            found += [message.value() or b"" for message in messages if message.error() is None]
    finally:
        client.close()
    return found


def test_a_shared_broker_takes_and_gives_messages(kafka: str, topic_prefix: str) -> None:
    create_topics(admin_client(kafka), [Topic(name=topic_prefix)])
    publish(kafka, topic_prefix, b"one", b"two")
    assert read(kafka, topic_prefix, 2) == [b"one", b"two"]


def test_killed_with_force_it_starts_again_where_it_was_and_with_what_it_had(own_broker: EmbeddedBroker) -> None:
    servers = own_broker.bootstrap_servers
    create_topics(admin_client(servers), [*SERVICE_TOPICS, Topic(name="events")])
    publish(servers, "events", *(b"%d" % i for i in range(1000)))
    own_broker.kill()
    own_broker.start()
    assert own_broker.bootstrap_servers == servers
    assert read(servers, "events", 1000) == [b"%d" % i for i in range(1000)]


def test_the_largest_message_of_a_topic_fits(kafka: str, topic_prefix: str) -> None:
    create_topics(admin_client(kafka), [Topic(name=topic_prefix)])
    large = bytes(MAX_MESSAGE_SIZE - 1024)
    publish(kafka, topic_prefix, large)
    assert read(kafka, topic_prefix, 1) == [large]


def test_a_second_broker_on_a_folder_is_refused_and_the_first_lives_on(own_broker: EmbeddedBroker) -> None:
    with pytest.raises(BrokerRunsError, match=r"runs on .* already"):
        EmbeddedBroker(own_broker.folder).start()
    assert own_broker.poll() is None


def test_stopping_leaves_no_process_and_frees_the_folder(own_broker: EmbeddedBroker) -> None:
    pid = own_broker.pid
    assert pid is not None
    own_broker.stop()
    assert not psutil.pid_exists(pid)
    own_broker.start()
    own_broker.stop()
    own_broker.stop()


def test_workers_share_a_broker_which_ends_with_its_last_user(tmp_path: Path) -> None:
    first, second = shared_kafka(tmp_path), shared_kafka(tmp_path)
    servers = first.__enter__()
    other_is_done = threading.Event()
    seen: list[str] = []

    def use() -> None:
        with second as also:
            seen.append(also)
            other_is_done.wait(30)
            seen.append(str(listens(also)))

    other = threading.Thread(target=use)
    other.start()
    while not seen:
        other.join(0.02)
    threading.Timer(0.3, other_is_done.set).start()
    first.__exit__(None, None, None)
    other.join()
    assert seen == [servers, "True"]
    wait_for(lambda: not listens(servers))


@pytest.fixture
def broker_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "services.broker", "--data-dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def ready_line(process: subprocess.Popen[str]) -> dict[str, object]:
    assert process.stdout is not None
    for line in process.stdout:
        message: dict[str, object] = json.loads(line)
        if message.get("ready"):
            return message
    raise AssertionError("it ended before it was ready")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_program_tells_where_it_is_and_stops_when_told(
    broker_process: subprocess.Popen[str], number: signal.Signals
) -> None:
    servers = str(ready_line(broker_process)["bootstrapServers"])
    assert listens(servers)
    below = psutil.Process(broker_process.pid).children(recursive=True)
    broker_process.send_signal(number)
    out, error = broker_process.communicate(timeout=30)
    assert (broker_process.returncode, out, error) == (0, "", "")
    assert below
    assert not any(process.is_running() for process in below)


def test_the_program_told_to_stop_while_it_starts_stops(broker_process: subprocess.Popen[str]) -> None:
    (java,) = wait_for(lambda: psutil.Process(broker_process.pid).children())
    broker_process.terminate()
    assert broker_process.wait(30) == 0
    assert not java.is_running()


def test_killed_with_force_the_program_takes_kafka_along(broker_process: subprocess.Popen[str]) -> None:
    servers = str(ready_line(broker_process)["bootstrapServers"])
    broker_process.kill()
    broker_process.wait()
    wait_for(lambda: not listens(servers))


def test_the_program_ends_when_kafka_does_and_says_so(broker_process: subprocess.Popen[str]) -> None:
    ready_line(broker_process)
    (java,) = psutil.Process(broker_process.pid).children()
    java.kill()
    _, error = broker_process.communicate(timeout=30)
    assert broker_process.returncode == 1
    assert "Kafka ended by itself with exit code -9" in error


def test_without_java_the_program_says_what_to_do_and_that_trying_again_is_no_use(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "services.broker", "--data-dir", str(tmp_path)],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "install it (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME" in done.stderr


def test_a_port_that_is_taken_is_named(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    port = int(own_broker.bootstrap_servers.rpartition(":")[2])
    with pytest.raises(PortTakenError, match=f"port {port} of 127.0.0.1 is in use"):
        EmbeddedBroker(tmp_path / "other", port=port).start()


def wait_for(condition: Callable[[], T], timeout_s: float = 30.0) -> T:
    give_up = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < give_up, f"nothing came in {timeout_s} s"
        time.sleep(0.02)
    return found


def test_a_system_takes_kafka_along_when_it_is_killed_with_force(tmp_path: Path) -> None:
    """The supervisor, the broker below it, and the virtual machine below that."""
    code = (
        "import sys, time; from pathlib import Path; from odf_common.settings import Settings; "
        "from services.supervisor import Supervisor; "
        "settings = Settings(data_dir=Path(sys.argv[1])); system = Supervisor(settings); system.start(); "
        "print(system.kafka_bootstrap_servers, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as system:
        try:
            assert system.stdout is not None
            servers = system.stdout.readline().strip()
            wait_for(lambda: listens(servers))
            below = psutil.Process(system.pid).children(recursive=True)
            names = {process.name() for process in below}
        finally:
            system.kill()
    assert "java" in names
    wait_for(lambda: not any(lives(process) for process in below))
    wait_for(lambda: not listens(servers))


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
