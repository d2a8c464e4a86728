"""The job: a pipeline for each dataset that has sources, and what all of them hear."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING

import structlog

from odf_common.errors import NotFoundError, OdfError, StoreUnavailableError
from odf_common.messages.block_appended import AppendedBlock
from odf_common.messages.completion import RejectionReason
from odf_common.metadata.events import DatasetKind
from streaming_jobs.ingest.pipeline import DatasetPipeline

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry
    from odf_common.identity.did import DatasetId
    from odf_common.messages.completion import Rejection
    from streaming_jobs.ingest.context import JobContext
    from streaming_jobs.ingest.events import Events

_POLL_S = 0.05
_LOOK_AT_BINDINGS_S = 1.0
_LOOK_AT_DATASETS_S = 15.0
_NEW_SOURCE = ("AddPushSource", "SetPollingSource")

_log = structlog.get_logger(__name__)


class IngestJob:
    """Runs in the main thread of its process."""

    def __init__(self, context: JobContext, events: Events) -> None:
        self._context = context
        self._events = events
        self._pipelines: dict[DatasetId, DatasetPipeline] = {}
        self._bindings_due = self._datasets_due = 0.0

    def run(self, is_stopping: Callable[[], bool]) -> None:
        """Serve until told to stop."""
        try:
            while not is_stopping():
                for event in self._events.poll(_POLL_S):
                    self._on_event(event)
                try:
                    self._look_around()
                except StoreUnavailableError as error:
                    _log.warning("the catalog does not answer", error=str(error))
                self._context.messenger.check()
                for pipeline in list(self._pipelines.values()):
                    if is_stopping():  # each may wait for a broker that is away
                        break
                    pipeline.tick()
        finally:
            self._stop()

    def _stop(self) -> None:
        for pipeline in self._pipelines.values():
            pipeline.end()  # all at once, then wait for each
        for pipeline in self._pipelines.values():
            pipeline.stop()

    def _on_event(self, event: AppendedBlock | Rejection) -> None:
        pipeline = self._pipelines.get(event.dataset_id)
        if not isinstance(event, AppendedBlock):
            if event.reason is RejectionReason.NO_DATASET:
                self._forget(event.dataset_id)
            elif pipeline is not None:
                pipeline.on_rejection(event)
        elif pipeline is not None:
            pipeline.on_block(event)
        elif event.event_kind in _NEW_SOURCE:
            self._datasets_due = 0.0

    def _look_around(self) -> None:
        now = time.monotonic()
        if now >= self._datasets_due:
            self._datasets_due = now + _LOOK_AT_DATASETS_S
            self._look_at_datasets()
        if now >= self._bindings_due:
            self._bindings_due = now + _LOOK_AT_BINDINGS_S
            self._look_at_bindings()

    def _look_at_datasets(self) -> None:
        """Notice datasets that were added or deleted."""
        there = {entry.id: entry for entry in self._context.catalog.datasets() if entry.kind is DatasetKind.ROOT}
        for dataset_id in [known for known in self._pipelines if known not in there]:
            self._forget(dataset_id)
        for dataset_id, entry in there.items():
            if dataset_id not in self._pipelines and self._has_source(entry):
                self._pipelines[dataset_id] = DatasetPipeline(self._context, entry)

    def _has_source(self, entry: DatasetEntry) -> bool:
        from odf_common.chain.metadata_chain import MetadataChain

        try:
            dataset = self._context.repository.open(entry.id)
            return bool(MetadataChain(dataset.objects, dataset.refs).state().sources)
        except NotFoundError:
            return False
        except OdfError as error:
            _log.error("dataset left out", dataset=str(entry.alias), error=str(error))
            return False

    def _look_at_bindings(self) -> None:
        """Notice changed settings and cleared problems."""
        bindings = self._context.catalog.push_sources()
        for dataset_id, group in groupby(bindings, key=lambda binding: binding.dataset_id):
            pipeline = self._pipelines.get(dataset_id)
            if pipeline is not None:
                pipeline.on_bindings({binding.source_name: binding for binding in group})

    def _forget(self, dataset_id: DatasetId) -> None:
        pipeline = self._pipelines.pop(dataset_id, None)
        if pipeline is not None:
            pipeline.stop()
