"""What is wrong with messages that cannot become rows, and which of many it is about."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from odf_common.errors import MalformedBytesError, OdfError, StoreUnavailableError
from odf_common.ingest.errors import BadInputSchemaError, IncompatibleSchemaError, UnsupportedSourceError
from odf_common.ingest.media_types import UnsupportedMediaTypeError
from odf_common.ingest.merge import RefusedRowsError, SnapshotRefusedError
from odf_common.ingest.messages import Code, Problem
from odf_common.ingest.read.records import InvalidPayloadError
from streaming_jobs.ingest.preprocess import PreprocessError


class PayloadRefusedError(OdfError):
    """A payload as a whole cannot be taken; `problem` has code and reason."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.reason)


REFUSALS = (
    PayloadRefusedError,
    InvalidPayloadError,
    SnapshotRefusedError,
    RefusedRowsError,
    PreprocessError,
    IncompatibleSchemaError,
    BadInputSchemaError,
    UnsupportedMediaTypeError,
    UnsupportedSourceError,
    MalformedBytesError,
)
"""What is the fault of messages: the same ones will never be taken, while others may be."""


def problem_of(error: Exception) -> Problem:
    """A refusal as a dead letter tells it."""
    match error:
        case PayloadRefusedError() | InvalidPayloadError() | SnapshotRefusedError() | RefusedRowsError():
            return error.problem
        case PreprocessError():
            return Problem(Code.PREPROCESS_FAILED, str(error))
        case IncompatibleSchemaError() | BadInputSchemaError():
            return Problem(error.code, str(error))
        case UnsupportedMediaTypeError() | UnsupportedSourceError():
            return Problem(Code.WRONG_MEDIA_TYPE, str(error))
    return Problem(Code.INVALID_PAYLOAD, str(error))


def find_refused(
    messages: pa.Table, attempt: Callable[[pa.Table], object], *, is_closed: Callable[[], bool]
) -> dict[int, Problem]:
    """The rows of messages that are refused, each on its own, and why; `attempt` raises one of REFUSALS for those.

    Halves are tried, and theirs, so that a few bad ones among many cost little. None if the messages are only refused
    together.
    """
    found: dict[int, Problem] = {}
    try:
        attempt(messages.slice(0, 0))
    except REFUSALS as error:  # it is not about what they hold
        return dict.fromkeys(range(messages.num_rows), problem_of(error))
    left = [(0, messages.num_rows)]
    while left:
        start, end = left.pop()
        if is_closed():
            raise StoreUnavailableError("the run is over: its messages are looked at again")
        try:
            attempt(messages.slice(start, end - start))
        except REFUSALS as error:
            if end - start == 1:
                found[start] = problem_of(error)
                continue
            half = (start + end) // 2
            left += [(half, end), (start, half)]
    return found
