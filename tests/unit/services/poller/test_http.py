from __future__ import annotations

import gzip
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any
from unittest import mock

import pytest

from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import (
    CompressionFormat,
    EventTimeSourceFromMetadata,
    EventTimeSourceFromPath,
    EventTimeSourceFromSystemTime,
    FetchStepUrl,
    PrepStepDecompress,
    PrepStepPipe,
    RequestHeader,
    SourceCachingForever,
)
from odf_common.timestamp import Timestamp
from services.poller.errors import (
    FetchDamagedError,
    FetchNotFoundError,
    FetchRefusedError,
    FetchUnreachableError,
    StepRefusedError,
)
from services.poller.fetch import fetch
from services.poller.fetch.hang_up import HangUp
from services.poller.fetched import CONTENT_HASH, ETAG, LAST_MODIFIED, Fetched, FetchJob, UpToDate
from tests.unit.services.poller.conftest import MakeJob, WebServer

DATE = "Wed, 01 May 2024 12:00:00 GMT"
TIME = Timestamp.parse("2024-05-01T12:00:00Z")
MODIFIED = FetchedState(kind=LAST_MODIFIED, value="2024-05-01T12:00:00Z")
TAG = FetchedState(kind=ETAG, value='"v1"')


def got(url: str, job: FetchJob, **step: Any) -> Fetched:
    found = fetch(FetchStepUrl(url=url, **step), job)
    assert isinstance(found, Fetched)
    return found


def test_the_tag_becomes_the_state(web: WebServer, make_job: MakeJob) -> None:
    found = got(web.give("/a", b'{"a":1}', etag='"v1"', last_modified=DATE), make_job())
    assert found.file.read() == b'{"a":1}'
    assert (found.state, found.event_time, found.has_more) == (TAG, None, False)


def test_without_a_tag_the_time_does(web: WebServer, make_job: MakeJob) -> None:
    found = got(web.give("/a", b"x", last_modified=DATE), make_job())
    assert (found.state, found.event_time) == (MODIFIED, TIME)


@pytest.mark.parametrize(
    ("rule", "tag", "expected"),
    [
        (None, None, TIME),
        (None, "1", None),
        (EventTimeSourceFromMetadata(), None, TIME),
        (EventTimeSourceFromMetadata(), "1", TIME),
        (EventTimeSourceFromSystemTime(), None, None),
    ],
)
def test_the_event_time(
    web: WebServer, make_job: MakeJob, rule: Any, tag: str | None, expected: Timestamp | None
) -> None:
    headers: dict[str, Any] = {"last_modified": DATE} | ({} if tag is None else {"etag": tag})
    assert got(web.give("/a", b"x", **headers), make_job(), event_time=rule).event_time == expected


def test_an_event_time_from_the_path_is_refused(web: WebServer, make_job: MakeJob) -> None:
    with pytest.raises(StepRefusedError, match="FromPath is for FilesGlob"):
        fetch(FetchStepUrl(url=web.url, event_time=EventTimeSourceFromPath(pattern="x")), make_job())


@pytest.mark.parametrize(
    ("last", "header", "value"), [(TAG, "if-none-match", '"v1"'), (MODIFIED, "if-modified-since", DATE)]
)
def test_what_has_not_changed_is_not_fetched(
    web: WebServer, make_job: MakeJob, last: FetchedState, header: str, value: str
) -> None:
    url = web.give("/a", status=304)
    assert isinstance(fetch(FetchStepUrl(url=url), make_job(last=last)), UpToDate)
    assert web.asked[0][1][header] == value


@pytest.mark.parametrize("last", [TAG, MODIFIED])
def test_a_server_that_ignores_conditions_is_seen_through(
    web: WebServer, make_job: MakeJob, last: FetchedState
) -> None:
    headers: dict[str, Any] = {"etag": '"v1"'} if last is TAG else {"last_modified": DATE}
    assert isinstance(fetch(FetchStepUrl(url=web.give("/a", b"x", **headers)), make_job(last=last)), UpToDate)


def test_a_new_tag_is_something_new(web: WebServer, make_job: MakeJob) -> None:
    assert got(web.give("/a", b"x", etag='"v2"'), make_job(last=TAG)).state.value == '"v2"'


def test_a_source_that_tells_nothing_is_fetched_once_and_then_on_request(web: WebServer, make_job: MakeJob) -> None:
    step = FetchStepUrl(url=web.give("/a", b"x"))
    first = fetch(step, make_job())
    assert isinstance(first, Fetched)
    assert first.state.kind == CONTENT_HASH
    assert fetch(step, make_job(last=first.state)) == UpToDate(
        "the source does not tell whether it has changed: `odf pull --force` fetches it again"
    )
    assert len(web.asked) == 1
    assert isinstance(fetch(step, make_job(last=first.state, force=True)), UpToDate)
    web.give("/a", b"y")
    assert isinstance(fetch(step, make_job(last=first.state, force=True)), Fetched)


def test_cached_for_ever(web: WebServer, make_job: MakeJob) -> None:
    url = web.give("/a", b"x", etag='"v2"')
    step = FetchStepUrl(url=url, cache=SourceCachingForever())
    assert isinstance(fetch(step, make_job()), Fetched)
    assert isinstance(fetch(step, make_job(last=TAG, force=True)), UpToDate)


def test_headers_and_templates(web: WebServer, make_job: MakeJob) -> None:
    web.give("/a?k=s%2Fe", b"x", etag="1")
    headers = (RequestHeader(name="Authorization", value="Bearer ${{ env.TOKEN }}"),)
    job = make_job(environment={"TOKEN": "s3cret", "K": "s%2Fe"}, settings={"env_allow": "TOKEN, K"})
    got(web.url + "/a?k=${{ env.K }}", job, headers=headers)
    assert web.asked[0][1]["authorization"] == "Bearer s3cret"


def test_a_header_cannot_bring_another_one(web: WebServer, make_job: MakeJob) -> None:
    headers = (RequestHeader(name="x", value="a\r\nHost: other"),)
    with pytest.raises((StepRefusedError, FetchUnreachableError)):
        got(web.give("/a", b"x"), make_job(), headers=headers)
    assert web.asked == []


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (404, FetchNotFoundError, "the server says 404 Not Found"),
        (410, FetchNotFoundError, "410"),
        (401, FetchUnreachableError, "401"),
        (500, FetchUnreachableError, "500"),
        (206, FetchUnreachableError, "206"),
        (304, FetchUnreachableError, "304"),
    ],
)
def test_other_answers(web: WebServer, make_job: MakeJob, status: int, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        got(web.give("/a", status=status), make_job())


def test_nobody_listens(make_job: MakeJob) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(FetchUnreachableError):
        got(f"http://127.0.0.1:{port}/a", make_job())


def test_a_page_for_people_is_no_data(web: WebServer, make_job: MakeJob) -> None:
    url = web.give("/a", b"\n <!DOCTYPE html><html><body>Please log in", content_type="text/html")
    with pytest.raises(FetchDamagedError, match="an HTML page, not data: '<!DOCTYPE html><html><body>Please log in'"):
        got(url, make_job())
    assert got(url, make_job(prepare=(PrepStepPipe(command=("html2csv",)),))).state.kind == CONTENT_HASH


def test_an_answer_that_ends_early(web: WebServer, make_job: MakeJob) -> None:
    url = web.give("/a", b"half", content_length="8", etag="1")
    with pytest.raises(FetchDamagedError, match="ended before all of it had come"):
        got(url, make_job())


def test_chunks_that_end_early(web: WebServer, make_job: MakeJob) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        request.close_connection = True

    with pytest.raises(FetchDamagedError, match="ended before all of it had come"):
        got(web.raw("/a", answer), make_job())


def test_too_large_by_its_length(web: WebServer, make_job: MakeJob) -> None:
    with pytest.raises(FetchRefusedError, match=r"larger than 3 bytes \(ODF_POLLER_MAX_SIZE\)"):
        got(web.give("/a", b"four"), make_job(settings={"max_size": 3}))


def test_too_large_without_a_length(web: WebServer, make_job: MakeJob) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 100_000)
        request.close_connection = True

    with pytest.raises(FetchRefusedError, match="larger than 1000 bytes"):
        got(web.raw("/a", answer), make_job(settings={"max_size": 1000}))


def test_a_server_that_hangs(web: WebServer, make_job: MakeJob) -> None:
    over = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        over.wait(20)

    url = web.raw("/a", answer)
    with pytest.raises(FetchUnreachableError, match=r"did not answer within 0.2 s \(ReadTimeout\)"):
        got(url, make_job(settings={"read_timeout_s": 0.2}))
    over.set()


@pytest.mark.parametrize("start", [b"", b"HTTP/1.0 200 OK\r\n\r\n"], ids=["headers", "body"])
def test_a_server_that_drips(web: WebServer, make_job: MakeJob, start: bytes) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(start or b"HTTP/1.0 200 OK\r\nX-Slow: ")
        request.close_connection = True
        for _ in range(400):
            try:
                request.wfile.write(b"x")
                request.wfile.flush()
            except OSError:
                return
            time.sleep(0.05)

    began = time.monotonic()
    with pytest.raises(FetchUnreachableError, match=r"longer than 0.5 s"):
        got(web.raw("/a", answer), make_job(settings={"fetch_timeout_s": 0.5}))
    assert time.monotonic() - began < 5


def test_encryption_does_not_keep_a_connection_open(make_job: MakeJob) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, HangUp(make_job(settings={"fetch_timeout_s": 0.1})) as hang_up:
        hang_up.add(ours)
        encrypted = socket.socket(fileno=ours.detach())  # as TLS does it
        with encrypted:
            encrypted.settimeout(10)
            assert encrypted.recv(1) == b""


def test_a_poller_that_stops_lets_go(web: WebServer, make_job: MakeJob) -> None:
    over, stopping = threading.Event(), threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        stopping.set()
        over.wait(20)

    began = time.monotonic()
    with pytest.raises(FetchUnreachableError, match="the poller stops"):
        got(web.raw("/a", answer), make_job(stopping=stopping.is_set, settings={"read_timeout_s": 20}))
    assert time.monotonic() - began < 5
    over.set()


def test_redirects_on_one_server_are_followed(web: WebServer, make_job: MakeJob) -> None:
    web.give("/b", b"x", etag="1")
    url = web.give("/a", status=302, location="/b")
    headers = (RequestHeader(name="X-Key", value="k"),)
    assert got(url, make_job(), headers=headers).file.read() == b"x"
    assert [asked[1].get("x-key") for asked in web.asked] == ["k", "k"]


def test_a_redirect_to_a_private_address_is_refused(web: WebServer, other_web: WebServer, make_job: MakeJob) -> None:
    url = web.give("/a", status=302, location=other_web.give("/b", b"secret"))
    with pytest.raises(FetchRefusedError, match=r"redirects to 127.0.0.1 .*private network.*ALLOW_PRIVATE_REDIRECTS"):
        got(url, make_job())
    assert other_web.asked == []


def test_a_redirect_to_a_name_whose_address_changes_meanwhile_is_refused(
    web: WebServer, other_web: WebServer, make_job: MakeJob
) -> None:
    url = web.give("/a", status=302, location=other_web.give("/b", b"secret"))
    with (
        mock.patch("services.poller.fetch.http.check_public_host"),  # what the name was at first
        pytest.raises(FetchRefusedError, match="private network"),
    ):
        got(url, make_job())
    assert other_web.asked == []


def test_a_redirect_to_a_private_address_may_be_allowed_but_gets_no_headers(
    web: WebServer, other_web: WebServer, make_job: MakeJob
) -> None:
    url = web.give("/a", status=307, location=other_web.give("/b", b"x", etag="1"))
    job = make_job(settings={"allow_private_redirects": True})
    got(url, job, headers=(RequestHeader(name="Authorization", value="Bearer k"),))
    assert "authorization" in web.asked[0][1]
    assert "authorization" not in other_web.asked[0][1]


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("/a", "redirects more than 5 times"),
        ("file:///etc/passwd", "begins with 'file'"),
        ("ftp://example.org/x", "begins with 'ftp'"),
        ("http://a:b/", "URL"),
        ("http://169.254.169.254/latest/meta-data", "private network"),
        ("http://localhost:1/x", "private network"),
    ],
)
def test_redirects_that_lead_nowhere(web: WebServer, make_job: MakeJob, location: str, text: str) -> None:
    with pytest.raises((FetchRefusedError, FetchUnreachableError), match=text):
        got(web.give("/a", status=302, location=location), make_job())


def test_an_encoding_that_was_not_asked_for(web: WebServer, make_job: MakeJob) -> None:
    packed = gzip.compress(b"text")
    url = web.give("/a", packed, content_encoding="gzip", etag="1")
    assert got(url, make_job()).file.read() == b"text"
    known = (PrepStepDecompress(format=CompressionFormat.GZIP),)
    assert got(url, make_job(prepare=known)).file.read() == packed
    with pytest.raises(FetchDamagedError, match="content encoding 'br'"):
        got(web.give("/b", b"x", content_encoding="br"), make_job())


@pytest.mark.parametrize(
    "url", ["gopher://x/y", "http://", "http://x:99999/", "nothing", "file:relative", "http://[::1/"]
)
def test_what_is_no_url(make_job: MakeJob, url: str) -> None:
    with pytest.raises(StepRefusedError):
        got(url, make_job())
