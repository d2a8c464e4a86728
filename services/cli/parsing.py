"""What a text names: its kind and its parts."""

from __future__ import annotations

from collections.abc import Sequence

from odf_common.errors import InvalidTextError
from odf_common.identity.did import DID_KEY_PREFIX, DatasetId
from odf_common.identity.multihash import ARROW0_SHA3_256, SHA2_256, SHA3_256, Multihash
from odf_common.identity.references import (
    DatasetAlias,
    DatasetAliasRemote,
    DatasetIdRemote,
    DatasetRefAny,
    DatasetUrl,
    RepoName,
    parse_ref_any,
)

_FUNCTIONS = {SHA2_256: "sha2-256", SHA3_256: "sha3-256", ARROW0_SHA3_256: "arrow0-sha3-256"}


def parts_of(text: str, *, known_repos: Sequence[str] = ()) -> dict[str, str]:
    """Kind first, then the parts. InvalidTextError when it is nothing that we know."""
    if text.startswith(DID_KEY_PREFIX):
        return {"kind": "did:key"} | _of_id(DatasetId.from_did_key(text))
    known_hash = _multihash(text)
    if known_hash is not None:
        return _of_hash(known_hash)
    return _of_reference(parse_ref_any(text, known_repos=[RepoName.parse(repo) for repo in known_repos]))


def _multihash(text: str) -> Multihash | None:
    """A hash looks like a dataset's name too; it is one when it decodes to a function that we know."""
    try:
        found = Multihash.parse(text)
    except InvalidTextError:
        return None
    return found if found.code in _FUNCTIONS else None


def _of_hash(value: Multihash) -> dict[str, str]:
    return {
        "kind": "multihash",
        "function": _FUNCTIONS[value.code],
        "digest": value.digest.hex(),
        "short": value.short,
        "canonical": str(value),
    }


def _of_id(did: DatasetId) -> dict[str, str]:
    return {"id": str(did), "didKey": did.to_did_key(), "publicKey": did.public_key.hex()}


def _of_reference(ref: DatasetRefAny) -> dict[str, str]:
    match ref:
        case DatasetId():
            return {"kind": "dataset id"} | _of_id(ref)
        case DatasetAlias(account, name):
            return {"kind": "dataset alias"} | _present(account=account, name=name)
        case DatasetAliasRemote(repo, account, name):
            return {"kind": "remote dataset alias"} | _present(repo=repo, account=account, name=name)
        case DatasetIdRemote(repo, did):
            return {"kind": "remote dataset id", "repo": str(repo)} | _of_id(did)
        case DatasetUrl(url):
            return {"kind": "url", "scheme": url.partition("://")[0], "url": url}


def _present(**parts: object) -> dict[str, str]:
    return {name: str(value) for name, value in parts.items() if value is not None}
