from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from paho.mqtt.client import Client, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion

from odf_common.identity.key_pair import KeyPair
from odf_common.metadata.sources import FetchStepMqtt, MqttQos, MqttTopicSubscription
from services.poller.errors import FetchRefusedError, FetchUnreachableError
from services.poller.fetch import fetch
from services.poller.fetched import FetchJob, MessageRounds
from tests.unit.services.poller.conftest import MakeJob

PROGRAM = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no mosquitto on this machine"),
]


class Broker:
    """mosquitto on a free port; it keeps sessions in memory, as long as it lives."""

    def __init__(self, folder: Path, *, password: str | None = None) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        lines = [
            f"listener {self.port} 127.0.0.1",
            "max_queued_messages 0",
            f"allow_anonymous {str(password is None).lower()}",
        ]
        if os.geteuid() == 0:
            lines.append("user root")
        if password is not None:
            passwords = folder / "passwords"
            passwords.touch(mode=0o600)
            subprocess.run(["mosquitto_passwd", "-b", passwords, "odf", password], check=True, capture_output=True)
            lines.append(f"password_file {passwords}")
        (folder / "mosquitto.conf").write_text("\n".join(lines))
        assert PROGRAM is not None
        with (folder / "mosquitto.log").open("wb") as log:
            self._process = subprocess.Popen([PROGRAM, "-c", folder / "mosquitto.conf"], stderr=log, stdout=log)
        give_up = time.monotonic() + 10
        while not self._listens():
            assert time.monotonic() < give_up, (folder / "mosquitto.log").read_text()
            time.sleep(0.02)

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def publish(self, *payloads: bytes, topic: str = "sensors/a", qos: int = 1, retain: bool = False) -> None:
        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv311)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for sent in [client.publish(topic, payload, qos, retain) for payload in payloads]:
            sent.wait_for_publish(10)
        client.disconnect()
        client.loop_stop()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    started = Broker(tmp_path)
    yield started
    started.close()


@pytest.fixture
def job(make_job: MakeJob) -> Any:
    """Jobs of one dataset."""
    dataset_id = KeyPair.generate().dataset_id

    def make(**more: Any) -> FetchJob:
        return make_job(**({"dataset_id": dataset_id, "settings": {"mqtt_idle_s": 0.3}} | more))

    return make


def step_for(
    broker: Broker, qos: MqttQos | None = MqttQos.AT_LEAST_ONCE, path: str = "sensors/#", **more: Any
) -> FetchStepMqtt:
    return FetchStepMqtt(
        host="127.0.0.1", port=broker.port, topics=(MqttTopicSubscription(path=path, qos=qos),), **more
    )


def rounds_of(step: FetchStepMqtt, job: FetchJob) -> Generator[list[bytes], None, None]:
    found = fetch(step, job)
    assert isinstance(found, MessageRounds)
    return cast(Generator[list[bytes], None, None], found.rounds)


def taken(step: FetchStepMqtt, job: FetchJob) -> list[bytes]:
    return [payload for payloads in rounds_of(step, job) for payload in payloads]


@pytest.mark.parametrize("qos", [MqttQos.AT_LEAST_ONCE, MqttQos.EXACTLY_ONCE])
def test_what_came_since_the_last_poll_comes_once(broker: Broker, job: Any, qos: MqttQos) -> None:
    step = step_for(broker, qos)
    assert taken(step, job()) == []  # from now on there is a session
    sent = [f"{number}".encode() for number in range(200)]
    broker.publish(*sent, qos=2)
    assert taken(step, job()) == sent
    assert taken(step, job()) == []


def test_what_is_not_safe_comes_again(broker: Broker, job: Any) -> None:
    step = step_for(broker)
    taken(step, job())
    broker.publish(b"1", b"2")
    rounds = rounds_of(step, job())
    assert next(rounds) == [b"1", b"2"]
    rounds.close()  # whoever takes them has died before they were in Kafka
    assert taken(step, job()) == [b"1", b"2"]
    assert taken(step, job()) == []


def test_without_promises_what_came_between_polls_is_lost(broker: Broker, job: Any) -> None:
    step = step_for(broker, None)
    taken(step, job())
    broker.publish(b"lost", qos=0)
    assert taken(step, job()) == []


def test_other_topics_and_empty_messages_are_not_taken(broker: Broker, job: Any) -> None:
    step = step_for(broker)
    taken(step, job())
    broker.publish(b"other", topic="elsewhere")
    broker.publish(b"", b"1", b"")
    assert taken(step, job()) == [b"1"]


def test_a_retained_message_is_taken_once(broker: Broker, job: Any) -> None:
    broker.publish(b"old", retain=True)
    step = step_for(broker)
    assert taken(step, job()) == [b"old"]
    assert taken(step, job()) == []
    broker.publish(b"new", retain=True)
    assert taken(step, job()) == [b"new"]
    assert taken(step, job()) == []


def test_a_poll_ends_where_it_should(broker: Broker, job: Any) -> None:
    step = step_for(broker)
    taken(step, job())
    broker.publish(*[b"x"] * 100)
    assert len(taken(step, job(settings={"mqtt_max_messages": 30}))) == 30
    assert len(taken(step, job())) == 70


def test_names_and_passwords(tmp_path: Path, job: Any) -> None:
    broker = Broker(tmp_path, password="s3cret")
    step = step_for(broker, username="odf", password="${{ env.PASSWORD }}")
    settings = {"mqtt_idle_s": 0.2, "env_allow": "PASSWORD"}
    try:
        assert taken(step, job(environment={"PASSWORD": "s3cret"}, settings=settings)) == []
        with pytest.raises(FetchRefusedError, match="does not let us in: Not authorized"):
            taken(step, job(environment={"PASSWORD": "wrong"}, settings=settings))
        with pytest.raises(FetchRefusedError, match="does not let us in"):
            taken(step_for(broker), job())
    finally:
        broker.close()


def test_a_broker_that_goes(broker: Broker, job: Any) -> None:
    step = step_for(broker)
    taken(step, job())
    broker.publish(b"1")
    rounds = rounds_of(step, job(settings={"mqtt_idle_s": 10}))
    assert next(rounds) == [b"1"]
    broker.close()
    with pytest.raises(FetchUnreachableError, match="hung up"):
        next(rounds)
    with pytest.raises(FetchUnreachableError, match="does not answer"):
        taken(step, job())


def test_who_listens_but_does_not_speak(job: Any) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        step = FetchStepMqtt(host="127.0.0.1", port=silent.getsockname()[1], topics=(MqttTopicSubscription(path="a"),))
        with pytest.raises(FetchUnreachableError, match=r"did not let us in within 0.3 s"):
            taken(step, job(settings={"read_timeout_s": 0.3}))
