from __future__ import annotations

import bz2
import gzip
import io
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odf_common.metadata.sources import CompressionFormat, PrepStep, PrepStepDecompress, PrepStepPipe
from services.poller.errors import PrepareError, StepRefusedError
from services.poller.prepare import Limits, prepared

GZIP = PrepStepDecompress(format=CompressionFormat.GZIP)
ZIP = PrepStepDecompress(format=CompressionFormat.ZIP)


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def picking(sub_path: str | None) -> PrepStepDecompress:
    return PrepStepDecompress(format=CompressionFormat.ZIP, sub_path=sub_path)


def out_of(data: bytes, *steps: PrepStep, **limits: Any) -> bytes:
    with prepared(steps, io.BytesIO(data), limits=Limits(**limits)) as file:
        return file.read()


def test_no_step_changes_nothing() -> None:
    assert out_of(b"x") == b"x"
    with prepared(None, io.BytesIO(b"x")) as file:
        assert file.read() == b"x"


@given(st.lists(st.binary(max_size=5000), min_size=1, max_size=4), st.integers(0, 20))
def test_gzip_of_any_members(contents: list[bytes], padding: int) -> None:
    packed = b"".join(map(gzip.compress, contents)) + bytes(padding)
    assert out_of(packed, GZIP) == b"".join(contents)


def test_gzip_larger_than_its_chunks() -> None:
    content = bytes(range(256)) * 20_000
    assert out_of(gzip.compress(content), GZIP) == content


@given(st.binary(min_size=1, max_size=2000), st.data())
def test_a_gzip_file_that_is_cut_off(content: bytes, data: st.DataObject) -> None:
    packed = gzip.compress(content)
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(PrepareError, match=r"gzip file (ends in the middle|is empty)"):
        out_of(packed[:cut], GZIP)


@given(st.binary(min_size=30, max_size=300), st.data())
def test_a_damaged_gzip_file_never_gives_other_bytes(content: bytes, data: st.DataObject) -> None:
    packed = bytearray(gzip.compress(content))
    place = data.draw(st.integers(10, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    with suppress(PrepareError):
        assert out_of(bytes(packed), GZIP) == content


@pytest.mark.parametrize("data", [b"a,b\n1,2\n", b"PK\x03\x04" + bytes(30), b"<html></html>"])
def test_what_is_no_gzip_file(data: bytes) -> None:
    with pytest.raises(PrepareError, match="this is no gzip file"):
        out_of(data, GZIP)


def test_bytes_behind_a_gzip_file() -> None:
    with pytest.raises(PrepareError, match="gzip file is damaged"):
        out_of(gzip.compress(b"x") + b"more", GZIP)


def test_a_gzip_bomb() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    with pytest.raises(PrepareError, match="as bombs do"):
        out_of(bomb, GZIP)
    with pytest.raises(PrepareError, match="more than 1000 bytes come out"):
        out_of(bomb, GZIP, max_size=1000)


def test_a_bomb_in_a_bomb() -> None:
    with pytest.raises(PrepareError, match="as bombs do"):
        out_of(gzip.compress(gzip.compress(bytes(64 << 20))), GZIP, GZIP)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_only_file_of_a_zip_archive(method: int) -> None:
    assert out_of(zip_of({"folder/": b"", "folder/a.csv": b"1,2"}, method), ZIP) == b"1,2"


def test_what_macs_add_does_not_count() -> None:
    assert out_of(zip_of({"a.csv": b"1", "__MACOSX/._a.csv": b"?", ".DS_Store": b"?"}), ZIP) == b"1"


FILES = {"a.csv": b"a", "b.txt": b"b", "sub/c.csv": b"c", "sub/d[1].csv": b"d"}


@pytest.mark.parametrize(
    ("sub_path", "expected"),
    [("a.csv", b"a"), ("*.txt", b"b"), ("sub/c.*", b"c"), ("sub/d[1].csv", b"d"), ("s*/c*", b"c"), ("?.csv", b"a")],
)
def test_a_sub_path_picks_one(sub_path: str, expected: bytes) -> None:
    assert out_of(zip_of(FILES), picking(sub_path)) == expected


@pytest.mark.parametrize(
    ("sub_path", "text"),
    [
        (None, r"has 4 files, name one of them by subPath: 'a\.csv', 'b\.txt'"),
        ("*.csv", r"subPath '\*\.csv' matches 3 files .*'a\.csv', 'sub/c\.csv', 'sub/d\[1\]\.csv'"),
        ("x", r"subPath 'x' matches no file of the zip archive, which has 'a\.csv'"),
        ("A.CSV", "matches no file"),
    ],
)
def test_a_sub_path_that_picks_none_or_several_is_refused(sub_path: str | None, text: str) -> None:
    with pytest.raises(PrepareError, match=text):
        out_of(zip_of(FILES), picking(sub_path))


def test_of_many_names_some_are_shown() -> None:
    with pytest.raises(PrepareError, match=r"'10' and 40 more$"):
        out_of(zip_of({f"{number:02}": b"" for number in range(1, 51)}), ZIP)


@pytest.mark.parametrize(
    "name", ["../a.csv", "/etc/passwd", "a/../../b", "..\\a", "\\a", "C:\\a", "c:a", "a/..", "..", "a\\..\\b"]
)
def test_names_that_lead_out_of_the_archive(name: str) -> None:
    with pytest.raises(PrepareError, match="a name that leads out of it"):
        out_of(zip_of({"a.csv": b"1", name: b"2"}), picking("a.csv"))


@pytest.mark.parametrize("name", ["a..csv", "..a", "a../b", "..."])
def test_names_that_only_look_like_it(name: str) -> None:
    assert out_of(zip_of({name: b"1"}), ZIP) == b"1"


def test_an_archive_without_files() -> None:
    for files in ({}, {"folder/": b""}):
        with pytest.raises(PrepareError, match="has no file"):
            out_of(zip_of(files), ZIP)


@given(st.binary(min_size=1, max_size=3000), st.data())
def test_a_zip_archive_that_is_cut_off(content: bytes, data: st.DataObject) -> None:
    packed = zip_of({"a": content})
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(PrepareError, match=r"zip archive.*(cut off|missing)"):
        out_of(packed[:cut], ZIP)


@given(st.binary(min_size=1, max_size=500), st.data())
def test_a_damaged_zip_archive_never_gives_other_bytes(content: bytes, data: st.DataObject) -> None:
    packed = bytearray(zip_of({"a": content}))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    with suppress(PrepareError):
        assert out_of(bytes(packed), ZIP) == content


@given(st.binary(max_size=300))
def test_any_bytes_as_an_archive(data: bytes) -> None:
    for step in (ZIP, GZIP):
        for each in (data, b"PK\x05\x06" + data, b"\x1f\x8b\x08\x00" + data, data + b"PK\x05\x06" + bytes(18)):
            with suppress(PrepareError):
                out_of(each, step)


def test_what_is_no_zip_archive() -> None:
    with pytest.raises(PrepareError, match="this is no zip archive"):
        out_of(b"a,b\n1,2\n", ZIP)


def patched(data: bytes, change: Callable[[bytearray, int], None]) -> bytes:
    """An archive with its local header and its directory's entry changed."""
    out = bytearray(data)
    change(out, 6)
    change(out, out.index(b"PK\x01\x02") + 8)
    return bytes(out)


def test_an_encrypted_file() -> None:
    def encrypt(out: bytearray, place: int) -> None:
        out[place] |= 1

    with pytest.raises(PrepareError, match=r"'a\.csv' in the zip archive is encrypted"):
        out_of(patched(zip_of({"a.csv": b"1"}), encrypt), ZIP)


def test_a_method_that_nobody_knows() -> None:
    def other_method(out: bytearray, place: int) -> None:
        out[place + 2] = 97

    with pytest.raises(PrepareError, match="packed in a way that is not supported"):
        out_of(patched(zip_of({"a.csv": b"1"}), other_method), ZIP)


def test_a_zip_bomb() -> None:
    with pytest.raises(PrepareError, match="as bombs do"):
        out_of(zip_of({"a": bytes(64 << 20)}), ZIP)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_would_be_unpacked_in_one_go(method: int) -> None:
    with pytest.raises(PrepareError, match=r"not supported \(method 1[24]\): pack it with deflate"):
        out_of(zip_of({"a": b"1"}, method), ZIP)


def test_a_zip_bomb_that_lies_about_its_size() -> None:
    packed = bytearray(zip_of({"a": bytes(64 << 20)}))
    entry = packed.index(b"PK\x01\x02")
    struct.pack_into("<I", packed, entry + 24, 10)
    with pytest.raises(PrepareError):
        out_of(bytes(packed), ZIP)


def test_a_directory_made_to_fill_the_memory() -> None:
    packed = bytearray(zip_of({"a": b"1"}))
    struct.pack_into("<I", packed, len(packed) - 22 + 12, 100 << 20)
    with pytest.raises(PrepareError, match="directory is larger than 16 MiB"):
        out_of(bytes(packed), ZIP)


def test_a_directory_that_only_the_long_form_tells_of() -> None:
    packed = zip_of({"a": b"1"})
    end = packed.index(b"PK\x05\x06")
    size, start = struct.unpack_from("<2I", packed, end + 12)

    def with_long_form(told: int) -> bytes:
        record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, told, start)
        place = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
        return packed[:end] + record + place + packed[end:]

    assert out_of(with_long_form(size), ZIP) == b"1"
    with pytest.raises(PrepareError, match="directory is larger than 16 MiB"):
        out_of(with_long_form(17 << 20), ZIP)


def test_steps_follow_on_each_other() -> None:
    inner = zip_of({"a.gz": gzip.compress(b"text")})
    assert out_of(gzip.compress(inner), GZIP, ZIP, GZIP) == b"text"


def test_wrong_sums_are_seen() -> None:
    packed = bytearray(zip_of({"a": b"some text"}, zipfile.ZIP_STORED))
    packed[packed.index(b"some")] ^= 1
    with pytest.raises(PrepareError, match="damaged"):
        out_of(bytes(packed), ZIP)


def test_a_command_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(StepRefusedError, match="ODF_POLLER_ALLOW_PIPE"):
        out_of(b"x", PrepStepPipe(command=("cat",)))


def test_bz2_is_no_format_of_the_specification() -> None:
    with pytest.raises(PrepareError, match="no gzip file"):
        out_of(bz2.compress(b"x"), GZIP)


def piped(data: bytes, *command: str, **limits: Any) -> bytes:
    return out_of(data, PrepStepPipe(command=command), allow_pipe=True, **limits)


@pytest.mark.slow
class TestPipe:
    def test_the_output_is_the_data(self) -> None:
        assert piped(b"b\na\n", "sort") == b"a\nb\n"

    def test_more_than_fits_into_a_pipe(self) -> None:
        data = bytes(range(256)) * 20_000
        assert piped(data, "cat") == data

    def test_a_command_need_not_read_everything(self) -> None:
        assert piped(b"a\n" * 1_000_000, "head", "-n", "1") == b"a\n"

    def test_there_is_no_shell(self) -> None:
        assert piped(b"", "echo", "$HOME; ls | cat") == b"$HOME; ls | cat\n"

    def test_it_fails(self) -> None:
        with pytest.raises(PrepareError, match=r"the command 'sh' ended with exit code 3: not so"):
            piped(b"", "sh", "-c", "echo not so >&2; exit 3")

    def test_it_is_not_there(self) -> None:
        with pytest.raises(PrepareError, match="cannot run no-such-command: No such file"):
            piped(b"", "no-such-command")

    def test_it_takes_too_long(self, tmp_path: Path) -> None:
        with pytest.raises(PrepareError, match=r"took longer than 0.3 s"):
            piped(b"", "sh", "-c", "sleep 60 & sleep 60", timeout_s=0.3)

    def test_it_writes_too_much(self) -> None:
        with pytest.raises(PrepareError, match="more than 100000 bytes come out"):
            piped(b"", "yes", max_size=100_000)

    def test_what_it_says_of_its_troubles_is_bounded_too(self) -> None:
        with pytest.raises(PrepareError, match="more than 100000 bytes"):
            piped(b"", "sh", "-c", "yes >&2", max_size=100_000)

    @pytest.mark.parametrize("how", ["{} & echo $!", "setsid {} & echo $!", "(trap '' TERM HUP; {}) & echo $!"])
    def test_nothing_that_it_left_behind_survives(self, how: str) -> None:
        pid = piped(b"", "sh", "-c", how.format("sleep 300 > /dev/null") + "; sleep 0.2").decode().strip()
        assert not Path("/proc", pid).exists()

    def test_nothing_survives_a_poller_that_is_killed(self, tmp_path: Path) -> None:
        program = (
            "import io, sys\n"
            "from services.poller.pipe import piped\n"
            "from services.poller.prepare import Limits\n"
            "with piped(['sh', '-c', sys.argv[1]], io.BytesIO(), Limits(allow_pipe=True)): pass\n"
        )
        noted = tmp_path / "pid"
        script = (
            f"setsid sleep 300 & echo $! > {noted}.part; mv {noted}.part {noted}; trap '' TERM; sleep 300; sleep 300"
        )
        poller = subprocess.Popen([sys.executable, "-c", program, script])
        try:
            wait_until(noted.exists)
        finally:
            poller.kill()
            poller.wait()
        left = Path("/proc", noted.read_text().strip())
        wait_until(lambda: not left.exists())

    def test_a_command_that_ends_its_own_group(self) -> None:
        with pytest.raises(PrepareError, match="ended with signal 15"):
            piped(b"", "sh", "-c", "kill 0; sleep 60")

    def test_it_does_not_see_our_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOKEN", "s3cret")
        assert b"s3cret" not in piped(b"", "env")

    def test_a_damaged_archive_before_it_is_told(self) -> None:
        with pytest.raises(PrepareError, match="ends in the middle"):
            out_of(gzip.compress(b"x" * 1000)[:-4], GZIP, PrepStepPipe(command=("cat",)), allow_pipe=True)
