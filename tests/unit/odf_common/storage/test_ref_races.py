"""Two processes race for one ref: in every round exactly one wins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.identity.references import DatasetAlias
from odf_common.metadata.events import DatasetKind
from tests.unit.odf_common.storage import ref_racer
from tests.unit.odf_common.storage.ref_racer import DATASET, REF, WON, open_refs, target

ROUNDS = 1000
RACERS = ("left", "right")


@pytest.fixture(params=["folder", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path)
    url: str = request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:///{tmp_path}/c.db"
    with Catalog.open(url) as catalog, catalog.begin() as transaction:
        transaction.add_dataset(DATASET, DatasetAlias.parse("raced"), DatasetKind.ROOT, location="raced")
    return url


class Racer:
    """A process that is told when a round begins."""

    def __init__(self, store: str, name: str) -> None:
        self.name = name
        command = [sys.executable, "-W", "error", ref_racer.__file__, store, name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, last_winner: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{last_winner}\n")
        self.process.stdin.flush()

    def has_won(self) -> bool:
        assert self.process.stdout is not None
        return self.process.stdout.readline() == WON

    def finish(self) -> int:
        self.process.communicate()
        return self.process.returncode


@pytest.mark.slow
def test_each_round_has_one_winner(store: str) -> None:
    racers = [Racer(store, name) for name in RACERS]
    winners: list[str] = []
    for _ in range(ROUNDS):
        racers.reverse()  # nobody always starts first
        for racer in racers:
            racer.begin(winners[-1] if winners else "")
        (winner,) = [racer.name for racer in racers if racer.has_won()]
        winners.append(winner)
    assert [racer.finish() for racer in racers] == [0, 0]
    assert set(winners) == set(RACERS)
    sequence = [target(winner, number) for number, winner in enumerate(winners)]
    assert final_head(store) == sequence[-1]
    if "://" in store:
        assert journaled(store) == list(map(str, sequence))


def final_head(store: str) -> object:
    if "://" not in store:
        return open_refs(store).get(REF)
    with Catalog.open(store) as catalog:
        return catalog.ref(DATASET, REF)


def journaled(store: str) -> list[str]:
    """Where the ref went, in the order of the journal."""
    with Catalog.open(store) as catalog:
        entries = catalog.pending_journal(limit=2 * ROUNDS)
    return [entry.record.payload["newBlockHash"] for entry in entries if entry.record.kind == "RefMoved"]
