"""Fetch step FilesGlob: files of a pattern, one at a time, in the order of their names."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from odf_common.metadata.sources import (
    EventTimeSource,
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    FetchStepFilesGlob,
    SourceOrdering,
)
from odf_common.timestamp import Timestamp
from services.poller.errors import FetchNotFoundError, FetchRefusedError, StepRefusedError
from services.poller.fetch.event_times import check_from_path, event_time_in
from services.poller.fetch.files import opened, whole_copy
from services.poller.fetched import ETAG, Fetched, FetchJob, Found, UpToDate, checked_state
from services.poller.settings import PollerSettings

_MAX_FILES = 1_000_000


def check_glob(step: FetchStepFilesGlob, settings: PollerSettings) -> None:
    """StepRefusedError for what cannot be followed."""
    if step.order is SourceOrdering.BY_EVENT_TIME:
        raise StepRefusedError("order ByEventTime is not supported: files are taken in the order of their names")
    if isinstance(step.event_time, EventTimeSourceFromMetadata):
        raise StepRefusedError("eventTime FromMetadata is for Url: FilesGlob has FromPath or FromSystemTime")
    if isinstance(step.event_time, EventTimeSourceFromPath):
        check_from_path(step.event_time)
    _pattern(step.path, settings)


def fetch_next_file(step: FetchStepFilesGlob, job: FetchJob) -> Found:
    """The first file whose name comes after the one of last time."""
    check_glob(step, job.settings)
    last = job.state_of(ETAG)
    pattern = _pattern(job.secrets.filled(step.path), job.settings)
    names, there_are_some = _names(pattern, after=last, job=job)
    if not there_are_some:
        raise FetchNotFoundError(f"no file matches {pattern}")
    if not names:
        return UpToDate(f"no file has a name after {last!r}")
    name = min(names)
    file, _ = opened(names[name], job.settings)
    with file:
        copy = whole_copy(file, job)
    return Fetched(
        file=copy,
        state=checked_state(ETAG, name),
        event_time=_event_time(step.event_time, name),
        has_more=len(names) > 1,
    )


def _event_time(rule: EventTimeSource | None, name: str) -> Timestamp | None:
    return event_time_in(name, rule) if isinstance(rule, EventTimeSourceFromPath) else None


def _names(pattern: str, *, after: str | None, job: FetchJob) -> tuple[dict[str, Path], bool]:
    """Where the files behind a name are, and whether any file matches at all."""
    found: dict[str, Path] = {}
    count = 0
    for path in _matches(pattern, job):
        count += 1
        job.check_time()
        if count > _MAX_FILES:
            raise FetchRefusedError(f"more than {_MAX_FILES} files match {pattern}: choose a narrower pattern")
        name = path.name
        if after is not None and name <= after:
            continue
        if found.get(name) == path:
            continue  # two `**` lead to a file in several ways
        if name in found:
            raise FetchRefusedError(
                f"two files have the name {name!r}, {found[name]} and {path}: names say what was fetched, so there may "
                "be one of each"
            )
        found[name] = path
    return found, count > 0


def _matches(pattern: str, job: FetchJob) -> Iterator[Path]:
    root, *parts = Path(pattern).parts
    return _below(Path(root), parts, job) if parts else iter(())


def _below(folder: Path, parts: Sequence[str], job: FetchJob) -> Iterator[Path]:
    """The files below a folder that the parts of a pattern lead to, looking at the clock: there may be many folders."""
    job.check_time()
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _below(folder, rest or ("*",), job)
        for entry in _entries(folder):
            # A link may lead back to where we are.
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                yield from _below(folder / entry.name, parts, job)
    elif not glob.has_magic(part):
        yield from _at(folder / part, rest, job)
    else:
        for entry in _entries(folder):
            is_shown = not entry.name.startswith(".") or part.startswith(".")
            if is_shown and fnmatch.fnmatchcase(entry.name, part):
                yield from _at(folder / entry.name, rest, job)


def _at(path: Path, rest: Sequence[str], job: FetchJob) -> Iterator[Path]:
    if rest and os.path.isdir(path):
        yield from _below(path, rest, job)
    elif not rest and os.path.isfile(path):
        yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing if it may not be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _pattern(path: str, settings: PollerSettings) -> str:
    """The pattern as an absolute one; relative ones are below the root."""
    path = path.removeprefix("file://")
    if "\0" in path or not path:
        raise StepRefusedError("the path of FilesGlob is empty or has a zero in it")
    if path.startswith("/"):
        return path
    if settings.files_root is None:
        raise StepRefusedError(
            f"the path {path!r} is relative: write an absolute one, or say by ODF_POLLER_FILES_ROOT below which folder "
            "files lie"
        )
    return str(settings.files_root.absolute() / path)
