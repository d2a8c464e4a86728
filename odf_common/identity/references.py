"""Dataset references: the grammar of names, aliases, ids and URLs (ODF 0.36, Dataset References)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import total_ordering
from typing import NoReturn, Self, TypeVar

from odf_common.errors import InvalidTextError
from odf_common.identity.did import DatasetId
from odf_common.text_value import TextValue

MAX_NAME_CHARACTERS = 253
"""As for any host name; keeps a name usable as one path segment everywhere."""

MAX_URL_CHARACTERS = 2048

_NAME = re.compile(r"[a-zA-Z0-9]+(?:[-.][a-zA-Z0-9]+)*", re.ASCII)
_ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_URL = re.compile(r"[a-zA-Z0-9]+(?:\+[a-zA-Z0-9]+)*://[!-~]+", re.ASCII)
_BEGUN_URL = re.compile(r"(?:[a-zA-Z0-9]+\+)*(?:[a-zA-Z0-9]+(?::(?:/(?:/[!-~]*)?)?)?)?", re.ASCII)
"""Whatever could still become a URL."""
_SEPARATOR = "/"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Name(TextValue):
    """A host name such as `statcan.gc.ca`: compared, hashed and sorted without case, spelled as it was given."""

    text: str

    WHAT = "name"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Check the grammar; the error points at the first character that breaks it."""
        if len(text) > MAX_NAME_CHARACTERS:
            raise InvalidTextError(
                cls.WHAT, text, position=MAX_NAME_CHARACTERS, reason=f"longer than {MAX_NAME_CHARACTERS} characters"
            )
        if not _NAME.fullmatch(text):
            _refuse_name(cls.WHAT, text)
        return cls(text)

    @property
    def folded(self) -> str:
        """The form that decides equality; unique indexes are made on it."""
        return self.text.lower()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and self.folded == other.folded

    def __lt__(self, other: object) -> bool:
        return self.folded < other.folded if isinstance(other, Name) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.folded)

    def __str__(self) -> str:
        return self.text


N = TypeVar("N", bound=Name)


class DatasetName(Name):
    """The name of a dataset within its account."""

    __slots__ = ()
    WHAT = "dataset name"


class AccountName(Name):
    """The name of an account."""

    __slots__ = ()
    WHAT = "account name"


class RepoName(Name):
    """The local name of a remote repository."""

    __slots__ = ()
    WHAT = "repository name"


@total_ordering
@dataclass(frozen=True, slots=True)
class DatasetAlias(TextValue):
    """`name` or `account/name`; those without an account sort first."""

    account: AccountName | None
    name: DatasetName

    JSON_SCHEMA = {"type": "string", "format": "dataset-alias"}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read one or two names; three are a remote alias and refused here."""
        names = _split(text, at_most=2, what="dataset alias")
        account = _part(AccountName, text, names, -2) if len(names) > 1 else None
        return cls(account, _part(DatasetName, text, names, -1))

    def __lt__(self, other: object) -> bool:
        return self._sort_key() < other._sort_key() if isinstance(other, DatasetAlias) else NotImplemented

    def _sort_key(self) -> tuple[str, str]:
        return ("" if self.account is None else self.account.folded), self.name.folded

    def __str__(self) -> str:
        return str(self.name) if self.account is None else f"{self.account}{_SEPARATOR}{self.name}"


@dataclass(frozen=True, slots=True)
class DatasetAliasRemote(TextValue):
    """`repo/name` or `repo/account/name`."""

    repo: RepoName
    account: AccountName | None
    name: DatasetName

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read two or three names."""
        names = _split(text, at_most=3, what="remote dataset alias")
        if len(names) == 1:
            raise InvalidTextError(
                "remote dataset alias", text, position=len(text), reason="expected repository/name, found no '/'"
            )
        account = _part(AccountName, text, names, 1) if len(names) > 2 else None
        return cls(_part(RepoName, text, names, 0), account, _part(DatasetName, text, names, len(names) - 1))

    def __str__(self) -> str:
        return _SEPARATOR.join(str(part) for part in (self.repo, self.account, self.name) if part is not None)


@dataclass(frozen=True, slots=True)
class DatasetIdRemote(TextValue):
    """`repo/did:odf:…`."""

    repo: RepoName
    id: DatasetId

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a repository name and a dataset id."""
        repo, separator, did = text.partition(_SEPARATOR)
        name = _part(RepoName, text, [repo], 0)
        if not separator:
            raise InvalidTextError(
                "remote dataset id", text, position=len(text), reason="expected repository/did:odf:…, found no '/'"
            )
        try:
            return cls(name, DatasetId.parse(did))
        except InvalidTextError as error:
            position = len(repo) + 1 + error.position
            raise InvalidTextError("remote dataset id", text, position=position, reason=error.reason) from error

    def __str__(self) -> str:
        return f"{self.repo}{_SEPARATOR}{self.id}"


@dataclass(frozen=True, slots=True)
class DatasetUrl(TextValue):
    """Where a dataset can be fetched from, such as `https://opendata.ca/odf/x/`."""

    url: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Check scheme and length; printable ASCII only."""
        if len(text) > MAX_URL_CHARACTERS:
            raise InvalidTextError(
                "URL", text, position=MAX_URL_CHARACTERS, reason=f"longer than {MAX_URL_CHARACTERS} characters"
            )
        if not _URL.fullmatch(text):
            raise InvalidTextError(
                "URL", text, position=_first_wrong_in_url(text), reason="expected scheme://address in printable ASCII"
            )
        return cls(text)

    def __str__(self) -> str:
        return self.url


DatasetRef = DatasetId | DatasetAlias
"""What names a dataset of this repository."""

DatasetRefRemote = DatasetId | DatasetIdRemote | DatasetAliasRemote | DatasetUrl
"""What names a dataset elsewhere."""

DatasetRefAny = DatasetRef | DatasetRefRemote


def parse_ref(text: str) -> DatasetRef:
    """Read a reference to a dataset of this repository: an id or an alias."""
    return DatasetId.parse(text) if text.startswith(DatasetId.PREFIX) else DatasetAlias.parse(text)


def parse_ref_remote(text: str) -> DatasetRefRemote:
    """Read a reference to a dataset elsewhere: an id, `repo/id`, `repo/alias` or a URL."""
    if text.startswith(DatasetId.PREFIX):
        return DatasetId.parse(text)
    if f"{_SEPARATOR}{DatasetId.PREFIX}" in text and "://" not in text:
        return DatasetIdRemote.parse(text)
    if "://" in text:
        return DatasetUrl.parse(text)
    return DatasetAliasRemote.parse(text)


def parse_ref_any(text: str, *, known_repos: Collection[RepoName] = ()) -> DatasetRefAny:
    """Read any reference. `X/Y` is remote when X is a known repository, otherwise an account's dataset."""
    if text.startswith(DatasetId.PREFIX):
        return DatasetId.parse(text)
    if "://" in text or f"{_SEPARATOR}{DatasetId.PREFIX}" in text or text.count(_SEPARATOR) >= 2:
        return parse_ref_remote(text)
    alias = DatasetAlias.parse(text)
    if alias.account is not None and RepoName(alias.account.text) in known_repos:
        return DatasetAliasRemote(RepoName(alias.account.text), None, alias.name)
    return alias


def _split(text: str, *, at_most: int, what: str) -> list[str]:
    names = text.split(_SEPARATOR)
    if len(names) > at_most:
        position = len(_SEPARATOR.join(names[:at_most]))
        raise InvalidTextError(what, text, position=position, reason=f"more than {at_most} names joined by '/'")
    return names


def _part(kind: type[N], text: str, names: list[str], index: int) -> N:
    """One of the names, with an error that points into the whole text."""
    index %= len(names)
    try:
        return kind.parse(names[index])
    except InvalidTextError as error:
        start = sum(len(name) + 1 for name in names[:index])
        raise InvalidTextError(error.what, text, position=start + error.position, reason=error.reason) from error


def _refuse_name(what: str, text: str) -> NoReturn:
    expects_letter = True
    for position, character in enumerate(text):
        if character in _ALPHANUMERIC:
            expects_letter = False
        elif character in "-." and not expects_letter:
            expects_letter = True
        elif character in "-.":
            reason = f"{character!r} must stand between letters or digits"
            raise InvalidTextError(what, text, position=position, reason=reason)
        else:
            reason = f"{character!r} is not allowed; names are ASCII letters and digits, joined by '-' or '.'"
            raise InvalidTextError(what, text, position=position, reason=reason)
    reason = "it is empty" if not text else "it ends with a separator"
    raise InvalidTextError(what, text, position=max(len(text) - 1, 0), reason=reason)


def _first_wrong_in_url(text: str) -> int:
    begun = _BEGUN_URL.match(text)
    return begun.end() if begun else 0
