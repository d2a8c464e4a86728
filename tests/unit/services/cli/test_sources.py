from __future__ import annotations

from typing import Any

import pytest

from tests.unit.services.cli.datasets import CITY, Cli

POLLED = """\
kind: DatasetSnapshot
version: 1
content:
  name: polled
  kind: Root
  metadata:
  - kind: SetPollingSource
    fetch:
      kind: Url
      url: https://example.com/cities.csv
    read:
      kind: Csv
      header: true
      schema:
      - city STRING
    merge:
      kind: Snapshot
      primaryKey: [city]
"""


def the_source(cli: Cli, dataset: str = "city") -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = cli.found("source", "list", dataset)
    return found


def test_a_source_is_switched_off_and_on_without_a_word_in_the_chain(cli: Cli) -> None:
    cli.add()
    head = cli.found("list")[0]["head"]
    assert cli.found("source", "disable", "city")["change"] == "off"
    assert the_source(cli)["state"] == "off"
    assert "switched off: city, source sensors" in cli.text("status")
    assert cli.found("source", "disable", "city", "sensors")["change"] == "up to date"
    assert cli.found("source", "enable", "city")["change"] == "on"
    assert the_source(cli)["state"] == "active"
    assert cli.found("list")[0]["head"] == head


def test_a_source_that_ends_in_the_chain_is_noted_with_a_warning(cli: Cli) -> None:
    cli.add()
    result = cli.run("source", "disable", "city", "sensors", "--in-chain")
    assert result.exit_code == 0
    assert "cannot read" in result.stderr
    assert (the_source(cli)["active"], the_source(cli)["state"]) == (False, "disabled")
    assert cli.found("source", "disable", "city", "--in-chain", "--yes", exit_code=1)["error"] == "InvalidEvent"
    assert "odf append city" in cli.text("source", "enable", "city", exit_code=1)


def test_a_polling_source_is_listed_as_default_with_its_schedule(cli: Cli) -> None:
    cli.add(POLLED)
    assert (the_source(cli, "polled")["name"], the_source(cli, "polled")["kind"]) == ("default", "polling")
    assert "polled by hand" in cli.text("source", "list", "polled")
    cli.found("source", "set", "polled", "--every", "60")
    assert "polled every 60 s" in cli.text("source", "list", "polled")
    settings = cli.found("source", "set", "polled", "--cron", "15 * * * *")["settings"]
    assert (settings["poll_every_s"], settings["poll_cron"]) == (None, "15 * * * *")
    settings = cli.found("source", "set", "polled", "--no-schedule")["settings"]
    assert (settings["poll_every_s"], settings["poll_cron"]) == (None, None)


def test_a_polling_source_ends_in_the_chain_too(cli: Cli) -> None:
    cli.add(POLLED)
    assert cli.found("source", "disable", "polled", "--in-chain", "--yes")["event"] == "DisablePollingSource"
    assert the_source(cli, "polled")["active"] is False


def test_settings_of_time_and_columns(cli: Cli) -> None:
    cli.add()
    options = ("--max-ahead", "3600", "--no-accept-new-columns", "--event-id-window", "60")
    settings = cli.found("source", "set", "city", *options)["settings"]
    assert (settings["max_ahead_s"], settings["accept_new_columns"], settings["event_id_window_s"]) == (3600, False, 60)
    shown = cli.text("source", "list", "city")
    assert "guard 3600 s; no new columns" in shown
    assert "event ids 60 s" in shown
    settings = cli.found("source", "set", "city", "--no-max-ahead", "--accept-new-columns")["settings"]
    assert (settings["max_ahead_s"], settings["accept_new_columns"]) == (None, True)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("--cron", "at noon"), "--cron"),
        (("--cron", "* * * * *", "--every", "60"), "one schedule"),
        (("--every", "0"), "--every"),
        ((), "say what to change"),
    ],
)
def test_wrong_settings_are_refused_by_their_option(cli: Cli, options: tuple[str, ...], hint: str) -> None:
    cli.add(POLLED)
    refused = cli.run("source", "set", "polled", *options)
    assert refused.exit_code == 2
    assert hint in refused.stderr


def test_a_push_source_has_no_schedule(cli: Cli) -> None:
    cli.add(CITY)
    refused = cli.run("source", "set", "city", "--every", "60")
    assert (refused.exit_code, "only polling sources" in refused.stderr) == (2, True)
