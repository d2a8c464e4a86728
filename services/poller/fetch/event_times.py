"""The event time in a file's name: a regular expression finds it, a format reads it."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from odf_common.metadata.sources import EventTimeSourceFromPath
from odf_common.timestamp import Timestamp
from services.poller.errors import FetchDamagedError, StepRefusedError

DEFAULT_FORMAT = "%Y-%m-%d"
_MAX_PATTERN = 1_000
_PROBE = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)


def check_from_path(rule: EventTimeSourceFromPath) -> None:
    """StepRefusedError for a pattern or a format that cannot be used."""
    if len(rule.pattern) > _MAX_PATTERN:
        raise StepRefusedError(f"the pattern of eventTime has more than {_MAX_PATTERN} characters")
    _group(rule.pattern, "")
    form = rule.timestamp_format or DEFAULT_FORMAT
    try:
        datetime.strptime(_PROBE.strftime(form), form)
    except ValueError as error:
        raise StepRefusedError(f"the timestampFormat {form!r} of eventTime cannot be read back: {error}") from error


def event_time_in(name: str, rule: EventTimeSourceFromPath) -> Timestamp:
    """The time in a file's name; FetchDamagedError if it has none."""
    text = _group(rule.pattern, name)
    if text is None:
        raise FetchDamagedError(f"the pattern {rule.pattern!r} of eventTime finds nothing in the file name {name!r}")
    form = rule.timestamp_format or DEFAULT_FORMAT
    try:
        found = datetime.strptime(text, form)
    except ValueError as error:
        raise FetchDamagedError(f"{text!r} in the file name {name!r} is no time of the format {form!r}") from error
    return Timestamp.from_datetime(found if found.tzinfo is not None else found.replace(tzinfo=UTC))


def _group(pattern: str, text: str) -> str | None:
    """Group 1 of the first match. Arrow's RE2 takes linear time, whatever the pattern; Python's engine may not."""
    texts = pa.array([text])
    try:
        matches = pc.match_substring_regex(texts, pattern)[0].as_py()
        whole = rf"\A(?s:.*?)(?:{pattern})(?s:.*)\z"
        found = pc.replace_substring_regex(texts, whole, r"\1", max_replacements=1)[0].as_py()
    except pa.ArrowInvalid as error:
        raise StepRefusedError(f"the pattern {pattern[:200]!r} of eventTime cannot be used: {error}") from error
    return str(found) if matches else None
