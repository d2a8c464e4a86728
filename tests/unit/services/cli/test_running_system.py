"""Commands against a broker, and a thread that plays the rest of the system."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.errors import NotFoundError
from odf_common.kafka.clients import admin_client
from odf_common.kafka.topics import Topic, create_topics, describe_topic
from odf_common.settings import Settings
from services.cli.retrying import originals_of
from services.cli.topic_reading import opened_consumer
from tests.unit.services.cli.datasets import CITY, Cli
from tests.unit.services.cli.playing_system import PlayingSystem

pytestmark = pytest.mark.slow

BARE = "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: bare\n  kind: Root\n  metadata: []\n"


def lines(*cities: str) -> str:
    return "".join(json.dumps({"city": city}) + "\n" for city in cities)


@pytest.fixture
def running(cli: Cli, module_kafka: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A dataset whose topic no other test uses, and a broker."""
    monkeypatch.setenv("ODF_KAFKA_BOOTSTRAP_SERVERS", module_kafka)
    cli.add(CITY, "--topic", topic_prefix)
    return cli


@pytest.fixture
def system(running: Cli, tmp_path: Path) -> Iterator[PlayingSystem]:
    with PlayingSystem(Settings(data_dir=running.data_dir), tmp_path) as system:
        yield system


def test_a_file_is_committed_with_a_receipt(running: Cli, system: PlayingSystem) -> None:
    data = running.write("data.ndjson", lines("a", "b") + "broken\n" + lines("c"))
    receipt = running.found("ingest", "city", data)
    assert (receipt["records"], receipt["rows"], receipt["deadLetters"]) == (4, 3, 1)
    assert receipt["next"] == {"0": 1}
    (block,) = receipt["blocks"]
    assert block["offsets"] == {"start": 0, "end": 2}
    assert block["hash"] == running.found("list")[0]["head"]
    assert "3 rows, 0 duplicates, 1 dead letters in 1 blocks" in running.text("ingest", "city", data)


def test_standard_input_is_sent_without_waiting(running: Cli, system: PlayingSystem) -> None:
    sent = running.found("ingest", "city", "-", "--source", "sensors", "--no-wait", stdin=lines("a"))
    assert (sent["records"], sent["messages"]) == (1, 1)
    assert "blocks" not in sent


def test_an_empty_file_sends_nothing(running: Cli, system: PlayingSystem) -> None:
    assert running.found("ingest", "city", running.write("empty", ""))["messages"] == 0


def test_what_is_not_committed_is_told_with_the_way_on(running: Cli, tmp_path: Path) -> None:
    PlayingSystem(Settings(data_dir=running.data_dir), tmp_path)  # makes the topics, reads nothing
    refused = running.found("ingest", "city", "-", "--timeout", "0", stdin=lines("a"), exit_code=1)
    assert refused["error"] == "NotCommitted"
    assert "odf doctor city sensors" in refused["message"]
    (source,) = running.found("status")["datasets"][0]["sources"]
    assert source["lagEvents"] == 1
    assert source["lagSeconds"] > 0
    found = running.found("doctor", "city", exit_code=1)
    assert (found["stuck"], [step["ok"] for step in found["steps"]]) == ("batch", [True, False])


def test_a_topic_that_does_not_exist_is_named(running: Cli, topic_prefix: str) -> None:
    assert f"no topic {topic_prefix}" in running.found("status")["datasets"][0]["sources"][0]["problem"]
    assert running.found("doctor", "city", exit_code=1)["stuck"] == "topic"


def test_an_event_is_followed_to_its_notification(running: Cli, system: PlayingSystem) -> None:
    running.found("ingest", "city", "-", stdin=lines("a"))
    found = running.found("doctor", "city")
    assert found["stuck"] is None
    assert [step["step"] for step in found["steps"]] == ["topic", "batch", "stage", "block", "notification"]
    assert all(step["time"] for step in found["steps"])
    assert "everything is fine" in running.text("doctor", "city", "sensors")


def test_a_source_with_a_problem_is_where_an_event_is_stuck(running: Cli, tmp_path: Path) -> None:
    stopped = PlayingSystem(Settings(data_dir=running.data_dir), tmp_path)
    running.found("ingest", "city", "-", "--no-wait", stdin=lines("a"))
    with Catalog.open(Settings(data_dir=running.data_dir).catalog_url) as catalog, catalog.begin() as transaction:
        transaction.set_source_problem(stopped.entry.id, "sensors", "the topic was deleted")
    found = running.found("doctor", "city", exit_code=1)
    assert (found["stuck"], "odf source resume city sensors" in found["hint"]) == ("batch", True)
    assert running.found("source", "resume", "city")["change"] == "resumed"
    assert running.found("source", "list", "city")[0]["problem"] is None


def test_dead_letters_are_listed_once_with_their_bytes(running: Cli, system: PlayingSystem) -> None:
    running.found("ingest", "city", "-", stdin=lines("a") + "broken\n\x1b[31m\n")
    letters = running.found("dead-letters", "list", "city")
    assert [(letter["position"], letter["value"]) for letter in letters] == [("0:0:1", "broken"), ("0:0:2", "\x1b[31m")]
    assert "\x1b" not in running.text("dead-letters", "list", "city")
    assert running.text("dead-letters", "show", "city", "0:0:1") == "broken"
    assert "no dead letter at 0:0:9" in running.text("dead-letters", "show", "city", "0:0:9", exit_code=1)


def test_a_dead_letter_is_taken_once_its_reason_is_mended(running: Cli, system: PlayingSystem) -> None:
    system.bad = {"b"}
    running.found("ingest", "city", "-", stdin=lines("a", "b"))
    system.bad = set()
    (letter,) = running.found("dead-letters", "retry", "city", "--all")["letters"]
    assert (letter["position"], letter["newPosition"], letter["state"]) == ("0:0:1", "0:1", "taken")
    assert letter["blockHash"] == running.found("list")[0]["head"]
    assert running.found("dead-letters", "list", "city") == []
    (again,) = running.found("dead-letters", "list", "city", "--all")
    assert (again["position"], again["attempts"]) == ("0:0:1", 1)
    assert running.found("dead-letters", "retry", "city", "--all")["letters"] == []
    (letter,) = running.found("dead-letters", "retry", "city", "0:0:1")["letters"]
    assert (letter["newPosition"], letter["state"]) == ("0:1", "duplicate")


def test_what_still_cannot_be_read_is_a_dead_letter_again(running: Cli, system: PlayingSystem) -> None:
    running.found("ingest", "city", "-", stdin=lines("a") + "broken\nworse\n")
    found = running.found("dead-letters", "retry", "city", "0:0:1", exit_code=1)
    (letter,) = found["letters"]
    assert (letter["state"], letter["reason"], letter["newPosition"]) == ("dead", "InvalidJson: not JSON", "0:1")
    assert [each["position"] for each in running.found("dead-letters", "list", "city")] == ["0:0:2", "0:1:0"]
    shown = running.run("dead-letters", "retry", "city", "--code", "InvalidJson")
    assert shown.exit_code == 1
    assert "0:1:0  dead letter again as 0:3: InvalidJson: not JSON" in shown.stdout
    assert "2 of 2 were not taken" in shown.stderr


def test_a_retry_does_not_have_to_be_waited_for(running: Cli, system: PlayingSystem) -> None:
    running.found("ingest", "city", "-", stdin="broken\n")
    (letter,) = running.found("dead-letters", "retry", "city", "--source", "sensors", "--no-wait")["letters"]
    assert (letter["state"], letter["newPosition"]) == ("sent", "0:1")
    assert "no dead letter at 0:9" in running.text("dead-letters", "retry", "city", "0:9", exit_code=1)
    assert running.run("dead-letters", "retry", "city").exit_code == 2


def test_the_message_of_a_dead_letter_is_found_in_its_topic(running: Cli, system: PlayingSystem) -> None:
    for city in "abc":
        running.found("ingest", "city", "-", "--no-wait", stdin=lines(city))
    with opened_consumer(system.servers) as reader:
        original = originals_of(reader, system.binding.topic, system.topic_id)
        found = [original(system.topic_id, 0, offset) for offset in (1, 0, 2)]
        assert found == [lines(city).strip().encode() for city in "bac"]
        assert original("another topic", 0, 0) is None


def test_a_source_that_is_switched_off_takes_no_files(running: Cli, system: PlayingSystem) -> None:
    running.found("source", "disable", "city")
    refused = running.found("ingest", "city", "-", stdin=lines("a"), exit_code=1)
    assert (refused["error"], "odf source enable city sensors" in refused["message"]) == ("SourceDisabled", True)


def test_a_dataset_without_source_gets_one_when_asked(running: Cli, module_kafka: str) -> None:
    running.found("add", running.write("bare.yaml", BARE))
    data = running.write("data.csv", "city\na\n")
    assert "--create-source" in running.text("ingest", "bare", data, exit_code=1)
    sent = running.found("ingest", "bare", data, "--create-source", "--no-wait")
    assert (sent["topic"], sent["records"]) == ("odf.push.bare.auto", 1)
    (source,) = running.found("inspect", "bare")["sources"]
    assert (source["name"], source["read"], source["merge"]) == (
        "auto",
        {"kind": "Csv", "header": True},
        {"kind": "Append"},
    )


def test_everything_that_was_committed_is_verified(running: Cli, system: PlayingSystem) -> None:
    for cities in ("ab", "c"):
        running.found("ingest", "city", "-", stdin=lines(*cities))
    running.found("watermark", "set", "city", "2024-01-01T00:00:00Z")
    found = running.found("verify")
    assert found["ok"] is True
    (source,) = found["datasets"][0]["sources"]
    assert (source["blocks"], source["records"], source["rows"], source["next"]) == (2, 3, 3, {"0": 2})
    assert "without gap" in running.text("verify", "city")


def test_the_last_rows_are_shown_across_slices(running: Cli, system: PlayingSystem) -> None:
    for cities in ("ab", "cd"):
        running.found("ingest", "city", "-", stdin=lines(*cities))
    rows = [json.loads(line) for line in running.text("tail", "city", "-n", "3", "-o", "json").splitlines()]
    assert [(row["offset"], row["city"]) for row in rows] == [(1, "b"), (2, "c"), (3, "d")]
    header, *table = running.text("tail", "city").splitlines()
    assert header.split() == ["offset", "op", "system_time", "event_time", "city"]
    assert len(table) == 4


def test_blocks_are_replayed_and_then_told(running: Cli, system: PlayingSystem) -> None:
    running.found("ingest", "city", "-", stdin=lines("a"))
    options = ["--from", "genesis", "--limit", "6", "-o", "json", "--data-dir", str(running.data_dir)]
    command = [sys.executable, "-m", "services.cli", "subscribe", "city", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as subscriber:
        try:
            assert subscriber.stdout is not None
            told = [json.loads(subscriber.stdout.readline()) for _ in range(5)]
            running.found("ingest", "city", "-", stdin=lines("b"))
            told += map(json.loads, subscriber.communicate(timeout=30)[0].splitlines())
        finally:
            subscriber.kill()
    assert [block["sequenceNumber"] for block in told] == [0, 1, 2, 3, 4, 5]
    assert (told[5]["eventKind"], told[5]["offsetInterval"]) == ("AddData", {"start": 1, "end": 1})


def test_new_rows_follow_the_last_ones(running: Cli, system: PlayingSystem) -> None:
    running.found("ingest", "city", "-", stdin=lines("a", "b"))
    options = ["-n", "1", "--follow", "-o", "json", "--data-dir", str(running.data_dir)]
    command = [sys.executable, "-m", "services.cli", "tail", "city", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        try:
            assert follower.stdout is not None
            rows = [json.loads(follower.stdout.readline())]
            running.found("ingest", "city", "-", stdin=lines("c", "d"))
            rows += [json.loads(follower.stdout.readline()) for _ in range(2)]
        finally:
            follower.kill()
    assert [(row["offset"], row["city"]) for row in rows] == [(1, "b"), (2, "c"), (3, "d")]


def test_a_topic_that_was_made_anew_is_gone_on_with_by_choice(running: Cli, tmp_path: Path) -> None:
    with PlayingSystem(Settings(data_dir=running.data_dir), tmp_path) as system:
        running.found("ingest", "city", "-", stdin=lines("a"))
    assert running.found("source", "resume", "city", "--accept-gap", exit_code=1)["error"] == "NoGap"
    make_anew(system)
    assert running.found("source", "resume", "city", "--accept-gap")["change"] == "resumed"
    (source,) = running.found("verify")["datasets"][0]["sources"]
    assert (source["acceptedGaps"], source["next"]) == (1, {"0": 0})


def make_anew(system: PlayingSystem) -> None:
    """Delete the topic, and create it until the broker knows it under another id."""
    admin = admin_client(system.servers)
    admin.delete_topics([system.binding.topic])[system.binding.topic].result()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        create_topics(admin, [Topic(name=system.binding.topic)])
        with suppress(NotFoundError):
            if describe_topic(admin, system.binding.topic).id != system.topic_id:
                return
        time.sleep(0.05)
    raise AssertionError("the topic did not come back")
