"""The cached state of a chain beside it, so that opening a chain does not read all of it.

Derived and disposable: trusted only when its own digest fits, rebuilt from the blocks when it is missing or wrong.
"""

from __future__ import annotations

import re
from contextlib import suppress

from odf_common.chain.state import ChainState
from odf_common.errors import CorruptedError, StoreUnavailableError
from odf_common.identity.multihash import sha3_256
from odf_common.storage.ports import ObjectStore

SUMMARY = "chain-state"
"""Its name under `info/`."""

_VERSION = 1
"""To be raised when ChainState or its fold changes: older summaries are then rebuilt."""


_LAYOUT = re.compile(rb'\{"version":(\d+),"digest":"(f[0-9a-f]+)","state":(.*)\}\n', re.DOTALL)


def encode_summary(chain: ChainState) -> bytes:
    """One line of JSON: version, digest of the state's text, state."""
    state = chain.model_dump_json(by_alias=True, exclude_none=True)
    return f'{{"version":{_VERSION},"digest":"{sha3_256(state.encode())}","state":{state}}}\n'.encode()


def decode_summary(data: bytes) -> ChainState | None:
    """The state, None when the summary is damaged or of another version."""
    found = _LAYOUT.fullmatch(data)
    if found is None or int(found[1]) != _VERSION or found[2].decode() != str(sha3_256(found[3])):
        return None
    try:
        return ChainState.model_validate_json(found[3])
    except ValueError:
        return None


def load_summary(objects: ObjectStore) -> ChainState | None:
    """What is cached, whether or not it is about the current head."""
    try:
        data = objects.get_info(SUMMARY)
    except CorruptedError:
        return None
    return None if data is None else decode_summary(data)


def save_summary(objects: ObjectStore, chain: ChainState) -> None:
    """Cache the state; a storage that cannot take it costs time later, nothing else."""
    with suppress(StoreUnavailableError):
        objects.put_info(SUMMARY, encode_summary(chain))
