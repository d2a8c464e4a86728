"""One poll of one dataset: look, fetch, prepare, send."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from odf_common.catalog.records import DatasetEntry, PushSourceBinding
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.chain.state import DEFAULT_SOURCE_NAME, ChainState
from odf_common.crash_points import crash_point
from odf_common.errors import NotFoundError, OdfError
from odf_common.messages.kafka_offsets import KafkaOffsets, reaches
from odf_common.messages.payload import (
    CONTENT_TYPE_HEADER,
    MAX_INLINE_SIZE,
    POLL_HEADER,
    UPLOAD_MEDIA_TYPE,
    FetchedState,
    PollNote,
    UploadedPayload,
)
from odf_common.metadata.events import SetPollingSource
from odf_common.repository.bindings import bind_missing_sources, binding_of
from odf_common.repository.repository import Repository
from odf_common.settings import Settings
from odf_common.uploads import UploadArea
from services.poller.errors import PollError
from services.poller.fetched import Fetched, FetchJob, MessageRounds, UpToDate
from services.poller.lock import locked_dataset
from services.poller.settings import PollerSettings
from services.poller.templates import Secrets
from services.poller.topic import Outgoing, Positions, ends_of, kafka_time, send

_CHUNK_SIZE = 1 << 20


class PollWaitsError(PollError):
    """An earlier poll's messages are not in a block yet: what comes next builds on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a poll sent. `state` is what the chain will have when the block is there."""

    positions: Positions
    messages: int
    size: int  # bytes
    state: FetchedState | None = None
    has_more: bool = False


Outcome = UpToDate | Sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Poller:
    """Polls the datasets of a repository. Safe to share between threads; one poll of a dataset at a time."""

    repository: Repository
    settings: Settings
    poller_settings: PollerSettings
    servers: str
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    stopping: Callable[[], bool] = lambda: False

    def poll(self, entry: DatasetEntry, *, force: bool = False) -> Outcome:
        """Poll a dataset now. A PollError says why nothing was sent; PollWaitsError, that it is too early."""
        with locked_dataset(self.settings, entry.id):
            chain = self._chain(entry)
            source, binding = self._source(chain, entry)
            self._check_all_committed(chain, binding)
            return self._fetch_and_send(entry, binding, source, chain, force=force)

    def _chain(self, entry: DatasetEntry) -> ChainState:
        dataset = self.repository.open(entry.id)
        return MetadataChain(dataset.objects, dataset.refs).state()

    def _source(self, chain: ChainState, entry: DatasetEntry) -> tuple[SetPollingSource, PushSourceBinding]:
        source = chain.polling_source
        if source is None:
            raise NotFoundError(f"dataset {entry.alias} has no polling source: SetPollingSource in its chain makes one")
        bind_missing_sources(self.repository.catalog, entry, chain)
        binding = binding_of(self.repository.catalog, entry, DEFAULT_SOURCE_NAME)
        if not binding.settings.enabled:
            raise PollError(
                f"the source of {entry.alias} is switched off: `odf source enable {entry.alias}` switches it on again"
            )
        if binding.problem is not None:
            raise PollError(f"the source of {entry.alias} is not read: {binding.problem}")
        return source, binding

    def _check_all_committed(self, chain: ChainState, binding: PushSourceBinding) -> None:
        state = chain.source_state(DEFAULT_SOURCE_NAME)
        read = None if state is None else KafkaOffsets.of_state(state)
        ends = ends_of(self.servers, binding, was_read=read is not None)
        if not reaches({} if read is None else read.next, ends):
            raise PollWaitsError(f"what earlier polls sent to topic {binding.topic} is not in a block yet")

    def _fetch_and_send(
        self,
        entry: DatasetEntry,
        binding: PushSourceBinding,
        source: SetPollingSource,
        chain: ChainState,
        *,
        force: bool,
    ) -> Outcome:
        from services.poller.fetch import fetch

        secrets = Secrets(self.poller_settings.allowed_names, self.environment)
        job = FetchJob(
            dataset_id=entry.id,
            read=source.read,
            prepare=source.prepare or (),
            settings=self.poller_settings,
            secrets=secrets,
            last=last_fetched(chain),
            force=force,
            folder=self.scratch,
            stopping=self.stopping,
        )
        with job.until_done, _told(f"{entry.alias}: {shown(source)}", secrets):
            found = fetch(source.fetch, job)
            match found:
                case UpToDate():
                    return found
                case MessageRounds():
                    return self._send_rounds(entry, binding, found)
                case Fetched():
                    return self._send_payload(entry, binding, found, job, expected=_noted(chain))

    @property
    def scratch(self) -> Path:
        """Where fetched files without a name are."""
        return self.settings.uploads_folder / "fetching"

    def _send_payload(
        self,
        entry: DatasetEntry,
        binding: PushSourceBinding,
        found: Fetched,
        job: FetchJob,
        *,
        expected: FetchedState | None,
    ) -> Outcome:
        from services.poller.prepare import Limits, prepared

        time_ms = kafka_time(found.event_time)
        limits = Limits.of(self.poller_settings, folder=self.scratch)
        with prepared(job.prepare, found.file, limits=limits) as file:
            message, size = self._message(entry, file, found.media_type)
        note = PollNote(expected=expected, fetched=found.state)
        crash_point("poller.before-send")
        with_note = Outgoing(message.value, (*message.headers, (POLL_HEADER, note.to_json())))
        positions = send(self.servers, binding.topic, [with_note], time_ms=time_ms)
        crash_point("poller.after-send")
        return Sent(positions=positions, messages=1, size=size, state=found.state, has_more=found.has_more)

    def _message(self, entry: DatasetEntry, file: BinaryIO, media_type: str | None) -> tuple[Outgoing, int]:
        """The message of a payload: the payload itself, or where it lies."""
        start = _read_up_to(file, MAX_INLINE_SIZE + 1)
        if len(start) <= MAX_INLINE_SIZE:
            headers = () if media_type is None else ((CONTENT_TYPE_HEADER, media_type.encode()),)
            return Outgoing(start, headers), len(start)
        upload = UploadArea(self.settings.uploads_folder).write(entry.id, _all_of(start, file))
        reference = UploadedPayload(name=upload.name, hash=upload.hash, size=upload.size, media_type=media_type)
        return Outgoing(reference.to_json(), ((CONTENT_TYPE_HEADER, UPLOAD_MEDIA_TYPE.encode()),)), upload.size

    def _send_rounds(self, entry: DatasetEntry, binding: PushSourceBinding, found: MessageRounds) -> Outcome:
        import io

        positions = Positions()
        messages = size = 0
        for payloads in found.rounds:
            sized = [self._message(entry, io.BytesIO(payload), None) for payload in payloads]
            placed = send(self.servers, binding.topic, [message for message, _ in sized])
            for partition, start in placed.start.items():
                positions.add(partition, start)
                positions.add(partition, placed.next[partition] - 1)
            messages += len(sized)
            size += sum(each for _, each in sized)
        if not messages:
            return UpToDate("no message came")
        return Sent(positions=positions, messages=messages, size=size)


def last_fetched(chain: ChainState) -> FetchedState | None:
    """What the polling source was at by the chain: as our jobs note it, or as other programs do."""
    state = chain.source_state(DEFAULT_SOURCE_NAME)
    if state is None or KafkaOffsets.of_state(state) is not None:
        return _noted(chain)
    return FetchedState(kind=state.kind, value=state.value)


def _noted(chain: ChainState) -> FetchedState | None:
    """What the ingest job holds a poll against: its own notes only."""
    state = chain.source_state(DEFAULT_SOURCE_NAME)
    offsets = None if state is None else KafkaOffsets.of_state(state)
    return None if offsets is None else offsets.fetched


def shown(source: SetPollingSource) -> str:
    """Where a source fetches from, as its owner wrote it: placeholders stay placeholders."""
    step = source.fetch
    for name in ("url", "path", "image", "host", "node_url"):
        if (found := getattr(step, name, None)) is not None:
            return f"{step.kind} {found}"
    return str(step.kind)


@contextmanager
def _told(what: str, secrets: Secrets) -> Iterator[None]:
    """Errors say of what they are, and hold no secret: neither do those that they come from, which are left out."""
    try:
        yield
    except PollError as error:
        raise type(error)(secrets.hidden(f"{what}: {error}")) from None
    except OdfError as error:
        error.args = tuple(secrets.hidden(f"{what}: {each}") if isinstance(each, str) else each for each in error.args)
        raise error from None
    except OSError as error:
        raise PollError(secrets.hidden(f"{what}: {error.strerror or error}")) from None
    except Exception as error:
        raise PollError(secrets.hidden(f"{what}: unexpected {type(error).__name__}: {error}")) from None


def _read_up_to(file: BinaryIO, size: int) -> bytes:
    """All bytes up to so many; one read may give fewer."""
    found = bytearray()
    while len(found) < size and (chunk := file.read(size - len(found))):
        found += chunk
    return bytes(found)


def _all_of(start: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield start
    while chunk := file.read(_CHUNK_SIZE):
        yield chunk
