"""Fetch step Url: one file, by its scheme."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from odf_common.metadata.sources import EventTimeSourceFromPath, EventTimeSourceFromSystemTime, FetchStepUrl
from odf_common.timestamp import Timestamp
from services.poller.errors import StepRefusedError
from services.poller.fetched import FetchJob, Found, UpToDate

SCHEMES = ("http", "https", "file", "ftp")


def split_url(url: str) -> SplitResult:
    """The parts of a URL; StepRefusedError for what is none or is not supported."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - it is checked only when it is asked for
    except ValueError as error:
        raise StepRefusedError(f"this is no URL: {error}") from error
    if parts.scheme not in SCHEMES:
        raise StepRefusedError(f"a URL begins with {', '.join(SCHEMES)}, not with {parts.scheme or 'nothing'!r}")
    if parts.scheme != "file" and not parts.hostname:
        raise StepRefusedError("the URL names no host")
    return parts


def check_event_time(step: FetchStepUrl) -> None:
    """A URL tells a time by its metadata only."""
    if isinstance(step.event_time, EventTimeSourceFromPath):
        raise StepRefusedError("eventTime FromPath is for FilesGlob: a Url has FromMetadata or FromSystemTime")


def fetch_url(step: FetchStepUrl, job: FetchJob) -> Found:
    """Fetch what the URL names, unless it is the same as last time."""
    check_event_time(step)
    if step.cache is not None and job.last is not None:
        return UpToDate("it was fetched once, and is cached for ever")
    url = job.secrets.filled(step.url)
    parts = split_url(url)
    if parts.scheme == "file":
        from services.poller.fetch.files import fetch_file

        return fetch_file(step, parts, job)
    if parts.scheme == "ftp":
        from services.poller.fetch.ftp import fetch_ftp

        return fetch_ftp(step, parts, job)
    from services.poller.fetch.http import fetch_http

    return fetch_http(step, url, job)


def event_time_of(step: FetchStepUrl, modified: Timestamp | None) -> Timestamp | None:
    """The source event time: when it was modified, unless the step says otherwise."""
    return None if isinstance(step.event_time, EventTimeSourceFromSystemTime) else modified
