from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

from odf_common.catalog.catalog import Catalog
from odf_common.messages.payload import FetchedState
from odf_common.repository.repository import Repository
from odf_common.settings import Settings
from services.cli.__main__ import app
from services.cli.receipts import Receipt
from services.poller.errors import FetchNotFoundError
from services.poller.fetched import UpToDate
from services.poller.lock import PollRunsError
from services.poller.poll import PollWaitsError, Sent
from services.poller.topic import Positions
from tests.streams import create_dataset

SENT = Sent(
    positions=Positions({0: 4}, {0: 5}),
    messages=1,
    size=9,
    state=FetchedState(kind="odf/etag", value="v2"),
    has_more=True,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings = Settings(data_dir=tmp_path)
    with Catalog.open(settings.catalog_url) as catalog:
        create_dataset(Repository.at(settings.repository_location, catalog), "rates", sources=())
    monkeypatch.setenv("ODF_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    return tmp_path


def pull(folder: Path, *options: str, outcomes: list[Any]) -> tuple[int, str, list[dict[str, Any]]]:
    """Exit code, output, and how each poll was asked for."""
    with mock.patch("services.poller.poll.Poller.poll", side_effect=outcomes) as poll:
        done = CliRunner().invoke(app, ["pull", "rates", "--data-dir", str(folder), *options])
    return done.exit_code, done.output, [dict(call.kwargs) for call in poll.call_args_list]


def test_up_to_date(folder: Path) -> None:
    code, output, calls = pull(folder, "--no-wait", outcomes=[UpToDate("the server says so")])
    assert (code, output) == (0, "rates: up to date, the server says so\n")
    assert calls == [{"force": False}]


def test_what_was_sent_without_waiting(folder: Path) -> None:
    code, output, calls = pull(folder, "--no-wait", "--force", "-o", "json", outcomes=[SENT])
    assert code == 0
    assert json.loads(output)["polls"] == [
        {
            "bytes": 9,
            "messages": 1,
            "start": {"0": 4},
            "next": {"0": 5},
            "state": {"kind": "odf/etag", "value": "v2"},
            "hasMore": True,
        }
    ]
    assert calls == [{"force": True}]


def test_a_poll_that_fails(folder: Path) -> None:
    code, output, _ = pull(folder, "--no-wait", "-o", "json", outcomes=[FetchNotFoundError("rates: Url x: 404")])
    assert code == 1
    assert json.loads(output) == {"error": "FetchNotFound", "message": "rates: Url x: 404"}


@pytest.mark.parametrize("error", [PollRunsError("busy"), PollWaitsError("too early")])
def test_who_does_not_wait_is_told_that_it_is_too_early(folder: Path, error: Exception) -> None:
    code, output, _ = pull(folder, "--no-wait", outcomes=[error] * 3)
    assert (code, output) == (1, f"error: {error}\n")


def test_nothing_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ODF_KAFKA_BOOTSTRAP_SERVERS")
    code, output, calls = pull(folder, outcomes=[])
    assert (code, calls) == (1, [])
    assert "nothing runs on" in output


@pytest.mark.parametrize("options", [("-o", "json"), ()])
def test_what_came_before_a_poll_that_fails_is_told(folder: Path, options: tuple[str, ...]) -> None:
    outcomes = [SENT, FetchNotFoundError("rates: gone")]
    with (
        mock.patch("services.cli.block_topic.block_feed"),
        mock.patch("services.cli.receipts.wait_for_blocks", return_value=Receipt()),
    ):
        code, output, _ = pull(folder, *options, outcomes=outcomes)
    assert code == 1
    if options:
        found = json.loads(output)
        assert (found["error"], found["message"]) == ("FetchNotFound", "rates: gone")
        assert [poll["start"] for poll in found["polls"]] == [{"0": 4}]
    else:
        assert output.startswith("fetched 9 bytes, sent in 1 message\n")
        assert output.endswith("error: rates: gone\n")
