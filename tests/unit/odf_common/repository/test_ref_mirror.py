from __future__ import annotations

import pytest

from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.repository.ref_mirror import bring_in_line
from odf_common.storage.location import open_folder
from odf_common.storage.ports import RefFiles

A, B, C = (sha3_256(text) for text in (b"a", b"b", b"c"))


@pytest.fixture
def files() -> RefFiles:
    return open_folder("memory:").refs


def test_the_file_says_what_the_truth_says(files: RefFiles) -> None:
    assert bring_in_line(files, "head", lambda: A)
    assert not bring_in_line(files, "head", lambda: A)
    assert bring_in_line(files, "head", lambda: B)
    assert files.get("head") == B


def test_without_a_truth_the_file_is_left_alone(files: RefFiles) -> None:
    files.replace("head", A)
    assert not bring_in_line(files, "head", lambda: None)
    assert files.get("head") == A


def test_a_file_never_goes_back_when_another_writer_is_faster(files: RefFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Multihash] = []
    write = files.compare_and_set

    def note(name: str, *, expected: Multihash | None, new: Multihash) -> None:
        write(name, expected=expected, new=new)
        written.append(new)

    truths = [B, C, C]

    def truth_that_moves_on() -> Multihash:
        if len(truths) == 3:
            note("head", expected=A, new=C)
        return truths.pop(0)

    files.replace("head", A)
    monkeypatch.setattr(files, "compare_and_set", note)
    bring_in_line(files, "head", truth_that_moves_on)
    assert written == [C]
    assert files.get("head") == C
