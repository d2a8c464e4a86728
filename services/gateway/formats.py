"""What a request says of its payload: the format, and the time of its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odf_common.errors import InvalidTextError
from odf_common.ingest.media_types import UnsupportedMediaTypeError, media_type_of, step_for
from odf_common.metadata.sources import ReadStep
from odf_common.timestamp import Timestamp
from services.gateway.errors import MediaTypeError, RequestError

_NS_PER_MS = 1_000_000
_MAX_TYPE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Format:
    """How a payload is read."""

    step: ReadStep
    media_type: str | None
    """None where it is what the source reads anyhow."""


def format_of(source_step: ReadStep, headers: Mapping[str, str]) -> Format:
    """The format that a request's headers tell (names in lower case); MediaTypeError for one that nothing reads."""
    encoding = headers.get("content-encoding")
    if encoding not in (None, "", "identity"):
        raise MediaTypeError(f"the payload is encoded as {encoding[:100]!r}: send it as it is")
    content_type = headers.get("content-type", "").strip()
    if not content_type:
        raise MediaTypeError(f"no Content-Type: the source reads {media_type_of(source_step)}")
    if len(content_type) > _MAX_TYPE_LENGTH:
        raise MediaTypeError(f"the Content-Type is longer than {_MAX_TYPE_LENGTH} characters")
    try:
        step = step_for(content_type, source_step)
    except UnsupportedMediaTypeError as error:
        raise MediaTypeError(f"Content-Type: {error}. The source reads {media_type_of(source_step)}") from error
    return Format(step, None if step is source_step else media_type_of(step))


def event_time_ms(text: str | None) -> int | None:
    """The header `odf-event-time` as a Kafka timestamp; None without it."""
    if text is None:
        return None
    try:
        milliseconds = Timestamp.parse(text).ns // _NS_PER_MS
    except InvalidTextError as error:
        raise RequestError(f"header odf-event-time: {error}") from error
    # Kafka has no times before 1970, and its clients take 0 for none.
    if milliseconds <= 0:
        raise RequestError(f"header odf-event-time: {text} is not after 1970-01-01T00:00:00Z, as Kafka needs it")
    return milliseconds
