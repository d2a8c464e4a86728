"""The JSON Schemas of messages take what is sent, and the AsyncAPI document tells of all topics and messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from odf_common.identity.did import DatasetId
from odf_common.identity.multihash import SHA2_256, Multihash
from odf_common.identity.references import DatasetAlias
from odf_common.kafka.topic_names import default_push_topic
from odf_common.kafka.topics import SERVICE_TOPICS
from odf_common.messages.appending import appended_block
from odf_common.messages.base import Message
from odf_common.messages.block_appended import CLOUD_EVENTS_JSON, BlockAppended
from odf_common.messages.completion import Completion, Rejection, RejectionReason
from odf_common.messages.dead_letter import DEAD_LETTER_HEADER, DeadLetterNote
from odf_common.messages.dead_letter_retry import RETRIED_HEADER, RetriedNote
from odf_common.messages.kafka_offsets import AcceptedGap, KafkaOffsets, Repeat
from odf_common.messages.payload import FetchedState, PollNote, UploadedPayload
from schemas.codegen import MESSAGES, ROOT, message_models
from services.committer.decide import Append, decide
from tests.streams import START, Publisher, a_chain

ID = DatasetId(bytes(range(32)))
OFFSETS = KafkaOffsets(
    topic="t",
    topic_id="i",
    start={0: 0, 1: 3},
    next={0: 5, 1: 3},
    messages=5,
    records=5,
    derived=2,
    late=1,
    repeats=(Repeat(partition=0, offset=4, first_partition=0, first_offset=2),),
    fetched=FetchedState(kind="odf/etag", value="x"),
    accepted_gap=AcceptedGap(reason="r", lost_topic_id="h", lost_next={0: 1}),
)


def a_block() -> BlockAppended:
    decision = decide(a_chain(ID), Publisher(ID).batch(watermark=START))
    assert isinstance(decision, Append)
    return BlockAppended.of(appended_block(ID, "acme/cities", decision.blocks[-1]))


SENT: tuple[Message, ...] = (
    Publisher(ID).batch(),
    Publisher(ID).batch(0, dead_letters=1),
    Rejection(completion_id="c", dataset_id=ID, reason=RejectionReason.STALE, message="m"),
    a_block(),
    DeadLetterNote(
        dataset_id=ID,
        source_name="s",
        topic="t",
        topic_id="i",
        partition=0,
        offset=1,
        timestamp=START,
        code="InvalidJson",
        reason="r",
        time=START,
    ),
    OFFSETS,
    RetriedNote(
        dataset_id=ID,
        source_name="s",
        topic_id="i",
        partition=0,
        offset=1,
        attempt=1,
        new_partition=0,
        new_offset=9,
        time=START,
    ),
    PollNote(expected=FetchedState(kind="odf/etag", value="1"), fetched=FetchedState(kind="odf/etag", value="2")),
    UploadedPayload(name="0" * 32, hash=Multihash(SHA2_256, bytes(32)), size=5, media_type="text/csv"),
)


@cache
def validator(model: str) -> Any:
    return Draft202012Validator(json.loads((MESSAGES / f"{model}.schema.json").read_text()))


@cache
def asyncapi() -> Any:
    return yaml.safe_load((ROOT / "schemas" / "asyncapi.yaml").read_text())


@pytest.mark.parametrize("model", message_models(), ids=lambda model: model.__name__)
def test_they_are_json_schemas(model: type[Message]) -> None:
    Draft202012Validator.check_schema(validator(model.__name__).schema)


@pytest.mark.parametrize("message", SENT, ids=lambda message: type(message).__name__)
def test_they_take_what_is_sent(message: Message) -> None:
    validator(type(message).__name__).validate(json.loads(message.to_json()))
    assert type(message).from_json(message.to_json()) == message


@pytest.mark.parametrize("message", SENT, ids=lambda message: type(message).__name__)
def test_they_take_unknown_fields(message: Message) -> None:
    document = json.loads(message.to_json()) | {"later": 1}
    validator(type(message).__name__).validate(document)
    assert type(message).from_json(json.dumps(document).encode()) == message


@pytest.mark.parametrize("version", [0, 2, "1"])
def test_they_refuse_other_versions(version: Any) -> None:
    document = json.loads(SENT[0].to_json()) | {"version": version}
    assert not validator(Completion.__name__).is_valid(document)


class TestAsyncApi:
    def test_it_is_of_version_3(self) -> None:
        assert asyncapi()["asyncapi"] == "3.0.0"

    def test_it_tells_of_all_topics_as_they_are_created(self) -> None:
        channels = {channel["address"]: channel for channel in asyncapi()["channels"].values()}
        assert {topic.name for topic in SERVICE_TOPICS} == {
            name for name in channels if not name.startswith("odf.push")
        }
        for topic in SERVICE_TOPICS:
            binding = channels[topic.name]["bindings"]["kafka"]
            assert binding["partitions"] == topic.partitions
            assert binding["topicConfiguration"]["retention.ms"] == topic.retention_ms

    def test_it_knows_how_push_topics_are_named(self) -> None:
        alias = DatasetAlias.parse("account/dataset")
        address = asyncapi()["channels"]["push"]["address"]
        assert address.format(account="account", dataset="dataset", source="source") == default_push_topic(
            alias, "source"
        )

    def test_it_tells_of_all_messages(self) -> None:
        referred = {ref for ref in refs(asyncapi()) if not ref.startswith("#")}
        assert referred == {f"messages/{model.__name__}.schema.json" for model in message_models()}

    def test_every_reference_leads_somewhere(self) -> None:
        for ref in refs(asyncapi()):
            if ref.startswith("#/"):
                place = asyncapi()
                for step in ref[2:].split("/"):
                    place = place[step]
            else:
                assert (ROOT / "schemas" / ref).is_file()

    def test_every_channel_is_used(self) -> None:
        used = {operation["channel"]["$ref"] for operation in asyncapi()["operations"].values()}
        assert used == {f"#/channels/{name}" for name in asyncapi()["channels"]}

    def test_it_knows_the_headers(self) -> None:
        messages = asyncapi()["components"]["messages"]
        assert messages["BlockAppended"]["contentType"] == CLOUD_EVENTS_JSON
        assert DEAD_LETTER_HEADER in messages["DeadLetter"]["headers"]["properties"]
        assert RETRIED_HEADER in messages["RetriedDeadLetter"]["headers"]["properties"]


def refs(node: Any) -> Iterator[str]:
    """All references of a document."""
    if isinstance(node, dict):
        if isinstance(ref := node.get("$ref"), str):
            yield ref
        for item in node.values():
            yield from refs(item)
    elif isinstance(node, list):
        for item in node:
            yield from refs(item)
