"""How the embedded broker is set: one node, one machine, little memory, low latency."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from odf_common.kafka.topics import MAX_MESSAGE_SIZE

HOST = "127.0.0.1"
NODE_ID = 1
DEFAULT_HEAP_SIZE = 384 << 20  # bytes

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where clients and the controller (which is the same process) are reached."""

    clients: int
    controller: int


def server_properties(ports: Ports, *, logs: Path) -> dict[str, str]:
    """Kafka's settings. Reasons are in docs/decisions/0008-embedded-broker.md."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@{HOST}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{HOST}:{ports.clients},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.clients}",
        "log.dirs": str(logs),
        **ALL_TOPICS,
        **_ONE_NODE,
        **_LITTLE_MEMORY,
    }


ALL_TOPICS = {
    "num.partitions": "1",
    "auto.create.topics.enable": "false",  # a misspelt topic is an error, not a new topic
    # What the topics allow, and a batch's envelope.
    "message.max.bytes": str(MAX_MESSAGE_SIZE + (1 << 20)),
    "replica.fetch.max.bytes": str(MAX_MESSAGE_SIZE + (1 << 20)),
    "log.retention.ms": "-1",
    "log.segment.bytes": str(256 << 20),  # what is read again after a kill, at most, per partition
}
_ONE_NODE = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",  # nobody else is about to join
    "group.coordinator.append.linger.ms": "0",
    "controller.quorum.append.linger.ms": "0",
    # After a kill, the broker waits until the one before it counts as dead (by default 9 s).
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "400",
}
_LITTLE_MEMORY = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.threads": "1",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    "offsets.load.buffer.size": str(1 << 20),
    "transaction.state.log.load.buffer.size": str(1 << 20),
}


def properties_text(properties: dict[str, str]) -> str:
    """The settings as a Java properties file. A backslash would be an escape there."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(value: str) -> str:
    escaped = value.replace("\\", "\\\\")
    return "".join(c if c.isascii() else "".join(f"\\u{unit:04x}" for unit in _utf16(c)) for c in escaped)


def _utf16(character: str) -> list[int]:
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i : i + 2], "big") for i in range(0, len(encoded), 2)]


def java_options(heap_size: int) -> list[str]:
    """The options of the virtual machine."""
    return [
        f"-Xmx{heap_size >> 20}m",
        "-Xms64m",
        "-XX:+UseSerialGC",  # the least memory, and pauses of milliseconds in so small a heap
        "-XX:MaxDirectMemorySize=128m",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.awt.headless=true",
        f"-Dlog4j.configuration={(_HERE / 'log4j.properties').as_uri()}",
        f"-Dlog4j2.configurationFile={(_HERE / 'log4j2.properties').as_uri()}",
    ]
