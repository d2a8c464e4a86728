from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odf_common.errors import InvalidTextError, NotFoundError, StoreUnavailableError
from odf_common.identity.multihash import sha3_256
from odf_common.storage.layout import ObjectKind
from odf_common.storage.location import S3Options, is_elsewhere, open_folder, open_root

BLOCK = sha3_256(b"a block")


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}"])
def test_a_local_folder_may_be_written_as_path_or_url(tmp_path: Path, form: str) -> None:
    folder = open_folder(form.format(tmp_path / "my%20data" if "file" in form else tmp_path / "my data"))
    folder.objects.put_block(BLOCK, b"a block")
    assert (tmp_path / "my data/blocks" / str(BLOCK)).read_bytes() == b"a block"


def test_opening_creates_nothing(tmp_path: Path) -> None:
    open_folder(tmp_path / "dataset")
    assert list(open_root(tmp_path / "root").names()) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "location",
    [
        "https://example.org/x/",
        "ftp://x",
        "s3://",
        "s3:///x",
        "s3://Bucket/x",
        "s3://[x/",
        "s3://bucket/x\0",
        "file://[x",
        "file:///x%00",
        "/x\0",
    ],
)
def test_a_place_that_cannot_hold_datasets_is_refused(location: str) -> None:
    with pytest.raises(InvalidTextError, match="location"):
        open_folder(location)


def test_a_path_object_is_checked_too() -> None:
    with pytest.raises(InvalidTextError, match="NUL"):
        open_root(Path("/x\0"))


def test_credentials_are_shown_nowhere() -> None:
    for location in ("s3://key:hunter2@bucket/x", "s3://key:hunter2@[bucket/x"):
        with pytest.raises(InvalidTextError) as refused:
            open_folder(location)
        assert "hunter" not in str(refused.value)
    options = S3Options(endpoint="https://example.org", access_key_id="hunter1", secret_access_key="hunter2")
    folder = open_folder("s3://bucket/x", s3=options)
    assert "hunter" not in f"{options!r} {folder!r}"


def test_locations_of_their_own_are_told_from_folders_below_the_root() -> None:
    assert not is_elsewhere("fed01abc")
    assert all(map(is_elsewhere, ["/srv/x", "s3://bucket/x", "file:///x", "memory:"]))


@pytest.mark.slow
def test_storage_that_does_not_answer_is_said_to_be_unavailable() -> None:
    options = S3Options(
        endpoint="https://127.0.0.1:1", region="us-east-1", access_key_id="key", secret_access_key="secret"
    )
    with pytest.raises(StoreUnavailableError, match="s3://bucket/prefix/blocks/"):
        open_folder("s3://bucket/prefix", s3=options).objects.get_block(BLOCK)


@pytest.mark.slow
def test_unencrypted_http_is_spoken_only_where_the_endpoint_says_so(
    s3_location: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_folder(s3_location).objects.put_block(BLOCK, b"a block")
    assert open_folder(s3_location, s3=S3Options(endpoint=s3_endpoint)).objects.has(ObjectKind.BLOCKS, BLOCK)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint.replace("http:", "https:"))
    with pytest.raises(StoreUnavailableError):
        open_folder(s3_location).objects.has(ObjectKind.BLOCKS, BLOCK)


@pytest.mark.slow
def test_datasets_of_a_bucket_do_not_see_each_other(s3_location: str) -> None:
    root = open_root(s3_location)
    for name in ("a", "ab"):
        root.folder(name).objects.put_block(BLOCK, name.encode())
    assert list(root.names()) == ["a", "ab"]
    root.remove("a")
    assert list(root.names()) == ["ab"]
    assert root.folder("ab").objects.get_block(BLOCK) == b"ab"
    assert list(root.folder("a").objects.hashes(ObjectKind.BLOCKS)) == []


@pytest.mark.slow
def test_a_bucket_that_does_not_exist_is_not_written_to(s3_location: str) -> None:
    folder = open_folder("s3://nowhere-to-be-found/x")
    with pytest.raises(StoreUnavailableError, match="no such bucket"):
        folder.objects.put_block(BLOCK, b"a block")
    with pytest.raises(NotFoundError):
        folder.objects.get_block(BLOCK)


def test_a_local_folder_needs_no_object_store_library() -> None:
    code = (
        "import sys; from odf_common.storage.location import open_folder; open_folder('x');"
        "assert not {'obstore', 'sqlalchemy', 'alembic', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
