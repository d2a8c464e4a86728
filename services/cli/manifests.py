"""Blocks and events between text and values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odf_common.errors import MalformedBytesError
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import (
    AddData,
    AddPushSource,
    DisablePushSource,
    ExecuteTransform,
    MetadataEvent,
    Seed,
    UnknownEvent,
)
from odf_common.metadata.manifests import MetadataBlockManifest, MetadataEventManifest
from odf_common.text.document import Document, Place
from odf_common.text.errors import shown
from odf_common.text.reader import read_documents
from odf_common.text.validation import validate
from odf_common.text.writer import write_document
from odf_common.wire.encoded_block import EncodedBlock
from services.cli.reporting import read_input, source_name


def block_document(encoded: EncodedBlock) -> dict[str, Any]:
    """The manifest of a block, for YAML or JSON."""
    # Built without validation: a block that was decoded may hold an event that no manifest can.
    fields: dict[str, Any] = {"version": encoded.manifest_version, "content": encoded.block}
    return MetadataBlockManifest.model_construct(**fields).to_document()


def block_yaml(encoded: EncodedBlock) -> str:
    """The manifest of a block as one of several documents, below its hash."""
    return f"---\n# Block: {encoded.hash}\n{write_document(block_document(encoded))}".rstrip("\n")


def block_line(encoded: EncodedBlock) -> str:
    """A block in one line: number, time, hash, what happened."""
    block = encoded.block
    return f"{block.sequence_number:>6}  {block.system_time}  {encoded.hash.short}  {_headline(block.event)}"


def _headline(event: MetadataEvent) -> str:
    details = list(_details(event))
    return f"{event.kind}: {', '.join(details)}" if details else event.kind


def _details(event: MetadataEvent) -> Iterator[str]:
    match event:
        case Seed():
            yield f"{event.dataset_kind} {event.dataset_id}"
        case AddData() | ExecuteTransform():
            if event.new_data is not None:
                interval = event.new_data.offset_interval
                yield f"{interval.end - interval.start + 1} records at offsets {interval.start}..{interval.end}"
            yield from _counts(event)
            if event.new_watermark is not None:
                yield f"watermark {event.new_watermark}"
            if event.new_checkpoint is not None:
                yield f"checkpoint {event.new_checkpoint.physical_hash.short}"
        case AddPushSource() | DisablePushSource():
            yield shown(event.source_name)
        case UnknownEvent():
            yield f"type {event.type_code}, of a later version"


def _counts(event: AddData | ExecuteTransform) -> Iterator[str]:
    """What became of the source's records, beside the rows."""
    state = event.new_source_state if isinstance(event, AddData) else None
    try:
        offsets = KafkaOffsets.of_state(state) if state else None
    except MalformedBytesError:
        return
    if offsets is None:
        return
    words = {"derived": "derived", "late": "late", "duplicates": "duplicates", "dead_letters": "dead letters"}
    yield from (f"{count} {word}" for name, word in words.items() if (count := getattr(offsets, name)))


def read_events(path: Path) -> Iterator[MetadataEvent]:
    """The events of a multi-document file, each a MetadataEvent manifest or bare."""
    return map(_event, read_documents(read_input(path), source=source_name(path)))


def _event(document: Document) -> MetadataEvent:
    if not (isinstance(document.value, dict) and document.value.get("kind") == "MetadataEvent"):
        document = _wrapped(document)
    return validate(MetadataEventManifest, document).content


def _wrapped(event: Document) -> Document:
    """A bare event as the content of a manifest; errors keep pointing into the original text."""
    return Document(
        value={"kind": "MetadataEvent", "version": 1, "content": event.value},
        text=event.text,
        root=Place(event.root.index, {"content": event.root}),
    )
