"""Where datasets lie, as users write it: a local path, `file://…`, `s3://bucket/prefix` or `memory:`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from odf_common.errors import InvalidTextError
from odf_common.storage.dataset_folder import (
    BucketRoot,
    DatasetFolder,
    DatasetRoot,
    LocalRoot,
    bucket_folder,
    local_folder,
)

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

    from odf_common.storage.bucket import Bucket

_MEMORY = "memory:"
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
_RETRY_TIMEOUT = timedelta(seconds=30)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]*")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """How to reach S3. What is not given is taken from the usual AWS_* variables of the environment."""

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)


FROM_ENVIRONMENT = S3Options()


def open_folder(location: str | Path, *, s3: S3Options = FROM_ENVIRONMENT) -> DatasetFolder:
    """The dataset at a location, whether or not there is anything yet; InvalidTextError for an unknown scheme."""
    place = _place(location, s3)
    return local_folder(place) if isinstance(place, Path) else bucket_folder(place)


def open_root(location: str | Path, *, s3: S3Options = FROM_ENVIRONMENT) -> DatasetRoot:
    """The datasets below a location, whether or not there is anything yet."""
    place = _place(location, s3)
    return LocalRoot(place) if isinstance(place, Path) else BucketRoot(place)


def is_elsewhere(location: str) -> bool:
    """Whether a location stands for itself rather than for a folder below the root of a repository."""
    return _SCHEME.match(location) is not None or location.startswith(("/", _MEMORY))


def _place(location: str | Path, s3: S3Options) -> Path | Bucket:
    if isinstance(location, Path):
        return _local(str(location))
    if location == _MEMORY:
        return _memory()
    scheme = _SCHEME.match(location)
    if scheme is None:
        return _local(location)
    if scheme[1] == "file":
        return _local(unquote(_split(location).path))
    if scheme[1] == "s3":
        return _s3(location, s3)
    reason = "a dataset is kept in a local folder, file://…, s3://bucket/prefix or memory:"
    raise InvalidTextError("location", location, position=0, reason=reason)


def _local(path: str) -> Path:
    if "\0" in path:
        raise InvalidTextError("location", path, position=path.index("\0"), reason="a path has no NUL character")
    return Path(path)


def _split(location: str) -> SplitResult:
    try:
        return urlsplit(location)
    except ValueError:
        scheme = location.partition("://")[0]
    # Neither the location nor the cause is shown: they may hold credentials.
    raise InvalidTextError("location", f"{scheme}://…", position=len(scheme) + 3, reason="it is not a URL")


def _memory() -> Bucket:
    from obstore.store import MemoryStore

    from odf_common.storage.bucket import Bucket

    return Bucket(MemoryStore(), _MEMORY)


def _s3(location: str, options: S3Options) -> Bucket:
    from obstore.store import S3Store

    from odf_common.storage.bucket import Bucket

    parts = _split(location)
    if not _BUCKET.fullmatch(parts.netloc) or parts.query or parts.fragment or "\0" in parts.path:
        # The location is not shown: what does not fit may be credentials.
        raise InvalidTextError("location", "s3://…", position=5, reason="expected s3://bucket/prefix")
    endpoint = options.endpoint or next((os.environ[name] for name in _ENDPOINT_VARIABLES if name in os.environ), "")
    client: ClientConfig = {"allow_http": endpoint.startswith("http://")}
    retry: RetryConfig = {"retry_timeout": _RETRY_TIMEOUT}
    store = S3Store(parts.netloc, config=_config(options), client_options=client, retry_config=retry)
    prefix = "".join(f"{part}/" for part in parts.path.split("/") if part)
    return Bucket(store, f"s3://{parts.netloc}", prefix)


def _config(options: S3Options) -> S3Config:
    given: S3Config = {}
    if options.endpoint is not None:
        given["endpoint"] = options.endpoint
    if options.region is not None:
        given["region"] = options.region
    if options.access_key_id is not None:
        given["access_key_id"] = options.access_key_id
    if options.secret_access_key is not None:
        given["secret_access_key"] = options.secret_access_key
    if options.session_token is not None:
        given["session_token"] = options.session_token
    return given
