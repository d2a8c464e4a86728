from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import (
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStepFilesGlob,
    FetchStepUrl,
    SourceOrdering,
)
from odf_common.timestamp import Timestamp
from services.poller.errors import (
    FetchDamagedError,
    FetchNotFoundError,
    FetchRefusedError,
    FetchUnreachableError,
    PollError,
    StepRefusedError,
)
from services.poller.fetch import fetch
from services.poller.fetch.event_times import event_time_in
from services.poller.fetch.files_glob import _matches, check_glob
from services.poller.fetched import ETAG, LAST_MODIFIED, Fetched, FetchJob, UpToDate
from services.poller.settings import PollerSettings
from tests.unit.services.poller.conftest import MakeJob

TIME_NS = 1_714_564_800_123_456_789


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def a_file(path: Path, content: bytes = b"x", time_ns: int = TIME_NS) -> Path:
    path.write_bytes(content)
    os.utime(path, ns=(time_ns, time_ns))
    return path


def got(step: FetchStepUrl | FetchStepFilesGlob, job: FetchJob) -> Fetched:
    found = fetch(step, job)
    assert isinstance(found, Fetched)
    return found


def test_the_time_of_a_file_is_its_state_in_milliseconds(data: Path, make_job: MakeJob) -> None:
    step = FetchStepUrl(url=a_file(data / "a b.csv", b"1,2").as_uri())
    found = got(step, make_job())
    assert found.file.read() == b"1,2"
    assert found.state == FetchedState(kind=LAST_MODIFIED, value="2024-05-01T12:00:00.123Z")
    assert found.event_time == Timestamp.parse("2024-05-01T12:00:00.123Z")
    assert isinstance(fetch(step, make_job(last=found.state)), UpToDate)
    a_file(data / "a b.csv", b"1,2,3", TIME_NS + 1_000_000)
    assert got(step, make_job(last=found.state)).file.read() == b"1,2,3"


@pytest.mark.parametrize("url", ["file:x.csv", "file://x/y.csv", "file://", "file:///a%00b"])
def test_urls_that_name_no_file_here(make_job: MakeJob, url: str) -> None:
    with pytest.raises(StepRefusedError, match="file URL"):
        fetch(FetchStepUrl(url=url), make_job())


def test_there_is_no_file(data: Path, make_job: MakeJob) -> None:
    with pytest.raises(FetchNotFoundError, match=r"there is no file .*/nothing"):
        fetch(FetchStepUrl(url=(data / "nothing").as_uri()), make_job())


def test_what_is_no_regular_file_does_not_hold_us(data: Path, make_job: MakeJob) -> None:
    os.mkfifo(data / "pipe")
    for path in (data, data / "pipe", Path("/dev/zero")):
        with pytest.raises(FetchRefusedError, match="no regular file"):
            fetch(FetchStepUrl(url=path.as_uri()), make_job())


def test_files_lie_below_the_root_also_behind_links(data: Path, tmp_path: Path, make_job: MakeJob) -> None:
    a_file(data / "inside")
    a_file(tmp_path / "outside")
    (data / "link-in").symlink_to(data / "inside")
    (data / "link-out").symlink_to(tmp_path / "outside")
    settings = {"files_root": data}
    for name in ("inside", "link-in"):
        assert got(FetchStepUrl(url=(data / name).as_uri()), make_job(settings=settings))
    for url in ((data / "link-out").as_uri(), (tmp_path / "outside").as_uri(), data.as_uri() + "/../outside"):
        with pytest.raises(FetchRefusedError, match="does not lie below"):
            fetch(FetchStepUrl(url=url), make_job(settings=settings))
    assert got(FetchStepUrl(url=(data / "link-out").as_uri()), make_job())


def test_a_file_that_changes_while_it_is_read(data: Path, make_job: MakeJob) -> None:
    path = a_file(data / "a", b"x" * (3 << 20))
    reads = iter(range(100))

    def somebody_writes() -> bool:
        if next(reads) == 1:
            with path.open("ab") as file:
                file.write(b"y")
        return False

    with pytest.raises(FetchDamagedError, match="changed while it was read"):
        fetch(FetchStepUrl(url=path.as_uri()), make_job(stopping=somebody_writes))


def test_a_file_that_is_too_large(data: Path, make_job: MakeJob) -> None:
    with pytest.raises(FetchRefusedError, match="larger than 3 bytes"):
        fetch(FetchStepUrl(url=a_file(data / "a", b"four").as_uri()), make_job(settings={"max_size": 3}))


def glob_step(data: Path, pattern: str = "*.csv", **more: Any) -> FetchStepFilesGlob:
    return FetchStepFilesGlob(path=f"{data}/{pattern}", **more)


def test_files_come_one_by_one_in_the_order_of_their_names(data: Path, make_job: MakeJob) -> None:
    for number in (2, 10, 1):
        a_file(data / f"{number}.csv", f"{number}".encode())
    a_file(data / "0.txt")
    (data / "0.csv").mkdir()
    last, seen = None, []
    while isinstance(found := fetch(glob_step(data), make_job(last=last)), Fetched):
        seen.append((found.file.read(), found.has_more))
        last = found.state
        assert found.event_time is None
    assert seen == [(b"1", True), (b"10", True), (b"2", False)]
    assert last == FetchedState(kind=ETAG, value="2.csv")
    a_file(data / "11.csv")  # its name lies before the last one
    a_file(data / "3.csv")
    found = got(glob_step(data), make_job(last=last))
    assert (found.state.value, found.has_more) == ("3.csv", False)


def test_patterns_of_folders(data: Path, make_job: MakeJob) -> None:
    for folder in ("a", "a/b", "c", ".hidden"):
        (data / folder).mkdir()
    for name in ("1.csv", "a/2.csv", "a/b/3.csv", "c/4.csv", ".hidden/5.csv", ".6.csv", "a/[7].csv"):
        a_file(data / name)
    (data / "a/b/loop").symlink_to(data)

    def found(pattern: str) -> list[str]:
        return sorted(str(path.relative_to(data)) for path in set(_matches(str(data / pattern), make_job())))

    assert found("**/*.csv") == ["1.csv", "a/2.csv", "a/[7].csv", "a/b/3.csv", "c/4.csv"]
    assert found("*/*.csv") == ["a/2.csv", "a/[7].csv", "c/4.csv"]
    assert found("a/**") == ["a/2.csv", "a/[7].csv", "a/b/3.csv"]
    assert found("**/b/**/*.csv") == ["a/b/3.csv"]
    assert found("[ac]/[0-9].csv") == ["a/2.csv", "c/4.csv"]
    assert found("a/[[]7].csv") == ["a/[7].csv"]
    assert found(".*.csv") == [".6.csv"]
    assert (found("1.csv"), found("nothing/*"), found("1.csv/*")) == (["1.csv"], [], [])


def test_a_search_that_finds_nothing_ends_in_time(make_job: MakeJob) -> None:
    with pytest.raises(FetchUnreachableError, match="longer than"):
        fetch(FetchStepFilesGlob(path="/proc/**/**/no-such-file"), make_job(settings={"fetch_timeout_s": 0.05}))


def test_no_file_at_all(data: Path, make_job: MakeJob) -> None:
    with pytest.raises(FetchNotFoundError, match=r"no file matches .*\*\.csv"):
        fetch(glob_step(data), make_job())


def test_two_files_of_one_name(data: Path, make_job: MakeJob) -> None:
    for folder in ("a", "b"):
        (data / folder).mkdir()
        a_file(data / folder / "1.csv")
    with pytest.raises(FetchRefusedError, match=r"two files have the name '1\.csv'"):
        fetch(glob_step(data, "*/*.csv"), make_job())
    assert got(glob_step(data, "a/*.csv"), make_job()).state.value == "1.csv"


def test_relative_patterns_are_below_the_root(data: Path, make_job: MakeJob) -> None:
    a_file(data / "1.csv")
    step = FetchStepFilesGlob(path="*.csv")
    assert got(step, make_job(settings={"files_root": data})).state.value == "1.csv"
    with pytest.raises(StepRefusedError, match=r"relative: .*ODF_POLLER_FILES_ROOT"):
        fetch(step, make_job())
    with pytest.raises(FetchRefusedError, match="does not lie below"):
        fetch(FetchStepFilesGlob(path="../data/../data2/*.csv"), _beside(data, make_job))


def _beside(data: Path, make_job: MakeJob) -> FetchJob:
    (data.parent / "data2").mkdir()
    a_file(data.parent / "data2" / "1.csv")
    return make_job(settings={"files_root": data})


def test_the_event_time_comes_from_the_name(data: Path, make_job: MakeJob) -> None:
    a_file(data / "sales-2024-01-31-a.csv")
    rule = EventTimeSourceFromPath(pattern=r"(\d{4}-\d\d-\d\d)")
    assert got(glob_step(data, event_time=rule), make_job()).event_time == Timestamp.parse("2024-01-31T00:00:00Z")


@pytest.mark.parametrize(
    ("name", "pattern", "form", "expected"),
    [
        ("x-2024-01-31.csv", r"(\d+-\d+-\d+)", None, "2024-01-31T00:00:00Z"),
        ("20240131T1530.csv", r"^(\d{8}T\d{4})\.csv$", "%Y%m%dT%H%M", "2024-01-31T15:30:00Z"),
        ("2024-01-31 2025-01-31", r"(\d{4}-\d\d-\d\d)", None, "2024-01-31T00:00:00Z"),
        ("A2024B01", r"(?i)a(\d{4}b\d\d)", "%Yb%m", "2024-01-01T00:00:00Z"),
        ("t=2024-01-31T12:00+0200", r"t=(.*)", "%Y-%m-%dT%H:%M%z", "2024-01-31T10:00:00Z"),
        ("x\n2024-01-31\ny", r"(\d+-\d+-\d+)", None, "2024-01-31T00:00:00Z"),
        ("a-b|2024-01-31", r"zzz|(\d+-\d+-\d+)", None, "2024-01-31T00:00:00Z"),
    ],
)
def test_event_times_in_names(name: str, pattern: str, form: str | None, expected: str) -> None:
    rule = EventTimeSourceFromPath(pattern=pattern, timestamp_format=form)
    assert event_time_in(name, rule) == Timestamp.parse(expected)


@pytest.mark.parametrize("name", ["no-date.csv", "2024-13-31.csv"])
def test_names_without_a_time(name: str) -> None:
    with pytest.raises(FetchDamagedError, match=name):
        event_time_in(name, EventTimeSourceFromPath(pattern=r"(\d+-\d+-\d+)"))


@pytest.mark.parametrize("pattern", ["(", "[", "no group", r"(a)\1", "(?<=x)(y)", "(a" * 500, "((a*)*)" * 300, ""])
def test_patterns_that_cannot_be_used_are_refused(data: Path, pattern: str) -> None:
    with pytest.raises(StepRefusedError, match="pattern"):
        check_glob(glob_step(data, event_time=EventTimeSourceFromPath(pattern=pattern)), PollerSettings())


def test_a_pattern_cannot_hold_us() -> None:
    began = time.monotonic()
    with pytest.raises(PollError):
        event_time_in("a" * 250 + "!", EventTimeSourceFromPath(pattern=r"^(([a-z])+.)+[A-Z]([a-z])+$"))
    assert time.monotonic() - began < 2


def test_a_format_that_cannot_be_used_is_refused(data: Path) -> None:
    rule = EventTimeSourceFromPath(pattern="(.*)", timestamp_format="%Q %")
    with pytest.raises(StepRefusedError, match="timestampFormat"):
        check_glob(glob_step(data, event_time=rule), PollerSettings())


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"order": SourceOrdering.BY_EVENT_TIME}, "ByEventTime is not supported"),
        ({"event_time": EventTimeSourceFromMetadata()}, "FromMetadata is for Url"),
    ],
)
def test_what_is_not_supported_is_refused(data: Path, more: dict[str, Any], text: str) -> None:
    with pytest.raises(StepRefusedError, match=text):
        check_glob(glob_step(data, **more), PollerSettings())


def test_what_is_supported_is_not(data: Path) -> None:
    check_glob(
        glob_step(data, order=SourceOrdering.BY_NAME, event_time=EventTimeSourceFromSystemTime()), PollerSettings()
    )
