from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.catalog.errors import IdTakenError, NameTakenError
from odf_common.catalog.records import DatasetEntry, JournalRecord, RefMove
from odf_common.errors import NotFoundError, RefCASFailedError
from odf_common.identity.did import AccountId
from odf_common.identity.references import AccountName
from odf_common.metadata.events import DatasetKind
from odf_common.timestamp import Timestamp
from tests.unit.odf_common.catalog.builders import a_hash, add_dataset, an_alias, an_id

NOON = Timestamp.parse("2020-01-01T12:00:00Z")


def journal(catalog: Catalog) -> list[JournalRecord]:
    return [entry.record for entry in catalog.pending_journal(limit=1000)]


def move_refs(catalog: Catalog, *moves: RefMove) -> None:
    with catalog.begin() as transaction:
        for move in moves:
            transaction.move_ref(move.dataset_id, move.name, expected=move.expected, new=move.new)


def test_a_dataset_is_found_by_id_and_by_alias_in_any_case(catalog_url: str) -> None:
    with Catalog.open(catalog_url, clock=lambda: NOON) as catalog:
        add_dataset(catalog, 1, "Acme/Orders")
        expected = DatasetEntry(
            id=an_id(1),
            alias=an_alias("Acme/Orders"),
            kind=DatasetKind.ROOT,
            location=an_id(1).multibase,
            created_at=NOON,
        )
        assert catalog.dataset(an_id(1)) == catalog.dataset(an_alias("acme/ORDERS")) == expected
        assert str(catalog.dataset(an_id(1)).alias) == "Acme/Orders"


def test_an_alias_with_an_account_is_not_the_one_without(catalog: Catalog) -> None:
    add_dataset(catalog, 1, "acme/orders")
    add_dataset(catalog, 2, "orders")
    add_dataset(catalog, 3, "emca/orders")
    assert catalog.dataset(an_alias("orders")).id == an_id(2)


@pytest.mark.parametrize("ref", [an_id(9), an_alias("orders"), an_alias("acme/dataset-1")])
def test_an_unknown_dataset_is_named(catalog: Catalog, ref: object) -> None:
    add_dataset(catalog, 1)
    with pytest.raises(NotFoundError, match=str(ref)):
        catalog.dataset(ref)  # type: ignore[arg-type]


@pytest.mark.parametrize("alias", ["orders", "acme/orders"])
def test_a_name_belongs_to_one_dataset_whatever_its_case(catalog: Catalog, alias: str) -> None:
    add_dataset(catalog, 1, alias)
    with pytest.raises(NameTakenError) as taken:
        add_dataset(catalog, 2, alias.upper())
    assert taken.value.taken_by == an_id(1)
    with pytest.raises(NotFoundError):
        catalog.dataset(an_id(2))


def test_a_dataset_cannot_be_added_under_a_second_name(catalog: Catalog) -> None:
    add_dataset(catalog, 1, "orders")
    with pytest.raises(IdTakenError, match="already known as orders"):
        add_dataset(catalog, 1, "other")


def test_datasets_are_listed_by_alias_in_pages(catalog: Catalog) -> None:
    aliases = [f"{name}-{number}" for number in range(10) for name in ("b", "A", "acme/c")]
    for number, alias in enumerate(aliases):
        add_dataset(catalog, number, alias)
    expected = sorted(alias.lower() for alias in aliases)
    first = catalog.dataset_page(limit=7)
    second = catalog.dataset_page(after=first[-1].alias, limit=7)
    assert [str(entry.alias).lower() for entry in first + second] == expected[:14]
    assert [str(entry.alias).lower() for entry in catalog.datasets()] == expected


def test_a_dataset_is_renamed(catalog: Catalog) -> None:
    add_dataset(catalog, 1, "orders")
    add_dataset(catalog, 2, "taken")
    with pytest.raises(NameTakenError), catalog.begin() as transaction:
        transaction.rename_dataset(an_id(1), an_alias("Taken"))
    for alias in ("Orders", "acme/sales"):
        with catalog.begin() as transaction:
            transaction.rename_dataset(an_id(1), an_alias(alias))
    assert str(catalog.dataset(an_id(1)).alias) == "acme/sales"
    with pytest.raises(NotFoundError):
        catalog.dataset(an_alias("orders"))


def test_a_deleted_dataset_takes_its_refs_along_and_leaves_its_journal(catalog: Catalog) -> None:
    add_dataset(catalog, 1)
    move_refs(catalog, RefMove(dataset_id=an_id(1), name="head", expected=None, new=a_hash(1)))
    with catalog.begin() as transaction:
        transaction.delete_dataset(an_id(1))
    assert catalog.refs(an_id(1)) == {}
    assert [record.kind for record in journal(catalog)] == ["DatasetCreated", "RefMoved", "DatasetDeleted"]
    add_dataset(catalog, 1)
    assert catalog.ref(an_id(1), "head") is None


def test_accounts_have_an_id_and_a_name(catalog: Catalog) -> None:
    acme = AccountId(bytes(32))
    with catalog.begin() as transaction:
        transaction.add_account(acme, AccountName.parse("Acme"))
    found = catalog.find_account(AccountName.parse("acme"))
    assert found is not None
    assert found == catalog.find_account(acme)
    assert catalog.find_account(AccountName.parse("other")) is None
    with pytest.raises(NameTakenError), catalog.begin() as transaction:
        transaction.add_account(AccountId(bytes([1]) * 32), AccountName.parse("ACME"))
    with pytest.raises(IdTakenError), catalog.begin() as transaction:
        transaction.add_account(acme, AccountName.parse("other"))


def test_several_refs_move_all_or_none(catalog: Catalog) -> None:
    for number in (1, 2):
        add_dataset(catalog, number)
    before = journal(catalog)
    fits = RefMove(dataset_id=an_id(1), name="head", expected=None, new=a_hash(1))
    fails = RefMove(dataset_id=an_id(2), name="head", expected=a_hash(7), new=a_hash(8))
    with pytest.raises(RefCASFailedError):
        move_refs(catalog, fits, fails)
    assert catalog.ref(an_id(1), "head") is None
    assert journal(catalog) == before
    move_refs(catalog, fits, RefMove(dataset_id=an_id(2), name="head", expected=None, new=a_hash(2)))
    assert [catalog.refs(an_id(number)) for number in (1, 2)] == [{"head": a_hash(1)}, {"head": a_hash(2)}]


def test_a_failure_says_which_dataset_it_was(catalog: Catalog) -> None:
    add_dataset(catalog, 1)
    with pytest.raises(RefCASFailedError) as failed:
        move_refs(catalog, RefMove(dataset_id=an_id(1), name="head", expected=a_hash(7), new=a_hash(8)))
    assert failed.value.__notes__ == [f"dataset {an_id(1)}"]


def test_a_ref_of_an_unknown_dataset_cannot_move(catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match="there is no dataset"):
        move_refs(catalog, RefMove(dataset_id=an_id(1), name="head", expected=None, new=a_hash(1)))


def test_every_change_is_journaled_in_its_own_transaction(catalog: Catalog) -> None:
    dataset_id = add_dataset(catalog, 1, "orders")
    told = JournalRecord(dataset_id=dataset_id, kind="BlocksAppended", payload={"blocks": [1, "é", None]})
    with catalog.begin() as transaction:
        transaction.move_ref(dataset_id, "head", expected=None, new=a_hash(1))
        transaction.record(told)
    move_refs(catalog, RefMove(dataset_id=dataset_id, name="head", expected=a_hash(1), new=a_hash(2)))
    assert journal(catalog) == [
        JournalRecord(dataset_id=dataset_id, kind="DatasetCreated", payload={"alias": "orders", "kind": "Root"}),
        JournalRecord(
            dataset_id=dataset_id,
            kind="RefMoved",
            payload={"ref": "head", "oldBlockHash": None, "newBlockHash": str(a_hash(1))},
        ),
        told,
        JournalRecord(
            dataset_id=dataset_id,
            kind="RefMoved",
            payload={"ref": "head", "oldBlockHash": str(a_hash(1)), "newBlockHash": str(a_hash(2))},
        ),
    ]


def test_what_is_not_marked_as_published_comes_again(catalog: Catalog) -> None:
    for number in range(5):
        add_dataset(catalog, number)
    first = catalog.pending_journal(limit=3)
    assert catalog.pending_journal(limit=3) == first
    catalog.mark_published(entry.id for entry in first[:2])
    catalog.mark_published(entry.id for entry in first[:2])
    catalog.mark_published([])
    rest = catalog.pending_journal(limit=10)
    assert rest[0] == first[2]
    assert len(rest) == 3


def test_a_transaction_that_raises_changes_nothing(catalog: Catalog) -> None:
    def fail_after_a_change() -> None:
        with catalog.begin() as transaction:
            transaction.delete_dataset(an_id(1))
            raise ZeroDivisionError

    add_dataset(catalog, 1)
    before = journal(catalog)
    with pytest.raises(ZeroDivisionError):
        fail_after_a_change()
    assert catalog.dataset(an_id(1)).id == an_id(1)
    assert journal(catalog) == before


@pytest.mark.slow
def test_journal_records_become_visible_in_their_order(catalog: Catalog) -> None:
    writers = 4
    records_each = 50
    for number in range(writers):
        add_dataset(catalog, number)

    def write(number: int) -> None:
        for _ in range(records_each):
            with catalog.begin() as transaction:
                transaction.record(JournalRecord(dataset_id=an_id(number), kind="Told", payload={}))

    seen: list[int] = []
    with ThreadPoolExecutor(writers) as pool:
        writing = [pool.submit(write, number) for number in range(writers)]
        while True:
            is_last_look = all(future.done() for future in writing)
            seen += [entry.id for entry in catalog.pending_journal(limit=1000) if entry.id not in seen]
            if is_last_look:
                break
    assert seen == sorted(seen)
    assert len(seen) == writers * (records_each + 1)
    for future in writing:
        future.result()
