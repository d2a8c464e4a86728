"""After a crash or a loss: files that follow the catalog, and a catalog from the files."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from odf_common.catalog.records import DatasetEntry
from odf_common.chain.walk import block_place, walk_back
from odf_common.errors import CorruptedError, InvalidTextError, MalformedBytesError, NotFoundError, OdfError
from odf_common.identity import multibase
from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import Multihash
from odf_common.identity.references import DatasetAlias, DatasetName
from odf_common.metadata.events import Seed
from odf_common.repository.repository import Repository
from odf_common.storage.dataset_folder import DatasetFolder
from odf_common.storage.layout import ALIAS_INFO, HEAD, INFO_FOLDER, REFS_FOLDER, ObjectKind
from odf_common.wire.decode import decode_block


@dataclass(frozen=True, slots=True)
class Problem:
    """A folder that was left alone, and why; somebody has to look at it."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What `reconcile` found."""

    written: tuple[str, ...]
    """Files that did not say what the catalog says, as `folder/file`."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """What `rebuild_catalog` found."""

    restored: tuple[DatasetEntry, ...]
    problems: tuple[Problem, ...]


def reconcile(repository: Repository) -> Reconciliation:
    """Bring refs and aliases in the folders in line with the catalog, and delete what dead writers left unfinished.

    A ref whose block is missing is reported and its file left alone; so are folders that the catalog does not know. A
    folder that cannot be read or written is reported too, and does not keep the others from being mended.
    """
    written: list[str] = []
    problems: list[Problem] = []
    known = set()
    for entry in repository.datasets():
        known.add(entry.location)
        with _reported(entry.location, problems):
            written.extend(_write_files(repository, entry, problems))
    for name in repository.root.names():
        if _dataset_id(name) is None:
            continue
        with _reported(name, problems):
            repository.root.remove_left_overs(name)
        if name not in known:
            problems.append(Problem(name, "the catalog does not know it: its creation or deletion did not finish"))
    return Reconciliation(tuple(written), tuple(problems))


def rebuild_catalog(repository: Repository) -> Rebuild:
    """Add every dataset below the root that the catalog does not know; nothing in the folders is changed.

    Identity and kind come from the Seed block, the alias from `info/alias`, refs from their files. A folder without a
    readable alias becomes a dataset named like the folder. One that cannot be read, without an intact chain from `head`
    to its Seed, or whose alias another dataset has, is reported and left alone; so is a damaged ref besides `head`.
    """
    restored: list[DatasetEntry] = []
    problems: list[Problem] = []
    for name in repository.root.names():
        dataset_id = _dataset_id(name)
        if dataset_id is None or _is_known(repository, dataset_id):
            continue
        with _reported(name, problems):
            restored.append(_restore(repository, dataset_id, problems))
    return Rebuild(tuple(restored), tuple(problems))


@contextmanager
def _reported(folder: str, problems: list[Problem]) -> Iterator[None]:
    """Go on with the other folders, whatever is wrong with this one."""
    try:
        yield
    except OdfError as error:
        problems.append(Problem(folder, str(error)))


def _write_files(repository: Repository, entry: DatasetEntry, problems: list[Problem]) -> Iterator[str]:
    objects = repository.folder_of(entry).objects
    for name, target in repository.catalog.refs(entry.id).items():
        if not objects.has(ObjectKind.BLOCKS, target):
            problems.append(
                Problem(entry.location, f"the catalog has {name!r} at {target}, but there is no such block")
            )
            continue
        with _reported(entry.location, problems):
            if repository.write_ref_file(entry, name):
                yield f"{entry.location}/{REFS_FOLDER}/{name}"
    if repository.write_alias_file(entry):
        yield f"{entry.location}/{INFO_FOLDER}/{ALIAS_INFO}"


def _restore(repository: Repository, dataset_id: DatasetId, problems: list[Problem]) -> DatasetEntry:
    name = dataset_id.multibase
    folder = repository.folder(dataset_id)
    head = folder.refs.get(HEAD)
    if head is None:
        raise CorruptedError(f"{REFS_FOLDER}/{HEAD}", "it does not exist: no state of the dataset was ever visible")
    seed = _seed(folder, head)
    if seed.dataset_id != dataset_id:
        raise CorruptedError(name, f"its chain begins with the Seed block of another dataset, {seed.dataset_id}")
    other_refs = list(_other_refs(folder, name, problems))
    with repository.catalog.begin() as transaction:
        transaction.add_dataset(dataset_id, _alias(folder, dataset_id), seed.dataset_kind, location=name)
        transaction.move_ref(dataset_id, HEAD, expected=None, new=head)
        for ref, target in other_refs:
            transaction.move_ref(dataset_id, ref, expected=None, new=target)
    return repository.catalog.dataset(dataset_id)


def _seed(folder: DatasetFolder, head: Multihash) -> Seed:
    (first,) = deque(walk_back(folder.objects, head), maxlen=1)
    try:
        event = decode_block(first.data).block.event
    except MalformedBytesError as error:
        raise CorruptedError(block_place(first.hash), str(error)) from error
    if not isinstance(event, Seed):
        raise CorruptedError(block_place(first.hash), "the first block of the chain is not a Seed")
    return event


def _other_refs(folder: DatasetFolder, name: str, problems: list[Problem]) -> Iterator[tuple[str, Multihash]]:
    for ref in sorted(folder.refs.names()):
        try:
            target = folder.refs.get(ref)
        except CorruptedError as error:
            problems.append(Problem(name, str(error)))
            continue
        if target is None or not folder.objects.has(ObjectKind.BLOCKS, target):
            problems.append(Problem(name, f"{REFS_FOLDER}/{ref}: there is no block {target}"))
        elif ref != HEAD:
            yield ref, target


def _alias(folder: DatasetFolder, dataset_id: DatasetId) -> DatasetAlias:
    try:
        return DatasetAlias.parse((folder.objects.get_info(ALIAS_INFO) or b"").decode())
    except (CorruptedError, UnicodeDecodeError, InvalidTextError):
        return DatasetAlias(None, DatasetName.parse(dataset_id.multibase))


def _is_known(repository: Repository, dataset_id: DatasetId) -> bool:
    try:
        repository.catalog.dataset(dataset_id)
    except NotFoundError:
        return False
    return True


def _dataset_id(folder_name: str) -> DatasetId | None:
    """The dataset that a folder is named after, None for other folders."""
    try:
        dataset_id = DatasetId.from_bytes(multibase.decode(folder_name))
    except (InvalidTextError, MalformedBytesError):
        return None
    return dataset_id if dataset_id.multibase == folder_name else None
