from __future__ import annotations

from pathlib import Path

from odf_common.kafka.topics import MAX_MESSAGE_SIZE
from services.broker.configuration import Ports, java_options, properties_text, server_properties


def test_it_listens_on_this_machine_only() -> None:
    properties = server_properties(Ports(clients=9092, controller=9093), logs=Path("/data"))
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_it_takes_what_topics_take() -> None:
    properties = server_properties(Ports(clients=1, controller=2), logs=Path("/data"))
    assert int(properties["message.max.bytes"]) > MAX_MESSAGE_SIZE


def test_paths_survive_the_properties_format() -> None:
    assert properties_text({"log.dirs": "/a\\b/é/😀"}) == "log.dirs=/a\\\\b/\\u00e9/\\ud83d\\ude00\n"


def test_the_heap_is_bounded_and_the_log_is_quiet() -> None:
    options = java_options(384 << 20)
    assert "-Xmx384m" in options
    (log4j,) = [option for option in options if option.startswith("-Dlog4j.configuration=")]
    assert "rootLogger=WARN" in Path(log4j.partition("file://")[2]).read_text()
