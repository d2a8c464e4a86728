"""What the catalog refuses.

OdfError
  NameTakenError           another dataset or account has the name: choose another
  IdTakenError             the dataset or account is already there, perhaps under another name
  TopicTakenError          another push source reads the topic: choose another
  FencedError              another process took over this one's part: stop
  CatalogTooNewError       a later version of this program wrote the catalog: use that version
"""

from __future__ import annotations

from odf_common.errors import OdfError


class NameTakenError(OdfError):
    """A name, compared without case, belongs to somebody else."""

    def __init__(self, name: object, *, taken_by: object) -> None:
        self.name = name
        self.taken_by = taken_by
        super().__init__(f"the name {name} is taken by {taken_by}")


class IdTakenError(OdfError):
    """A dataset or account of this identity is already known; `name` is what it is called."""

    def __init__(self, taken_id: object, *, name: object) -> None:
        self.id = taken_id
        self.name = name
        super().__init__(f"{taken_id} is already known as {name}")


class TopicTakenError(OdfError):
    """A topic is bound to another push source; two sources cannot share one, as each record has one place to go."""

    def __init__(self, topic: str, *, taken_by: object) -> None:
        self.topic = topic
        self.taken_by = taken_by
        super().__init__(f"topic {topic} belongs to {taken_by}: choose another one")


class FencedError(OdfError):
    """Another process has taken over since this one began: whatever this one decided may be out of date."""

    def __init__(self, name: str, *, epoch: int, current: int) -> None:
        self.name = name
        self.epoch = epoch
        self.current = current
        super().__init__(f"this {name} has epoch {epoch}, but another one took over with epoch {current}: stopping")


class CatalogTooNewError(OdfError):
    """The catalog's tables are of a later version than this program."""

    def __init__(self, found: str, *, known: str) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"the catalog has version {found!r}, which is newer than {known!r}, the latest that this program knows: "
            "upgrade the program"
        )
