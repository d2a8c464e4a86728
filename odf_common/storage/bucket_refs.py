"""Refs as keys of an object store, moved by conditional writes."""

# ruff: noqa: D102 (the methods are described by the port, RefFiles)

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from odf_common.errors import NotFoundError, RefCASFailedError
from odf_common.identity.multihash import Multihash
from odf_common.storage.bucket import KeyMovedError
from odf_common.storage.layout import (
    MAX_REF_SIZE,
    REFS_FOLDER,
    check_ref_fits,
    check_ref_name,
    is_ref_name,
    parse_ref_content,
    ref_content,
)

if TYPE_CHECKING:
    from odf_common.storage.bucket import Bucket


class BucketRefs:
    """The RefFiles of a dataset below a prefix of an object store, which must know conditional writes."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket.under(REFS_FOLDER)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._bucket!r})"

    def get(self, name: str) -> Multihash | None:
        return self._get_versioned(name)[0]

    def compare_and_set(self, name: str, *, expected: Multihash | None, new: Multihash) -> None:
        actual, version = self._get_versioned(name)
        if actual != expected:
            raise RefCASFailedError(name, expected=expected, actual=actual)
        try:
            if actual is None:
                check_ref_fits(name, self.names())
                self._bucket.create(name, ref_content(new))
            else:
                self._bucket.replace(name, ref_content(new), version=version)
        except KeyMovedError as error:
            raise RefCASFailedError(name, expected=expected, actual=self.get(name)) from error

    def names(self) -> Iterator[str]:
        return (key for key in self._bucket.all_keys() if is_ref_name(key))

    def replace(self, name: str, new: Multihash) -> None:
        check_ref_name(name)
        self._bucket.put(name, ref_content(new))

    def remove(self, name: str) -> None:
        check_ref_name(name)
        self._bucket.remove(name)

    def _get_versioned(self, name: str) -> tuple[Multihash | None, str | None]:
        check_ref_name(name)
        try:
            content, version = self._bucket.get_versioned(name, max_size=MAX_REF_SIZE)
        except NotFoundError:
            return None, None
        return parse_ref_content(name, content), version
