from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from odf_common.catalog.catalog import Catalog
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.errors import NotFoundError, StoreUnavailableError
from odf_common.identity.key_pair import KeyPair
from odf_common.identity.references import DatasetAlias
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.messages.payload import MAX_INLINE_SIZE, FetchedState, PollNote, UploadedPayload
from odf_common.metadata.events import AddData, DatasetKind, DisablePollingSource, MetadataEvent, SetPollingSource
from odf_common.metadata.fragments import SourceState
from odf_common.metadata.manifests import DatasetSnapshot
from odf_common.metadata.sources import (
    CompressionFormat,
    EventTimeSourceFromMetadata,
    FetchStep,
    FetchStepUrl,
    MergeStrategyAppend,
    PrepStepDecompress,
    ReadStepNdJson,
    RequestHeader,
)
from odf_common.repository.appending import append_events
from odf_common.repository.repository import Dataset, Repository
from odf_common.repository.snapshots import create_from_snapshot
from odf_common.settings import Settings
from odf_common.timestamp import Timestamp
from odf_common.uploads import UploadArea
from services.poller.errors import FetchDamagedError, FetchNotFoundError, PollError, PrepareError, StepRefusedError
from services.poller.fetched import Fetched, MessageRounds, UpToDate
from services.poller.lock import PollRunsError, locked_dataset
from services.poller.poll import Poller, PollWaitsError, Sent
from services.poller.settings import PollerSettings
from services.poller.topic import Outgoing, Positions
from tests.unit.services.poller.conftest import WebServer

DATE = "Wed, 01 May 2024 12:00:00 GMT"
TIME_MS = 1_714_564_800_000
NOW = Timestamp.parse("2024-06-01T00:00:00Z")


@dataclass
class Topic:
    """Stands for the topic of the one dataset."""

    messages: list[tuple[Outgoing, int]] = field(default_factory=list)
    was_read: bool | None = None
    failure: Exception | None = None

    def ends_of(self, servers: str, binding: Any, *, was_read: bool) -> dict[int, int]:
        self.was_read = was_read
        return {0: len(self.messages)} if self.messages else {}

    def send(self, servers: str, topic: str, messages: list[Outgoing], *, time_ms: int = 0) -> Positions:
        if self.failure is not None:
            raise self.failure
        positions = Positions()
        for message in messages:
            positions.add(0, len(self.messages))
            self.messages.append((message, time_ms))
        return positions

    @property
    def headers(self) -> dict[str, bytes]:
        return dict(self.messages[-1][0].headers)

    @property
    def note(self) -> PollNote:
        return PollNote.from_json(self.headers["odf-poll"])


@dataclass
class World:
    repository: Repository
    dataset: Dataset
    poller: Poller
    topic: Topic

    def poll(self, **options: Any) -> UpToDate | Sent:
        return self.poller.poll(self.dataset.entry, **options)

    def append(self, *events: MetadataEvent) -> None:
        append_events(self.repository, self.dataset.entry.id, list(events), NOW)

    def commit(self, fetched: FetchedState | None) -> None:
        """What job and committer make of all that was sent."""
        end = {0: len(self.topic.messages)}
        offsets = KafkaOffsets(topic="t", topic_id="i", start={}, next=end, messages=1, fetched=fetched)
        self.append(AddData(new_source_state=offsets.to_state("default"), new_watermark=NOW))


@contextmanager
def a_world(
    folder: Path, step: FetchStep, *, environment: dict[str, str] | None = None, prepare: Any = None, **more: Any
) -> Iterator[World]:
    settings = Settings(data_dir=folder)
    folder.mkdir(parents=True, exist_ok=True)
    topic = Topic()
    with Catalog.open(settings.catalog_url) as catalog:
        repository = Repository.at(settings.repository_location, catalog)
        source = SetPollingSource(fetch=step, prepare=prepare, read=ReadStepNdJson(), merge=MergeStrategyAppend())
        snapshot = DatasetSnapshot(name=DatasetAlias.parse("rates"), kind=DatasetKind.ROOT, metadata=(source,))
        dataset = create_from_snapshot(repository, snapshot, system_time=NOW, key_pair=KeyPair.generate())
        poller = Poller(
            repository=repository,
            settings=settings,
            poller_settings=PollerSettings(**more),
            servers="nowhere:1",
            environment=environment or {},
        )
        with (
            mock.patch("services.poller.poll.ends_of", topic.ends_of),
            mock.patch("services.poller.poll.send", topic.send),
        ):
            yield World(repository, dataset, poller, topic)


@pytest.fixture
def step(web: WebServer) -> FetchStepUrl:
    url = web.give("/a", b'{"a":1}', etag='"v1"', last_modified=DATE)
    return FetchStepUrl(url=url, event_time=EventTimeSourceFromMetadata())


@pytest.fixture
def world(tmp_path: Path, step: FetchStepUrl) -> Iterator[World]:
    with a_world(tmp_path / "odf", step) as found:
        yield found


TAG = FetchedState(kind="odf/etag", value='"v1"')


def test_a_small_payload_is_the_message(world: World) -> None:
    sent = world.poll()
    assert isinstance(sent, Sent)
    assert (sent.positions.start, sent.positions.next) == ({0: 0}, {0: 1})
    assert (sent.messages, sent.size, sent.state, sent.has_more) == (1, 7, TAG, False)
    message, time_ms = world.topic.messages[0]
    assert (message.value, time_ms) == (b'{"a":1}', TIME_MS)
    assert list(world.topic.headers) == ["odf-poll"]
    assert world.topic.note == PollNote(expected=None, fetched=TAG)
    assert world.topic.was_read is False


def test_the_next_poll_waits_for_the_block_of_the_one_before(world: World, web: WebServer) -> None:
    world.poll()
    with pytest.raises(PollWaitsError, match="is not in a block yet"):
        world.poll()
    world.commit(TAG)
    assert isinstance(world.poll(), UpToDate)
    web.give("/a", b'{"a":2}', etag='"v2"')
    assert isinstance(world.poll(), Sent)
    assert world.topic.note == PollNote(expected=TAG, fetched=FetchedState(kind="odf/etag", value='"v2"'))


def test_a_payload_that_was_not_taken_is_fetched_again(world: World) -> None:
    world.poll()
    world.commit(None)
    assert isinstance(world.poll(), Sent)
    assert world.topic.note.expected is None


def test_a_chain_that_another_program_began_goes_on(world: World, web: WebServer) -> None:
    state = SourceState(source_name="default", kind="odf/etag", value='"v1"')
    world.append(AddData(new_source_state=state, new_watermark=NOW))
    assert isinstance(world.poll(), UpToDate)
    web.give("/a", b"{}", etag='"v2"')
    assert isinstance(world.poll(), Sent)
    assert world.topic.note.expected is None  # the ingest job has not noted anything yet


def test_a_large_payload_goes_to_the_upload_area(world: World, web: WebServer) -> None:
    body = b"x" * (MAX_INLINE_SIZE + 1)
    web.give("/a", body, etag="1")
    sent = world.poll()
    assert isinstance(sent, Sent)
    assert sent.size == len(body)
    assert world.topic.headers["content-type"] == b"application/vnd.odf-streams.upload+json"
    reference = UploadedPayload.from_json(world.topic.messages[0][0].value)
    path = UploadArea(world.poller.settings.uploads_folder).path(world.dataset.entry.id, reference.name)
    assert path.read_bytes() == body
    assert (reference.size, reference.media_type) == (len(body), None)


def test_what_is_just_small_enough_is_not(world: World, web: WebServer) -> None:
    web.give("/a", b"x" * MAX_INLINE_SIZE, etag="1")
    world.poll()
    assert len(world.topic.messages[0][0].value) == MAX_INLINE_SIZE


def test_nothing_is_left_of_a_poll_that_fails(tmp_path: Path, step: FetchStepUrl, web: WebServer) -> None:
    packed = gzip.compress(bytes(range(256)) * 20_000)
    prepare = (PrepStepDecompress(format=CompressionFormat.GZIP),)
    with a_world(tmp_path / "odf", step, prepare=prepare) as world:
        web.give("/a", packed[:-5], etag="1")
        with pytest.raises(PrepareError, match=rf"^rates: Url {step.url}: the gzip file ends in the middle"):
            world.poll()
        assert world.topic.messages == []
        assert [path for path in (tmp_path / "odf/uploads").rglob("*") if path.is_file()] == []
        web.give("/a", packed, etag="1")
        assert isinstance(world.poll(), Sent)


def test_a_broker_that_does_not_take_it(world: World) -> None:
    world.topic.failure = StoreUnavailableError("topic t: timed out")
    with pytest.raises(StoreUnavailableError, match=r"^rates: Url .*: topic t: timed out"):
        world.poll()


SECRET_URL = "/a?key=${{ env.KEY }}"


@pytest.mark.parametrize("value", ["s3cret", "s3cret with /&?%", "http://s3cret"])
def test_secrets_are_in_no_error(tmp_path: Path, web: WebServer, value: str) -> None:
    steps = [
        FetchStepUrl(url=web.url + SECRET_URL),
        FetchStepUrl(url="http://${{ env.KEY }}/"),
        FetchStepUrl(url="${{ env.KEY }}"),
        FetchStepUrl(url=web.url, headers=(RequestHeader(name="a", value="${{ env.KEY }}\n"),)),
        FetchStepUrl(url="ftp://a:${{ env.KEY }}@127.0.0.1:1/x"),
        FetchStepUrl(url="file:///nowhere/${{ env.KEY }}"),
    ]
    for number, step in enumerate(steps):
        with (
            a_world(tmp_path / f"{number}", step, environment={"KEY": value}, env_allow="KEY") as world,
            pytest.raises(PollError) as caught,
        ):
            world.poll()
        assert "s3cret" not in str(caught.value)
        assert caught.value.__suppress_context__
        assert "${{ env.KEY }}" in str(caught.value) or "env.KEY" not in step.url


def test_secrets_are_neither_in_the_message_nor_in_logs(
    tmp_path: Path, web: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    web.give("/a?key=s3cret", b"{}", etag="1")
    with (
        caplog.at_level(0),
        a_world(
            tmp_path, FetchStepUrl(url=web.url + SECRET_URL), environment={"KEY": "s3cret"}, env_allow="KEY"
        ) as world,
    ):
        world.poll()
        assert b"s3cret" not in repr(world.topic.messages).encode()
    assert "s3cret" not in "".join(record.getMessage() for record in caplog.records)


def test_what_nobody_foresaw_is_one_error_too(world: World) -> None:
    with (
        mock.patch("services.poller.fetch.fetch", side_effect=RuntimeError("oh")),
        pytest.raises(PollError, match="unexpected RuntimeError: oh"),
    ):
        world.poll()


def test_not_found(world: World, web: WebServer) -> None:
    web.give("/a", status=404)
    with pytest.raises(FetchNotFoundError, match=r"^rates: Url http://127.*/a: the server says 404"):
        world.poll()


def test_a_time_that_messages_cannot_carry(world: World, web: WebServer) -> None:
    web.give("/a", b"{}", last_modified="Wed, 01 May 1968 12:00:00 GMT")
    with pytest.raises(FetchDamagedError, match="before 1970"):
        world.poll()


def test_without_a_polling_source(world: World) -> None:
    world.append(DisablePollingSource())
    with pytest.raises(NotFoundError, match="rates has no polling source"):
        world.poll()


def test_a_source_that_is_switched_off_or_stopped(world: World) -> None:
    catalog = world.repository.catalog
    world.poll()
    world.commit(TAG)
    (binding,) = catalog.push_sources(world.dataset.entry.id)
    with catalog.begin() as transaction:
        transaction.set_source_problem(binding.dataset_id, "default", "the topic was made anew")
    with pytest.raises(PollError, match="is not read: the topic was made anew"):
        world.poll()
    with catalog.begin() as transaction:
        transaction.bind_push_source(replace(binding, settings=binding.settings.model_copy(update={"enabled": False})))
    with pytest.raises(PollError, match="switched off"):
        world.poll()


def test_one_poll_at_a_time(world: World) -> None:
    with locked_dataset(world.poller.settings, world.dataset.entry.id), pytest.raises(PollRunsError):
        world.poll()
    assert isinstance(world.poll(), Sent)


def test_messages_in_rounds_are_forgotten_only_when_they_are_sent(world: World) -> None:
    log: list[str] = []

    def rounds() -> Iterator[list[bytes]]:
        for number in range(3):
            yield [b"a", b"b" * (MAX_INLINE_SIZE + number)]
            log.append(f"{len(world.topic.messages)} safe")

    with mock.patch("services.poller.fetch.fetch", return_value=MessageRounds(rounds())):
        sent = world.poll()
    assert isinstance(sent, Sent)
    assert log == ["2 safe", "4 safe", "6 safe"]
    assert (sent.messages, sent.positions.start, sent.positions.next, sent.state) == (6, {0: 0}, {0: 6}, None)
    assert [list(dict(message.headers)) for message, _ in world.topic.messages].count(["content-type"]) == 2


def test_no_round_is_up_to_date(world: World) -> None:
    with mock.patch("services.poller.fetch.fetch", return_value=MessageRounds(iter(()))):
        assert isinstance(world.poll(), UpToDate)


def test_the_media_type_of_what_was_made_here_is_told(world: World) -> None:
    found = Fetched(file=io.BytesIO(b"x"), state=TAG, media_type="application/x-ndjson")
    with mock.patch("services.poller.fetch.fetch", return_value=found):
        world.poll()
    assert world.topic.headers["content-type"] == b"application/x-ndjson"


def test_a_refusal_keeps_its_kind(tmp_path: Path, web: WebServer) -> None:
    step = FetchStepUrl(url="http://x/${{ env.NOT_ALLOWED }}")
    with a_world(tmp_path, step) as world, pytest.raises(StepRefusedError, match="NOT_ALLOWED is not for sources"):
        world.poll()


def test_the_chain_is_not_touched(world: World) -> None:
    before = world.dataset.refs.get("head")
    world.poll()
    assert MetadataChain(world.dataset.objects, world.dataset.refs).state().head == before
