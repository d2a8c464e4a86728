from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from odf_common.errors import MalformedBytesError
from odf_common.identity.did import DatasetId
from odf_common.ingest.media_types import UnsupportedMediaTypeError
from odf_common.messages.payload import MAX_INLINE_SIZE, UPLOAD_MEDIA_TYPE, UploadedPayload
from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStep,
    ReadStepJson,
    ReadStepNdJson,
)
from odf_common.uploads import UploadArea
from services.cli.payloads import Payloads, PayloadTooLargeError, is_event_id
from services.cli.producing import Outgoing
from services.cli.reporting import STDIN

CITY = DatasetId(bytes(32))
SNAPSHOT = MergeStrategySnapshot(primary_key=("city",))
LINE = b'{"city": "a"}\n'


@pytest.fixture
def area(tmp_path: Path) -> UploadArea:
    return UploadArea(tmp_path / "uploads")


def payloads(
    area: UploadArea,
    *,
    read: ReadStep | None = None,
    merge: MergeStrategy | None = None,
    max_size: int = 1 << 30,
    **more: Any,
) -> Payloads:
    source = AddPushSource(source_name="default", read=read or ReadStepNdJson(), merge=merge or MergeStrategyAppend())
    return Payloads(source=source, dataset_id=CITY, area=area, max_size=max_size, **more)


def a_file(tmp_path: Path, data: bytes, name: str = "data.ndjson") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def uploaded(area: UploadArea, message: Outgoing) -> tuple[UploadedPayload, bytes]:
    assert message.headers["content-type"] == UPLOAD_MEDIA_TYPE
    reference = UploadedPayload.from_json(message.value)
    data = area.path(CITY, reference.name).read_bytes()
    assert (reference.size, reference.hash.digest) == (len(data), hashlib.sha256(data).digest())
    return reference, data


def test_a_small_file_is_cut_into_messages(tmp_path: Path, area: UploadArea) -> None:
    file = a_file(tmp_path, LINE * 30_000)
    messages = list(payloads(area, timestamp_ms=7).messages([file]))
    assert len(messages) > 1
    assert sum(message.records or 0 for message in messages) == 30_000
    assert {message.timestamp_ms for message in messages} == {7}
    assert all(message.headers == {} for message in messages)


def test_a_large_file_goes_to_the_upload_area(tmp_path: Path, area: UploadArea) -> None:
    data = LINE * (MAX_INLINE_SIZE // len(LINE) + 1)
    read: list[int] = []
    (message,) = payloads(area, on_read=read.append).messages([a_file(tmp_path, data)])
    reference, found = uploaded(area, message)
    assert (found, reference.media_type, message.size, message.records) == (data, None, len(data), None)
    assert sum(read) == len(data)


def test_what_cannot_be_cut_goes_to_the_upload_area(tmp_path: Path, area: UploadArea) -> None:
    (message,) = payloads(area).messages([a_file(tmp_path, b"PAR1", "data.parquet")])
    assert uploaded(area, message)[0].media_type == "application/vnd.apache.parquet"


def test_a_snapshot_stays_in_one_piece(tmp_path: Path, area: UploadArea) -> None:
    small, large = a_file(tmp_path, LINE * 30_000), a_file(tmp_path, LINE * 90_000, "large.ndjson")
    one, two = payloads(area, merge=SNAPSHOT).messages([small, large])
    assert (one.value, one.partition) == (small.read_bytes(), 0)
    assert uploaded(area, two)[1] == large.read_bytes()


def test_only_a_snapshot_can_be_empty(tmp_path: Path, area: UploadArea) -> None:
    empty = a_file(tmp_path, b"")
    assert list(payloads(area).messages([empty])) == []
    assert [message.value for message in payloads(area, merge=SNAPSHOT).messages([empty])] == [b""]


def test_a_file_with_an_id_is_one_message(tmp_path: Path, area: UploadArea) -> None:
    (message,) = payloads(area, event_id="e1").messages([a_file(tmp_path, LINE * 30_000)])
    assert message.headers == {"ce_id": "e1", "ce_source": "odf-cli"}


def test_the_name_of_a_file_tells_its_format(tmp_path: Path, area: UploadArea) -> None:
    file = a_file(tmp_path, b"city\na\n", "data.csv")
    assert [message.headers for message in payloads(area).messages([file])] == [{"content-type": "text/csv"}]
    (message,) = payloads(area, media_type="application/x-ndjson").messages([file])
    assert message.headers == {}


def test_an_unknown_format_is_refused(tmp_path: Path, area: UploadArea) -> None:
    with pytest.raises(UnsupportedMediaTypeError, match="text/html"):
        list(payloads(area, media_type="text/html").messages([a_file(tmp_path, b"x")]))


def test_nothing_is_sent_of_a_small_file_that_breaks_in_the_middle(tmp_path: Path, area: UploadArea) -> None:
    data = json.dumps([{"city": "a" * 100}] * 5_000).encode()[:-1] + b"!"
    messages = payloads(area, read=ReadStepJson()).messages([a_file(tmp_path, data, "data.json")])
    with pytest.raises(MalformedBytesError):
        next(messages)


def test_standard_input_is_sent_while_it_is_read(
    tmp_path: Path, area: UploadArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINE * 90_000)))
    assert len(list(payloads(area).messages([STDIN]))) > 1


def test_a_snapshot_from_standard_input_is_uploaded(
    tmp_path: Path, area: UploadArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINE)))
    (message,) = payloads(area, merge=SNAPSHOT).messages([STDIN])
    assert uploaded(area, message)[1] == LINE


def test_an_upload_that_is_too_large_leaves_nothing(tmp_path: Path, area: UploadArea) -> None:
    file = a_file(tmp_path, LINE * 90_000)
    with pytest.raises(PayloadTooLargeError, match="ODF_MAX_UPLOAD_SIZE"):
        list(payloads(area, max_size=1 << 20).messages([file]))
    assert list((tmp_path / "uploads").rglob("*.*")) == []


def test_an_interrupted_upload_leaves_nothing(tmp_path: Path, area: UploadArea) -> None:
    def interrupt(size: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(payloads(area, on_read=interrupt).messages([a_file(tmp_path, LINE * 90_000)]))
    assert [path for path in (tmp_path / "uploads").rglob("*") if path.is_file()] == []


def test_an_upload_that_was_never_sent_is_forgotten(tmp_path: Path, area: UploadArea) -> None:
    sender = payloads(area)
    files = [a_file(tmp_path, LINE * 90_000), a_file(tmp_path, LINE, "small.ndjson")]
    sender.forget(list(sender.messages(files)))
    assert [path for path in (tmp_path / "uploads").rglob("*") if path.is_file()] == []


def test_what_is_wrong_names_its_file(area: UploadArea, tmp_path: Path) -> None:
    path = a_file(tmp_path, b"[1", "bad.json")
    with pytest.raises(MalformedBytesError, match=r"bad\.json: not the JSON"):
        list(payloads(area).messages([path]))


@pytest.mark.parametrize("bad", ["missing", "folder"])
def test_nothing_is_sent_where_a_file_cannot_be_opened(area: UploadArea, tmp_path: Path, bad: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"No such file|Is a directory"):
        next(payloads(area).messages([a_file(tmp_path, LINE), tmp_path / bad]))


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("a", True), ("é#1", True), ("a" * 255, True), ("", False), (" a", False), ("a\nb", False), ("a" * 256, False)],
)
def test_event_ids(text: str, is_one: bool) -> None:
    assert is_event_id(text) == is_one
