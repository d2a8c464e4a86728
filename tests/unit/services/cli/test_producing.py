from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from odf_common.errors import MalformedBytesError
from services.cli import producing
from services.cli.producing import Outgoing, PartlySentError, Sender


class Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset


class FakeClient:
    """Delivers when it is flushed."""

    def __init__(self) -> None:
        self.waiting: list[Callable[..., None]] = []

    def produce(self, topic: str, value: bytes, *, on_delivery: Callable[..., None], **_: Any) -> None:
        self.waiting.append(on_delivery)

    def poll(self, timeout: float) -> int:
        return 0

    def flush(self, timeout: float) -> int:
        for number, told in enumerate(self.waiting):
            told(None, Message(number))
        return 0


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producing, "producer", lambda *_, **__: FakeClient())


def messages(count: int, error: Exception) -> Iterator[Outgoing]:
    for _ in range(count):
        yield Outgoing(value=b"x", records=1)
    raise error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MalformedBytesError("b.json: not JSON"), r"b\.json: not JSON\. .* 2 messages, is on the broker"),
        (FileNotFoundError(2, "No such file", "b.json"), r"b\.json: No such file\. .* 2 messages, is on the broker"),
    ],
)
def test_what_was_sent_before_an_error_is_told(error: Exception, text: str) -> None:
    with pytest.raises(PartlySentError, match=text):
        Sender("").send("topic", messages(2, error))


def test_an_error_before_anything_was_sent_is_told_as_it_is() -> None:
    with pytest.raises(MalformedBytesError, match=r"^bad$"):
        Sender("").send("topic", messages(0, MalformedBytesError("bad")))
