from __future__ import annotations

from typing import Any

import pytest

from odf_common.identity.did import DatasetId
from odf_common.messages.dead_letter import DEAD_LETTER_HEADER
from services.cli.dead_letter_topic import readable

CITY = DatasetId(bytes(range(32)))


class FakeMessage:
    def key(self) -> bytes:
        return str(CITY).encode()

    def headers(self) -> list[tuple[str, bytes]]:
        return [(DEAD_LETTER_HEADER, b"{nonsense \x1b[2J")]

    def topic(self) -> str:
        return "odf.dead-letters"

    def offset(self) -> int:
        return 17


def test_a_malformed_note_is_skipped_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    message: Any = FakeMessage()
    assert readable(message, CITY) is None
    warning = capsys.readouterr().err
    assert warning.startswith("note: skipped what is no dead letter, topic odf.dead-letters, position 17: ")
    assert "\x1b" not in warning
