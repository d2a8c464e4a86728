"""What every ref store promises: in memory, as files, on S3 and in the catalog."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog, CatalogRefs
from odf_common.errors import CorruptedError, InvalidTextError, RefCASFailedError
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash, sha3_256
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import DatasetKind
from odf_common.storage.location import open_folder
from odf_common.storage.ports import RefFiles, RefStore

A, B, C = (sha3_256(text) for text in (b"a", b"b", b"c"))


class RefStoreContract:
    def test_a_ref_that_was_never_set_does_not_exist(self, refs: RefStore) -> None:
        assert refs.get("head") is None

    def test_a_ref_moves_from_where_it_is(self, refs: RefStore) -> None:
        refs.compare_and_set("head", expected=None, new=A)
        assert refs.get("head") == A
        refs.compare_and_set("head", expected=A, new=B)
        assert refs.get("head") == B

    def test_a_ref_may_stay_where_it_is(self, refs: RefStore) -> None:
        refs.compare_and_set("head", expected=None, new=A)
        refs.compare_and_set("head", expected=A, new=A)
        assert refs.get("head") == A

    @pytest.mark.parametrize("expected", [None, B])
    def test_a_wrong_expectation_changes_nothing(self, refs: RefStore, expected: Multihash | None) -> None:
        refs.compare_and_set("head", expected=None, new=A)
        with pytest.raises(RefCASFailedError) as failed:
            refs.compare_and_set("head", expected=expected, new=C)
        assert (failed.value.ref, failed.value.expected, failed.value.actual) == ("head", expected, A)
        assert refs.get("head") == A

    def test_a_ref_that_does_not_exist_cannot_be_moved(self, refs: RefStore) -> None:
        with pytest.raises(RefCASFailedError) as failed:
            refs.compare_and_set("head", expected=A, new=B)
        assert failed.value.actual is None
        assert refs.get("head") is None

    def test_refs_are_independent(self, refs: RefStore) -> None:
        refs.compare_and_set("head", expected=None, new=A)
        refs.compare_and_set("branches/review_2.x", expected=None, new=B)
        assert (refs.get("head"), refs.get("branches/review_2.x")) == (A, B)
        assert refs.get("branches") is None

    @pytest.mark.parametrize("name", ["head/deeper", "a/b/c", "a"])
    def test_a_ref_cannot_be_both_a_file_and_a_folder(self, refs: RefStore, name: str) -> None:
        refs.compare_and_set("head", expected=None, new=A)
        refs.compare_and_set("a/b", expected=None, new=A)
        assert refs.get(name) is None
        with pytest.raises(InvalidTextError, match="cannot exist beside"):
            refs.compare_and_set(name, expected=None, new=B)

    @pytest.mark.parametrize(
        ("name", "position"),
        [("", 0), ("/head", 0), ("a//b", 2), ("a/", 2), ("..", 0), ("a/../b", 2), ("a..b", 1), (".hid", 0), ("a\0", 1)],
    )
    def test_a_name_that_is_not_a_plain_path_is_refused(self, refs: RefStore, name: str, position: int) -> None:
        with pytest.raises(InvalidTextError) as refused:
            refs.get(name)
        assert refused.value.position == position
        with pytest.raises(InvalidTextError):
            refs.compare_and_set(name, expected=None, new=A)

    def test_of_many_threads_one_wins(self, refs: RefStore) -> None:
        def wins(number: int) -> bool:
            try:
                refs.compare_and_set("head", expected=None, new=sha3_256(bytes([number])))
            except RefCASFailedError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(wins, range(4)))
        assert outcomes.count(True) == 1
        assert refs.get("head") == sha3_256(bytes([outcomes.index(True)]))


class RefFilesContract(RefStoreContract):
    def test_names_are_listed(self, refs: RefFiles) -> None:
        assert list(refs.names()) == []
        for name in ("head", "branches/review"):
            refs.compare_and_set(name, expected=None, new=A)
        assert sorted(refs.names()) == ["branches/review", "head"]

    def test_replace_sets_a_ref_whatever_it_was(self, refs: RefFiles) -> None:
        refs.replace("head", A)
        refs.replace("head", B)
        assert refs.get("head") == B

    def test_a_ref_can_be_removed_twice(self, refs: RefFiles) -> None:
        refs.replace("head", A)
        refs.remove("head")
        refs.remove("head")
        assert refs.get("head") is None


class TestMemory(RefFilesContract):
    @pytest.fixture
    def refs(self) -> RefFiles:
        return open_folder("memory:").refs


class TestFolder(RefFilesContract):
    @pytest.fixture
    def refs(self, tmp_path: Path) -> RefFiles:
        return open_folder(tmp_path / "dataset").refs

    def test_the_file_is_the_hash_and_nothing_more_lies_beside_it(self, tmp_path: Path, refs: RefFiles) -> None:
        refs.compare_and_set("head", expected=None, new=A)
        refs.compare_and_set("head", expected=A, new=B)
        files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
        assert files == [Path("dataset/refs/head")]
        assert (tmp_path / "dataset/refs/head").read_bytes() == str(B).encode()

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\n",
            f"{A}\n".encode(),
            f" {A}".encode(),
            str(A).upper().encode(),
            b"\xff\xfe",
            b"f1620",
            b"x" * 10_000,
        ],
    )
    def test_a_damaged_file_is_not_taken_for_a_ref(self, tmp_path: Path, refs: RefFiles, content: bytes) -> None:
        refs.compare_and_set("head", expected=None, new=A)
        (tmp_path / "dataset/refs/head").write_bytes(content)
        with pytest.raises(CorruptedError) as damaged:
            refs.get("head")
        assert damaged.value.place == "refs/head"
        with pytest.raises(CorruptedError):
            refs.compare_and_set("head", expected=A, new=B)
        refs.replace("head", B)
        assert refs.get("head") == B

    def test_a_pipe_in_place_of_a_ref_does_not_block_the_reader(self, tmp_path: Path, refs: RefFiles) -> None:
        (tmp_path / "dataset/refs").mkdir(parents=True)
        os.mkfifo(tmp_path / "dataset/refs/head")
        with pytest.raises(CorruptedError, match="not a file") as damaged:
            refs.get("head")
        assert damaged.value.place == "refs/head"
        refs.replace("head", A)
        assert refs.get("head") == A

    def test_files_that_cannot_be_refs_are_not_listed(self, tmp_path: Path, refs: RefFiles) -> None:
        refs.replace("head", A)
        (tmp_path / "dataset/refs/.pending-1").write_bytes(b"")
        assert list(refs.names()) == ["head"]


class CatalogRefsContract(RefStoreContract):
    @pytest.fixture
    def refs(self, catalog_url: str) -> Iterator[RefStore]:
        dataset_id = DatasetId(bytes(32))
        with Catalog.open(catalog_url) as catalog:
            with catalog.begin() as transaction:
                alias = DatasetAlias.parse("acme/orders")
                transaction.add_dataset(dataset_id, alias, DatasetKind.ROOT, location=dataset_id.multibase)
            yield CatalogRefs(catalog, dataset_id)


class TestSqliteCatalog(CatalogRefsContract):
    @pytest.fixture
    def catalog_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/catalog.db"


@pytest.mark.slow
class TestPostgresCatalog(CatalogRefsContract):
    @pytest.fixture
    def catalog_url(self, postgres_url: str) -> str:
        return postgres_url


@pytest.mark.slow
class TestS3(RefFilesContract):
    @pytest.fixture
    def refs(self, s3_location: str) -> RefFiles:
        return open_folder(s3_location).refs

    def test_of_many_threads_one_wins(self, refs: RefStore) -> None:
        pytest.skip("the test's S3 server looks and writes in two steps; conditional writes of real ones are atomic")
