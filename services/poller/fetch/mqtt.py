"""Fetch step Mqtt: what came for a persistent session since last time, forgotten by its broker once it is in Kafka."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from paho.mqtt.client import Client, ConnectFlags, MQTTMessage, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.reasoncodes import ReasonCode

from odf_common.metadata.sources import FetchStepMqtt, MqttQos
from services.poller.errors import FetchRefusedError, FetchUnreachableError, StepRefusedError
from services.poller.fetched import FetchJob, MessageRounds

_KEEP_ALIVE_S = 60
_LOOK_EVERY_S = 0.05
_ROUND = 1_000  # messages
_FAREWELL_S = 2.0
_NO_TOPIC = "odf/nothing"
_MAX_PORT = 65_535


def check_mqtt(step: FetchStepMqtt) -> None:
    """StepRefusedError for what no broker would understand."""
    if not step.topics:
        raise StepRefusedError("the fetch step Mqtt names no topic")
    if not 0 < step.port <= _MAX_PORT:
        raise StepRefusedError(f"{step.port} is no port")
    for topic in step.topics:
        if not topic.path or "\0" in topic.path or not _is_filter(topic.path):
            raise StepRefusedError(f"{topic.path[:100]!r} is no topic filter of MQTT")


def _is_filter(path: str) -> bool:
    *parts, last = path.split("/")
    return all("#" not in part for part in parts) and all(
        part == wildcard or wildcard not in part for part in (*parts, last) for wildcard in "+#"
    )


def collect_messages(step: FetchStepMqtt, job: FetchJob) -> MessageRounds:
    """The messages that wait; the connection lives as long as they are asked for."""
    check_mqtt(step)
    return MessageRounds(_rounds(step, job))


def _rounds(step: FetchStepMqtt, job: FetchJob) -> Iterator[list[bytes]]:
    session = _Session(step, job)
    try:
        session.open()
        yield from session.rounds()
    finally:
        session.close()


class _Session:
    """One connection to the broker, driven by the thread that reads from it."""

    def __init__(self, step: FetchStepMqtt, job: FetchJob) -> None:
        self._step = step
        self._job = job
        self._waiting: list[MQTTMessage] = []
        self._is_known: bool | None = None
        self._is_subscribed = False
        self._has_acknowledged = False
        self._is_heard = False
        self._refusal: str | None = None
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=_client_id(step, job),
            clean_session=False,
            protocol=MQTTv311,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.connect_timeout = job.settings.connect_timeout_s
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_unsubscribe = self._on_unsubscribe
        client.on_message = self._on_message
        if step.username is not None:
            password = None if step.password is None else job.secrets.filled(step.password)
            client.username_pw_set(job.secrets.filled(step.username), password)
        self._client = client

    def open(self) -> None:
        """Connect and subscribe."""
        host = self._job.secrets.filled(self._step.host)
        try:
            self._client.connect(host, self._step.port, _KEEP_ALIVE_S)
        except (OSError, ValueError) as error:
            raise FetchUnreachableError(f"the broker does not answer: {error}") from error
        self._run_until(lambda: self._is_known is not None, "did not let us in")
        self._client.subscribe([(topic.path, _asked_qos(topic.qos)) for topic in self._step.topics])
        self._run_until(lambda: self._is_subscribed, "did not confirm the subscription")

    def rounds(self) -> Iterator[list[bytes]]:
        """What came, in rounds: a broker gives little until it hears that what it gave before is safe."""
        settings = self._job.settings
        count, heard = 0, time.monotonic()
        while count < settings.mqtt_max_messages and not self._is_over(count):
            before = len(self._waiting)
            self._run()
            is_quiet = len(self._waiting) == before
            if self._waiting and (is_quiet or before >= _ROUND):
                room = settings.mqtt_max_messages - count
                taken, self._waiting = self._waiting[:room], self._waiting[room:]
                if payloads := [bytes(each.payload) for each in taken if each.payload]:
                    yield payloads
                for each in taken:
                    self._client.ack(each.mid, each.qos)
                self._has_acknowledged = True
                count += len(taken)
                heard = time.monotonic()
            elif is_quiet and time.monotonic() - heard > settings.mqtt_idle_s:
                return

    def _is_over(self, count: int) -> bool:
        """A topic that is never silent is left to the next poll."""
        return count > 0 and time.monotonic() - self._job.started > self._job.settings.fetch_timeout_s / 2

    def close(self) -> None:
        """Leave when the broker has heard which messages are safe; the session stays with it."""
        if self._has_acknowledged and self._client.is_connected():
            # A connection that is closed with something unread takes along what was said last. Packets are answered
            # in their order, so the answer to one that changes nothing tells that those before it have arrived.
            self._client.unsubscribe(_NO_TOPIC)
            self._run_quietly(until=lambda: self._is_heard)
        self._client.disconnect()
        self._run_quietly(until=lambda: not self._client.is_connected())

    def _run_quietly(self, until: Callable[[], bool]) -> None:
        give_up = time.monotonic() + _FAREWELL_S
        while not until() and time.monotonic() < give_up:
            if self._client.loop(_LOOK_EVERY_S) != MQTTErrorCode.MQTT_ERR_SUCCESS:
                return

    def _run_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        give_up = time.monotonic() + self._job.settings.read_timeout_s
        while not condition():
            if time.monotonic() > give_up:
                raise FetchUnreachableError(f"the broker {otherwise} within {self._job.settings.read_timeout_s:g} s")
            self._run()

    def _run(self) -> None:
        self._job.check_time()
        result = self._client.loop(_LOOK_EVERY_S)
        if self._refusal is not None:
            raise FetchRefusedError(self._refusal)
        if result != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise FetchUnreachableError(f"the broker hung up: {result.name}")

    def _on_connect(self, client: Client, data: Any, flags: ConnectFlags, reason: ReasonCode, properties: Any) -> None:
        if reason.is_failure:
            self._refusal = f"the broker does not let us in: {reason}"
        self._is_known = flags.session_present

    def _on_subscribe(self, client: Client, data: Any, mid: int, reasons: list[ReasonCode], properties: Any) -> None:
        for topic, reason in zip(self._step.topics, reasons, strict=False):
            if reason.is_failure:
                self._refusal = f"the broker refuses the subscription to {topic.path!r}: {reason}"
        self._is_subscribed = True

    def _on_unsubscribe(self, client: Client, data: Any, mid: int, reasons: list[ReasonCode], properties: Any) -> None:
        self._is_heard = True

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        if message.retain and self._is_known:
            # Told at each subscription; it was taken when the session began, or came as a message of its own since.
            client.ack(message.mid, message.qos)
        else:
            self._waiting.append(message)


def _asked_qos(given: MqttQos | None) -> int:
    """ExactlyOnce is asked for as AtLeastOnce.

    With it a message belongs to the client from the middle of a handshake on, and a client that dies there has lost it.
    """
    return 0 if given in (None, MqttQos.AT_MOST_ONCE) else 1


def _client_id(step: FetchStepMqtt, job: FetchJob) -> str:
    """The session's name: the same for the same subscriptions of a dataset, and no longer than all brokers allow."""
    name = f"{job.dataset_id} {step.host} {step.port} {step.topics}"
    return f"odf-{hashlib.sha256(name.encode()).hexdigest()[:19]}"
