from __future__ import annotations

import json

from tests.unit.services.cli.datasets import CITY, HOT, Cli

NOON = "2024-01-01T12:00:00Z"


def test_datasets_are_listed_by_alias(cli: Cli) -> None:
    cli.add(f"{CITY}---\n{HOT}")
    city, hot = cli.found("list")
    assert (city["alias"], city["blocks"], city["records"], city["watermark"]) == ("city", 3, 0, None)
    assert hot["alias"] == "hot"
    assert cli.text("list").splitlines()[1].startswith("city   Root")


def test_the_log_is_newest_first(cli: Cli) -> None:
    cli.add()
    assert [line.split("  ")[-1] for line in cli.text("log", "city").splitlines()][:2] == [
        "SetInfo",
        'AddPushSource: "sensors"',
    ]
    blocks = cli.found("log", "city", "--limit", "2")
    assert [block["sequenceNumber"] for block in blocks] == [2, 1]
    assert blocks[0]["prevBlockHash"] == blocks[1]["hash"]


def test_a_dataset_is_found_by_its_id_too(cli: Cli) -> None:
    (city,) = cli.add()
    assert cli.found("inspect", city["id"])["alias"] == "city"
    assert "there is no dataset town" in cli.text("inspect", "town", exit_code=1)


def test_inspect_shows_sources_with_topics_and_positions(cli: Cli) -> None:
    cli.add()
    found = cli.found("inspect", "city")
    (source,) = found["sources"]
    assert (source["name"], source["topic"], source["next"]) == ("sensors", "odf.push.city.sensors", {})
    assert source["read"]["schema"] == ["event_time TIMESTAMP", "city STRING", "t DOUBLE"]
    assert found["info"] == {"description": "Temperatures", "keywords": ["weather"]}
    assert found["vocabulary"]["offsetColumn"] == "offset"
    assert "topic    odf.push.city.sensors" in cli.text("inspect", "city")


def test_a_watermark_advances_and_never_goes_back(cli: Cli) -> None:
    cli.add()
    assert cli.found("watermark", "set", "city", NOON)["change"] == "advanced"
    assert cli.found("watermark", "set", "city", NOON)["change"] == "up to date"
    assert cli.text("watermark", "set", "city", "2023-01-01T00:00:00Z") == "up to date\n"
    assert cli.found("list")[0]["watermark"] == NOON
    assert cli.run("watermark", "set", "city", "yesterday").exit_code == 2


def test_settings_of_a_source_change_one_by_one(cli: Cli) -> None:
    cli.add()
    changed = cli.found("source", "set", "city", "--batch-time", "60", "--batch-rows", "5")
    assert (changed["settings"]["batch_time_s"], changed["settings"]["batch_rows"]) == (60, 5)
    cli.found("source", "set", "city", "sensors", "--watermark-delay", "3")
    (source,) = cli.found("source", "list", "city")
    assert (source["settings"]["batch_time_s"], source["settings"]["watermark_delay_s"]) == (60, 3)
    assert cli.run("source", "set", "city", "--batch-time", "-1").exit_code == 2
    assert cli.run("source", "set", "city").exit_code == 2


def test_resuming_a_source_without_a_problem_changes_nothing(cli: Cli) -> None:
    cli.add()
    assert cli.found("source", "resume", "city")["change"] == "up to date"


def test_status_without_a_running_system_shows_what_the_chain_says(cli: Cli) -> None:
    cli.add()
    found = cli.found("status")
    assert found["services"]["running"] is False
    assert found["datasets"][0]["sources"][0]["lagEvents"] is None
    assert "odf up" in cli.text("status")


def test_commands_that_need_the_system_say_how_to_start_it(cli: Cli) -> None:
    cli.add()
    data = cli.write("data.ndjson", json.dumps({"city": "a"}))
    for command in (["ingest", "city", data], ["doctor", "city"], ["subscribe"], ["dead-letters", "list", "city"]):
        assert "odf up" in cli.text(*command, exit_code=1)
