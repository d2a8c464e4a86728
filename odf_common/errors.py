"""The roots of every error of the core, sorted by what the caller can do about it.

OdfError
  InvalidTextError         a text (hash, id, reference, time, DDL) does not parse: mend the text
  InvalidManifestError     a manifest is not what it should be (odf_common.text): mend the named line
  UnsupportedTypeError     a data type has no equal where it should go (odf_common.data): change the column
  MalformedBytesError      bytes are not what they claim to be (block, schema, slice): nothing to retry
  AppendRefusedError       the next block breaks a rule of the chain: mend the event
  RefCASFailedError        somebody else moved the ref first: reload and decide again
  NotFoundError            no such dataset, block or object
  CorruptedError           what is stored is not what its address or the chain promises
  StoreUnavailableError    storage did not answer: the same call may succeed later
"""

from __future__ import annotations

from typing import ClassVar


class OdfError(Exception):
    """Any failure that the core reports on purpose."""

    code: ClassVar[str] = "Odf"
    """The error's name for programs, as the ODF facts spell it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            cls.code = cls.__name__.removesuffix("Error")


class InvalidTextError(OdfError, ValueError):
    """A text is not what it should be; `position` is the index of the first wrong character."""

    def __init__(self, what: str, text: str, *, position: int, reason: str) -> None:
        self.what = what
        self.text = text
        self.position = position
        self.reason = reason
        super().__init__(f"invalid {what} {_shown(text)}: {reason} (at character {position + 1})")


class MalformedBytesError(OdfError, ValueError):
    """Bytes do not decode as what they claim to be."""


class AppendRefusedError(OdfError):
    """A block breaks a rule of the chain it wants to join; the same block will never be accepted there."""


class RefCASFailedError(OdfError):
    """A ref was not where the caller believed it to be; nothing was changed."""

    def __init__(self, ref: str, *, expected: object, actual: object) -> None:
        self.ref = ref
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"ref {ref!r} is at {actual or 'nothing'}, not at {expected or 'nothing'} as expected: "
            "somebody else moved it, reload the chain and try again"
        )


class NotFoundError(OdfError):
    """Something named does not exist."""


class CorruptedError(OdfError):
    """Stored bytes are not what their address or the chain promises; `place` names the file."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}")


class StoreUnavailableError(OdfError):
    """Storage did not answer; nothing is known to have changed and the same call may succeed later."""


_SHOWN_CHARACTERS = 80


def _shown(text: str) -> str:
    """The text, quoted and cut, so that hostile input can neither flood nor forge a message."""
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")
