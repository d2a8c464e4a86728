from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.supervisor import logs


def test_the_last_error_is_found_among_what_follows_it(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    lines = [("info", "one"), ("error", "no Java"), ("info", "stopped")]
    log.write_text("".join(json.dumps({"level": level, "event": event}) + "\n" for level, event in lines))
    assert logs.last_problem(log, start=0) == "no Java"


def test_without_an_error_entry_the_last_line_tells(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("Traceback\n  File\nValueError: nothing fits\n\n")
    assert logs.last_problem(log, start=0) == "ValueError: nothing fits"


def test_an_earlier_run_is_not_to_blame(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text('{"level": "error", "event": "old"}\n')
    assert logs.last_problem(log, start=log.stat().st_size) is None


def test_a_large_file_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_SIZE", 10)
    log = tmp_path / "folder" / "a.log"
    logs.open_log(log).close()
    log.write_text("more than ten bytes")
    with logs.open_log(log) as file:
        assert file.tell() == 0
    assert (tmp_path / "folder" / "a.log.1").read_text() == "more than ten bytes"
