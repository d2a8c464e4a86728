from __future__ import annotations

import pytest

from streaming_jobs.ingest import topics as topics_module
from streaming_jobs.ingest.topics import PushTopics


class PlayedMessage:
    def __init__(self, offset: int, headers: list[tuple[str, bytes | None]] | None) -> None:
        self._offset, self._headers = offset, headers

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def error(self) -> None:
        return None

    def headers(self) -> list[tuple[str, bytes | None]]:
        if self._headers is None:  # as the client does it
            raise SystemError("returned a result with an exception set")
        return self._headers


class PlayedConsumer:
    def __init__(self, messages: list[PlayedMessage]) -> None:
        self._messages = messages

    def assign(self, partitions: object) -> None:
        pass

    def consume(self, count: int, timeout_s: float) -> list[PlayedMessage]:
        taken, self._messages = self._messages[:count], self._messages[count:]
        return taken

    def close(self) -> None:
        pass


def test_a_header_whose_name_is_no_text_hinders_no_other_message(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [PlayedMessage(0, None), PlayedMessage(1, [("ce_id", b"a")])]
    monkeypatch.setattr(topics_module, "admin_client", lambda _: None)
    monkeypatch.setattr(topics_module, "consumer", lambda *_, **__: PlayedConsumer(sent))
    found = [each for some in PushTopics("127.0.0.1:1").headers("t", {}, {0: 2}) for each in some]
    assert found == [(0, 0, []), (0, 1, [("ce_id", b"a")])]
