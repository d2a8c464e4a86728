"""What can go wrong with polling, sorted by what can be done about it.

PollError
  StepRefusedError         the source asks for what is not supported or not allowed: change the source or the settings
  FetchNotFoundError       there is nothing where the source points
  FetchUnreachableError    no usable answer: the next poll may have more luck
  FetchRefusedError        an answer that may not be followed: a private address, too many redirects, too large
  FetchDamagedError        what came is not whole, changed while it was read, or is no data
  PrepareError             an archive or a command did not give data
"""

from __future__ import annotations

from odf_common.errors import OdfError


class PollError(OdfError):
    """A poll that sent nothing."""


class StepRefusedError(PollError):
    """A step that cannot be carried out here, whatever the other side does."""


class FetchNotFoundError(PollError):
    """There is nothing to fetch."""


class FetchUnreachableError(PollError):
    """Whoever has the data does not give it."""


class FetchRefusedError(PollError):
    """Going on would break a rule."""


class FetchDamagedError(PollError):
    """What was fetched cannot be what was meant."""


class PrepareError(PollError):
    """What was fetched could not be unpacked or converted."""
