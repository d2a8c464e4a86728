"""The two datasets of the demo, and where their topics and chains stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odf_common.errors import NotFoundError
from odf_common.settings import Settings
from services.cli.add import create, snapshots_in
from services.cli.opening import chain_of
from services.cli.positions import read_positions
from services.cli.producing import ensure_topic
from services.cli.topic_reading import ends, opened_consumer

if TYPE_CHECKING:
    from odf_common.catalog.records import PushSourceBinding
    from odf_common.repository.repository import Dataset, Repository

SOURCE = "default"
WEATHER = Path(__file__).with_name("weather.yaml")
FLIGHTS = Path(__file__).with_name("flights.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A dataset of the demo with the topic that feeds it."""

    dataset: Dataset
    topic: str

    @property
    def alias(self) -> str:
        """What people call it."""
        return str(self.dataset.entry.alias)

    def read_to(self) -> int:
        """The position in the topic up to which the chain has it."""
        return read_positions(chain_of(self.dataset).state(), SOURCE).get(0, 0)

    def length(self) -> int:
        """The blocks in the chain."""
        return chain_of(self.dataset).state().next_sequence_number


def ensured(repository: Repository, settings: Settings, manifests: Sequence[Path]) -> list[Target]:
    """The datasets of the manifests, made if they are not there."""
    return [_ensured(repository, settings, manifest) for manifest in manifests]


def ensure_topics(servers: str, repository: Repository, targets: Sequence[Target]) -> None:
    """Make the topics of new datasets, if the running system has not come to them yet."""
    for target in targets:
        ensure_topic(servers, _binding(repository, target.dataset), was_read=target.read_to() > 0)


def topic_ends(servers: str, targets: Sequence[Target]) -> list[int]:
    """The positions behind the last messages: as many events as were published in all runs."""
    with opened_consumer(servers) as reader:
        return [ends(reader, target.topic)[0] for target in targets]


def _ensured(repository: Repository, settings: Settings, manifest: Path) -> Target:
    (snapshot,) = snapshots_in(manifest)
    try:
        entry = repository.catalog.dataset(snapshot.name)
    except NotFoundError:
        create(repository, settings, snapshot)
        entry = repository.catalog.dataset(snapshot.name)
    dataset = repository.open(entry.id)
    return Target(dataset=dataset, topic=_binding(repository, dataset).topic)


def _binding(repository: Repository, dataset: Dataset) -> PushSourceBinding:
    from odf_common.repository.bindings import binding_of

    return binding_of(repository.catalog, dataset.entry, SOURCE)
