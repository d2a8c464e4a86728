"""Event ids: what makes a payload that is sent twice count once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from odf_common.messages.payload import EVENT_ID_HEADER, EVENT_SOURCE_HEADER
from services.gateway.errors import RequestError

GATEWAY_SOURCE = "/gateway"
"""The source of ids in `Idempotency-Key`: the same for all gateways, so that each knows what another one took."""

UPLOAD_SOURCE = "/gateway/uploads"
"""The source of ids of payloads that were uploaded beforehand: an upload is published once."""

MAX_LENGTH = 255

_LIKE_A_PIECE = re.compile(r"#[0-9]+#*\Z")


@dataclass(frozen=True, slots=True)
class EventId:
    """A payload's id, unique within its source."""

    id: str
    source: str = GATEWAY_SOURCE

    def header_sets(self, count: int) -> list[list[tuple[str, bytes]]]:
        """The Kafka headers of each message of the payload, which is cut the same whenever it is sent."""
        ids = [_whole(self.id)] if count == 1 else [f"{self.id}#{number}" for number in range(count)]
        source = (EVENT_SOURCE_HEADER, self.source.encode())
        return [[(EVENT_ID_HEADER, each.encode()), source] for each in ids]


def event_id_of(headers: Mapping[str, str]) -> EventId | None:
    """The id in the headers of a request (names in lower case): `Idempotency-Key`, or `ce-id` with `ce-source`."""
    key, ce_id, ce_source = (headers.get(name) for name in ("idempotency-key", "ce-id", "ce-source"))
    if key is not None:
        if ce_id is not None:
            raise RequestError("send either Idempotency-Key or ce-id: which of them names the payload?")
        return EventId(_checked("Idempotency-Key", key))
    if ce_id is None:
        if ce_source is not None:
            raise RequestError("header ce-source needs ce-id beside it")
        return None
    if ce_source is None:
        raise RequestError("header ce-id needs ce-source beside it: an id is unique within its source")
    return EventId(_attribute("ce-id", ce_id), _attribute("ce-source", ce_source))


def _attribute(name: str, text: str) -> str:
    """A CloudEvents attribute: percent-encoded where it is not ASCII."""
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise RequestError(f"header {name}: what is percent-encoded there is no UTF-8") from error
    return _checked(name, decoded)


def _checked(name: str, text: str) -> str:
    if not 1 <= len(text) <= MAX_LENGTH or not text.isprintable() or text != text.strip():
        raise RequestError(f"header {name}: send 1 to {MAX_LENGTH} printable characters, no blanks around them")
    return text


def _whole(text: str) -> str:
    """The id of a payload that is one message: never the one of another payload's piece."""
    return f"{text}#" if _LIKE_A_PIECE.search(text) else text
