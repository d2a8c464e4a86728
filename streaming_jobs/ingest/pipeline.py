"""One dataset in the job: started from its chain, watched, and started anew when something changed or went wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import structlog

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.data.arrow_types import to_arrow
from odf_common.errors import MalformedBytesError, OdfError, StoreUnavailableError
from odf_common.ingest.errors import BadInputSchemaError, UnsupportedSourceError
from odf_common.ingest.source import SourcePlan
from odf_common.messages.completion import RejectionReason
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.repository.bindings import bind_missing_sources
from odf_common.staging import remove_left_overs
from streaming_jobs.ingest import metrics
from streaming_jobs.ingest.batch_size import MessageSize, max_messages
from streaming_jobs.ingest.event_ids import EventIds
from streaming_jobs.ingest.positions import Gap, Start, start_of
from streaming_jobs.ingest.preprocess import preprocess_of
from streaming_jobs.ingest.run import DatasetRun, Trouble
from streaming_jobs.ingest.source import Source
from streaming_jobs.ingest.source_query import SourceQuery
from streaming_jobs.ingest.state import KeyedStates, Progress
from streaming_jobs.ingest.writer import BatchWriter

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry, PushSourceBinding
    from odf_common.chain.state import ChainState
    from odf_common.messages.block_appended import AppendedBlock
    from odf_common.messages.completion import Rejection
    from odf_common.repository.repository import Dataset
    from streaming_jobs.ingest.context import JobContext
    from streaming_jobs.ingest.positions import TopicExtent
    from streaming_jobs.ingest.topics import Headers

_SETTLE_S = 0.25
"""What was proposed gets this long to be committed before the chain is looked at again."""

_MAX_BACK_OFF_S = 60.0
_WELL_AFTER_S = 30.0
_WELL_WITHIN_S = 5.0  # a run whose batches wait longer for their commit is not well, however long it is there
_LOOK_AGAIN_S = 30.0
_CHECK_TOPICS_S = 3.0
_SAMPLE_FROM = 1_000  # messages that wait

_SOURCE_EVENTS = {"AddPushSource", "DisablePushSource", "SetVocab", "SetPollingSource", "DisablePollingSource"}
_KEEP_UPLOADS_S = 7 * 86_400.0

_log = structlog.get_logger(__name__)


class DatasetPipeline:
    """Used by the job's main thread."""

    def __init__(self, context: JobContext, entry: DatasetEntry) -> None:
        self._context = context
        self._entry = entry
        self._run: DatasetRun | None = None
        self._sizes: dict[str, MessageSize] = {}
        self._refused: dict[str, str] = {}
        self._bindings: dict[str, PushSourceBinding] = {}
        self._failures = 0
        now = time.monotonic()
        self._due = self._topics_due = now
        self._started = now

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        if self._run is None:
            if now >= self._due:
                self._start()
        elif (trouble := self._run.trouble()) is not None:
            self._recover(trouble)
        elif (failure := self._context.messenger.failure(self._entry.id)) is not None:
            self._failed(failure)
        elif now >= self._topics_due:
            self._check_topics(self._run)
        elif self._failures and now - self._started > _WELL_AFTER_S and self._run.waiting_s() < _WELL_WITHIN_S:
            self._failures = 0

    def on_block(self, block: AppendedBlock) -> None:
        """Take note of a block, whoever appended it."""
        is_gap = block.source is not None and block.source.accepted_gap is not None
        if block.event_kind in _SOURCE_EVENTS or is_gap:
            self._refused.clear()
            self.restart(f"{block.event_kind} in block {block.sequence_number}")
        elif self._run is not None:
            if block.event_kind == "SetDataSchema" and not self._run.proposed_at(block.system_time):
                self.restart(f"the schema was set by somebody else in block {block.sequence_number}")
                return
            self._run.on_block(block)

    def on_rejection(self, rejection: Rejection) -> None:
        """Build anew what was rejected, on the chain as it is."""
        if self._run is None or not self._run.proposed(rejection.completion_id):
            return
        if rejection.reason is RejectionReason.REFUSED and rejection.source_name is not None:
            self._refused[rejection.source_name] = rejection.message
        self._failed(f"the committer rejected a batch ({rejection.reason}): {rejection.message}")

    def on_bindings(self, bindings: dict[str, PushSourceBinding]) -> None:
        """Start anew when topics or settings changed, or when somebody cleared a source's problem."""
        if self._bindings and {name: _essence(binding) for name, binding in bindings.items()} != {
            name: _essence(binding) for name, binding in self._bindings.items()
        }:
            self._refused.clear()
            self.restart("settings of sources changed")
        self._bindings = bindings

    def restart(self, reason: str) -> None:
        """Start anew soon, on the chain as it is then."""
        _log.info("starting anew", dataset=str(self._entry.alias), reason=reason)
        self.stop()
        self._due = time.monotonic() + _SETTLE_S

    def end(self) -> None:
        """Begin to stop, without waiting."""
        if self._run is not None:
            self._run.end()

    def stop(self) -> None:
        """Stop reading."""
        run, self._run = self._run, None
        if run is not None:
            self._sizes |= run.sizes
            run.close()

    def _recover(self, trouble: Trouble) -> None:
        if trouble.is_resize:
            self.restart(trouble.reason)
        else:
            self._failed(trouble.reason)

    def _failed(self, reason: str) -> None:
        self._failures += 1
        metrics.RESTARTS.labels(str(self._entry.alias)).inc()
        self.restart(reason)
        self._due = time.monotonic() + _back_off_s(self._failures)

    def _start(self) -> None:
        try:
            self._run = self._started_run()
        except ConnectionError:  # Spark's virtual machine is gone: only a new process gets another one
            raise
        except (OdfError, OSError) as error:  # a full disk must not stop the others
            self._failed(f"could not start: {error}")
            return
        self._started = time.monotonic()
        self._topics_due = self._started + _CHECK_TOPICS_S
        if self._run is None:
            self._due = self._started + _LOOK_AGAIN_S

    def _started_run(self) -> DatasetRun | None:
        dataset = self._context.repository.open(self._entry.id)
        chain = MetadataChain(dataset.objects, dataset.refs)
        state = chain.state()
        bind_missing_sources(self._context.catalog, self._entry, state)
        self._bindings = {
            binding.source_name: binding for binding in self._context.catalog.push_sources(self._entry.id)
        }
        active = [binding for binding in self._bindings.values() if state.source(binding.source_name)]
        self._context.topics.create(active)
        ready = {source.name: (source, extent, start) for source, extent, start in self._ready(state, active)}
        self._remove_old_uploads(active, ready.values())
        if not ready:
            return None
        sources = {name: source for name, (source, _, _) in ready.items()}
        run = DatasetRun(lambda is_closed: self._open_writer(dataset, chain, state, sources, is_closed), sources)
        try:
            for source, extent, start in ready.values():
                self._add_query(run, source, extent, start)
        except BaseException:
            run.close()
            raise
        return run

    def _ready(self, state: ChainState, active: list[PushSourceBinding]) -> Iterator[tuple[Source, TopicExtent, Start]]:
        """The sources that can be read; why others cannot is noted in the catalog."""
        for binding in active:
            if not binding.settings.enabled:
                self._note_problem(binding, None)
                continue
            extent = self._context.topics.extent(binding.topic)
            try:
                source = self._source(state, binding, extent)
                start = start_of(source.read_before, extent)
            except (UnsupportedSourceError, BadInputSchemaError, MalformedBytesError) as error:
                self._note_problem(binding, str(error))
                continue
            problem = start.reason if isinstance(start, Gap) else self._refused.get(binding.source_name)
            self._note_problem(binding, problem)
            if problem is None and isinstance(start, Start):
                yield source, extent, start

    def _source(self, state: ChainState, binding: PushSourceBinding, extent: TopicExtent) -> Source:
        event = state.source(binding.source_name)
        assert event is not None
        schema = None if state.data_schema is None else to_arrow(state.data_schema)
        read = state.source_state(binding.source_name)
        preprocess = event.preprocess
        return Source(
            dataset=str(self._entry.alias),
            binding=binding,
            topic_id=extent.topic.id,
            plan=SourcePlan.of(event, state.vocabulary, schema, others=state.sources),
            preprocess=None if preprocess is None else preprocess_of(self._context.spark, preprocess),
            read_before=None if read is None else KafkaOffsets.of_state(read),
        )

    def _open_writer(
        self,
        dataset: Dataset,
        chain: MetadataChain,
        state: ChainState,
        sources: dict[str, Source],
        is_closed: Callable[[], bool],
    ) -> BatchWriter:
        plans = [source.plan for source in sources.values()]
        states = KeyedStates.for_plans(self._context.indexes, self._entry.id, plans)
        ids: dict[str, EventIds] = {}
        try:
            states.catch_up(chain, dataset.objects, state.vocabulary, partial(_check_open, is_closed))
            for source in sources.values():
                if source.binding.settings.event_id_window_s > 0:
                    ids[source.name] = self._event_ids(source)
                    self._catch_up_ids(ids[source.name], source, chain, is_closed)
            remove_left_overs(self._context.staging, self._entry.id)
            return BatchWriter(
                state,
                sources,
                staging=self._context.staging,
                messenger=self._context.messenger,
                states=states,
                uploads=self._context.uploads,
                topic_id_of=lambda topic: self._context.topics.describe(topic).id,
                ids=ids,
                max_payload_size=self._context.max_payload_size,
                is_closed=is_closed,
            )
        except BaseException:
            states.close()  # they lock their files
            for each in ids.values():
                each.close()
            raise

    def _event_ids(self, source: Source) -> EventIds:
        return EventIds.of_source(
            self._context.indexes,
            self._entry.id,
            source.name,
            topic_id=source.topic_id,
            window_s=source.binding.settings.event_id_window_s,
        )

    def _catch_up_ids(self, ids: EventIds, source: Source, chain: MetadataChain, is_closed: Callable[[], bool]) -> None:
        def headers(start: Mapping[int, int], end: Mapping[int, int]) -> Iterator[list[tuple[int, int, Headers]]]:
            for some in self._context.topics.headers(source.binding.topic, start, end):
                _check_open(is_closed)
                yield some

        read = source.read_before.next if source.read_before else {}
        ids.catch_up(chain, source.name, read, headers)

    def _remove_old_uploads(
        self, active: list[PushSourceBinding], ready: Iterable[tuple[Source, TopicExtent, Start]]
    ) -> None:
        """Remove what nobody came for, unless it may be named in messages that are still to be read."""
        read_to_end = [source for source, extent, start in ready if start.positions == dict(extent.end)]
        if len(read_to_end) == len(active):
            self._context.uploads.remove_older_than(self._entry.id, _KEEP_UPLOADS_S)

    def _add_query(self, run: DatasetRun, source: Source, extent: TopicExtent, start: Start) -> None:
        size = self._sizes.get(source.name)
        waiting = sum(extent.end[partition] - position for partition, position in start.positions.items())
        # Few messages can be too much as well; Spark has failed on them then.
        if waiting >= _SAMPLE_FROM or (waiting and self._failures):
            size = MessageSize.of(self._context.topics.sample(source.binding.topic, start.positions)) or size
        limit = max_messages(size, source.binding.settings)
        query = SourceQuery(
            self._context.spark,
            self._context.bootstrap_servers,
            source.binding,
            positions=start.positions,
            max_messages=limit,
            on_messages=lambda messages: run.on_messages(source.name, messages),
        )
        run.add_query(query, max_messages=limit)
        _log.info("reading", dataset=source.dataset, source=source.name, positions=start.positions, max_messages=limit)

    def _note_problem(self, binding: PushSourceBinding, problem: str | None) -> None:
        if binding.problem == problem:
            return
        if problem is not None:
            _log.error("source stopped", dataset=str(self._entry.alias), source=binding.source_name, problem=problem)
        with self._context.catalog.begin() as transaction:
            transaction.set_source_problem(binding.dataset_id, binding.source_name, problem)
        self._bindings[binding.source_name] = _with_problem(binding, problem)

    def _check_topics(self, run: DatasetRun) -> None:
        """Notice a topic that was made anew although nothing comes of it; of what comes, the writer asks."""
        self._topics_due = time.monotonic() + _CHECK_TOPICS_S
        try:
            for source in run.sources.values():
                if self._context.topics.describe(source.binding.topic).id != source.topic_id:
                    self.restart(f"topic {source.binding.topic} is another one than before")
                    return
        except StoreUnavailableError as error:
            _log.warning("the broker does not answer", error=str(error))
        except OdfError as error:
            self._failed(str(error))


def _check_open(is_closed: Callable[[], bool], _: Progress | None = None) -> None:
    if is_closed():
        raise StoreUnavailableError("the run is over: what it has not read yet is read at the next start")


def _back_off_s(failures: int) -> float:
    return min(_SETTLE_S * 2.0 ** min(failures - 1, 20), _MAX_BACK_OFF_S)


def _essence(binding: PushSourceBinding) -> tuple[object, ...]:
    return binding.topic, binding.settings, binding.problem


def _with_problem(binding: PushSourceBinding, problem: str | None) -> PushSourceBinding:
    from dataclasses import replace

    return replace(binding, problem=problem)
