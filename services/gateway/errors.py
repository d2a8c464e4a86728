"""What the gateway refuses, and the one table of statuses.

OdfError
  RequestError             the request is not what it should be: mend it
    MediaTypeError         nothing reads this format
    BodyTooLargeError      send the payload in parts
    BodyTimeoutError       the payload came too slowly
    EmptyBodyError         there is nothing to publish
    SourceChoiceError      name one of the dataset's push sources, if it has any
  TooBusyError             too much is under way here: come back
  NotReadyError            the source cannot take events yet: come back
  BrokerUnavailableError   the broker did not take the payload, or did not say so: come back
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from odf_common.errors import (
    CorruptedError,
    InvalidTextError,
    MalformedBytesError,
    NotFoundError,
    OdfError,
    StoreUnavailableError,
)
from odf_common.ingest.cutting import RecordTooLargeError, UncuttableFormatError


class RequestError(OdfError):
    """The request is not what it should be."""


class MediaTypeError(RequestError):
    """The payload's format is none that can be read."""


class BodyTooLargeError(RequestError):
    """The payload has more bytes than are taken at once."""

    def __init__(self, max_size: int) -> None:
        super().__init__(
            f"the payload is larger than {max_size} bytes: send it in parts, or allow more with ODF_MAX_UPLOAD_SIZE. "
            "Nothing of it was published"
        )


class BodyTimeoutError(RequestError):
    """The payload did not come in time."""


class EmptyBodyError(RequestError):
    """The payload has no records."""


class SourceChoiceError(RequestError):
    """The request does not name an active push source."""


class TooBusyError(OdfError):
    """As much is under way as may be."""


class NotReadyError(OdfError):
    """A source that exists cannot take events yet."""


class BrokerUnavailableError(OdfError):
    """The broker did not confirm a payload in time."""


STATUSES: Mapping[type[Exception], HTTPStatus] = {
    MediaTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    UncuttableFormatError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    BodyTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RecordTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    BodyTimeoutError: HTTPStatus.REQUEST_TIMEOUT,
    RequestError: HTTPStatus.BAD_REQUEST,
    InvalidTextError: HTTPStatus.BAD_REQUEST,
    MalformedBytesError: HTTPStatus.BAD_REQUEST,
    NotFoundError: HTTPStatus.NOT_FOUND,
    TooBusyError: HTTPStatus.TOO_MANY_REQUESTS,
    NotReadyError: HTTPStatus.SERVICE_UNAVAILABLE,
    BrokerUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    CorruptedError: HTTPStatus.INTERNAL_SERVER_ERROR,
    OdfError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""The nearest ancestor of an error decides."""

RETRY_AFTER_S = 1
"""What is in the way usually goes by itself: `Retry-After` of 429 and 503."""


def status_of(error: Exception) -> HTTPStatus:
    """The status that answers an error."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), HTTPStatus.INTERNAL_SERVER_ERROR)
