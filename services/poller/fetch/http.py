"""Fetching over HTTP: only what has changed, whole, and from nowhere that a redirect may not lead to."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any, BinaryIO

import httpx

from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import (
    CompressionFormat,
    EventTimeSourceFromMetadata,
    FetchStepUrl,
    PrepStep,
    PrepStepDecompress,
)
from odf_common.timestamp import Timestamp
from services.poller.addresses import check_public, check_public_host
from services.poller.content import content_state, copied, refuse_html
from services.poller.errors import (
    FetchDamagedError,
    FetchNotFoundError,
    FetchRefusedError,
    FetchUnreachableError,
    StepRefusedError,
)
from services.poller.fetch.hang_up import HangUp
from services.poller.fetch.url import event_time_of
from services.poller.fetched import (
    ETAG,
    LAST_MODIFIED,
    Fetched,
    FetchJob,
    Found,
    UpToDate,
    checked_state,
    last_modified,
)

for _name in ("httpx", "httpcore"):  # they tell of URLs and headers, which may hold keys
    logging.getLogger(_name).setLevel(logging.WARNING)

_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_NOT_MODIFIED = 304
_OK = 200


def fetch_http(step: FetchStepUrl, url: str, job: FetchJob) -> Found:
    """Fetch a URL unless the server, or its tag, says that it is what the chain has."""
    if (refusal := job.refuse_uncached()) is not None:
        return refusal
    own_headers = {each.name: job.secrets.filled(each.value) for each in step.headers or ()}
    try:
        with HangUp(job) as hang_up, _Visit(job, hang_up).answer(_parsed(url), own_headers) as response:
            return _found(step, response, job)
    except httpx.TimeoutException as error:
        job.check_time()
        silence = job.settings.connect_timeout_s if isinstance(error, httpx.ConnectTimeout) else None
        raise FetchUnreachableError(
            f"it did not answer within {silence or job.settings.read_timeout_s:g} s ({type(error).__name__})"
        ) from error
    except httpx.RequestError as error:
        job.check_time()
        raise FetchUnreachableError(f"{error or type(error).__name__}") from error


def _parsed(url: str) -> httpx.URL:
    try:
        return httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise StepRefusedError(f"this is no URL: {error}") from error


def _found(step: FetchStepUrl, response: httpx.Response, job: FetchJob) -> Found:
    if response.status_code == _NOT_MODIFIED and job.last is not None:
        return UpToDate("the server says that it has not changed")
    if response.status_code in _GONE:
        raise FetchNotFoundError(f"the server says {response.status_code} {response.reason_phrase}")
    if response.status_code != _OK:
        raise FetchUnreachableError(f"the server says {response.status_code} {response.reason_phrase}".rstrip())
    modified = _modified(response)
    state = _state(response, modified)
    if state is not None and state == job.last:
        return UpToDate("it has the tag or time of last time")
    file, content = _body(response, job)
    state = state or content_state(content)
    if state == job.last:
        return UpToDate("its content is that of last time")
    refuse_html(file, job.prepare)
    # Unasked, the time counts only where it is what tells versions apart.
    told = modified if state.kind != ETAG or isinstance(step.event_time, EventTimeSourceFromMetadata) else None
    return Fetched(file=file, state=state, event_time=event_time_of(step, told))


def _state(response: httpx.Response, modified: Timestamp | None) -> FetchedState | None:
    if etag := response.headers.get("etag", "").strip():
        return checked_state(ETAG, etag)
    return last_modified(modified) if modified is not None else None


def _modified(response: httpx.Response) -> Timestamp | None:
    """What the server says, if it can be understood."""
    try:
        moment = parsedate_to_datetime(response.headers.get("last-modified", ""))
    except ValueError:
        return None
    return Timestamp.from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _body(response: httpx.Response, job: FetchJob) -> tuple[BinaryIO, Any]:
    length = response.headers.get("content-length")
    if length is not None and length.isdecimal():
        job.check_size(int(length))
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise FetchDamagedError(
            f"the server answers in the content encoding {encoding[:40]!r}, which was not asked for"
        )
    try:
        file, content = copied(response.iter_raw(), job)
    except httpx.RemoteProtocolError as error:
        raise FetchDamagedError(f"it ended before all of it had come: {error}") from error
    if "gzip" not in encoding or _unpacks_gzip(job.prepare):
        return file, content
    from services.poller.prepare import Limits, unpacked_gzip

    return copied(unpacked_gzip(file, Limits.of(job.settings)), job)


def _unpacks_gzip(steps: tuple[PrepStep, ...]) -> bool:
    """Whether the source knows already that it is packed."""
    first = steps[0] if steps else None
    return isinstance(first, PrepStepDecompress) and first.format is CompressionFormat.GZIP


@dataclass(frozen=True, slots=True)
class _Visit:
    """One way from a URL to an answer, over redirects."""

    job: FetchJob
    hang_up: HangUp

    @contextmanager
    def answer(self, url: httpx.URL, own_headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """The last answer on the way, not read yet."""
        start = url
        for _ in range(_MAX_REDIRECTS + 1):
            # Headers may hold keys: they are for the server that the source names, and for no other.
            chosen = _same_origin(start, url)
            with self._asked(url, own_headers if chosen else {}, is_chosen=chosen) as response:
                if response.status_code not in _REDIRECTS or "location" not in response.headers:
                    yield response
                    return
                url = self._target(url, response.headers["location"], start)
        raise FetchRefusedError(f"it redirects more than {_MAX_REDIRECTS} times")

    def _target(self, url: httpx.URL, location: str, start: httpx.URL) -> httpx.URL:
        try:
            target = url.join(location)
        except (httpx.InvalidURL, ValueError) as error:
            raise FetchUnreachableError(f"it redirects to what is no URL: {error}") from error
        if target.scheme not in ("http", "https") or not target.host:
            raise FetchRefusedError(f"it redirects to a URL that begins with {target.scheme[:20]!r}")
        if url.scheme == "https" and target.scheme == "http":
            raise FetchRefusedError(f"it redirects from https to http, to {target.host}")
        if not self._may_be_private(start, target):
            check_public_host(target.host, target.port or 443)
        return target

    def _may_be_private(self, start: httpx.URL, target: httpx.URL) -> bool:
        """Where the owner of the source points to is the owner's choice; where others send us is not."""
        return self.job.settings.allow_private_redirects or _same_origin(start, target)

    @contextmanager
    def _asked(self, url: httpx.URL, headers: Mapping[str, str], *, is_chosen: bool) -> Iterator[httpx.Response]:
        self.job.check_time()
        must_be_public = not is_chosen and not self.job.settings.allow_private_redirects

        def trace(event: str, info: Mapping[str, Any]) -> None:
            self.hang_up.trace(event, info)
            if event == "connection.connect_tcp.complete" and must_be_public:
                _check_address(info["return_value"], url.host)

        settings = self.job.settings
        timeout = httpx.Timeout(settings.read_timeout_s, connect=settings.connect_timeout_s)
        with httpx.Client(trust_env=False, timeout=timeout, follow_redirects=False) as client:
            try:
                request = client.build_request(
                    "GET", url, headers={**_ASKED, **_conditions(self.job), **headers}, extensions={"trace": trace}
                )
            except ValueError as error:
                raise StepRefusedError(f"the request's headers cannot be sent: {error}") from error
            response = client.send(request, stream=True)
            try:
                yield response
            finally:
                response.close()


def _check_address(stream: Any, host: str) -> None:
    """The name may have another address now than when it was asked for."""
    try:
        check_public(str(stream.get_extra_info("server_addr")[0]), host)
    except FetchRefusedError:
        stream.close()
        raise


_ASKED = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "odf-streams"}


def _conditions(job: FetchJob) -> dict[str, str]:
    if (etag := job.state_of(ETAG)) is not None:
        return {"if-none-match": etag}
    if (modified := job.state_of(LAST_MODIFIED)) is not None:
        return {"if-modified-since": _http_date(Timestamp.parse(modified).to_datetime())}
    return {}


def _http_date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


def _same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)
