"""`odf list`, `odf log` and `odf inspect`: what the repository holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.opening import DataDir, DatasetArgument, chain_of, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, Report, json_array, reporting
from services.cli.tables import columns_text

if TYPE_CHECKING:
    from odf_common.catalog.records import PushSourceBinding
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.chain.state import ChainState
    from odf_common.metadata.events import AddPushSource
    from odf_common.repository.repository import Dataset, Repository
    from odf_common.wire.encoded_block import EncodedBlock


@reporting
def list_(data_dir: DataDir = None, output: Output = Format.TEXT) -> Report:
    """List the datasets, in the order of their aliases."""
    with opened_repository(settings_of(data_dir)) as repository:
        rows = [_listed(repository.open(entry.id)) for entry in repository.datasets()]
    header = ("alias", "kind", "blocks", "records", "watermark", "head", "id")
    table = [[str(row[name] if row[name] is not None else "-") for name in header] for row in rows]
    return Report(columns_text(header, table) if rows else "no datasets yet: `odf add FILE` makes one", rows)


def _listed(dataset: Dataset) -> dict[str, Any]:
    state = chain_of(dataset).state()
    return {
        "alias": str(dataset.entry.alias),
        "id": str(dataset.entry.id),
        "kind": str(dataset.entry.kind),
        "blocks": state.next_sequence_number,
        "records": state.next_offset,
        "head": str(state.head),
        "watermark": str(state.watermark) if state.watermark else None,
    }


@reporting
def log(
    dataset: DatasetArgument,
    limit: Annotated[int | None, typer.Option(min=1, help="Show so many blocks at most.", show_default="all")] = None,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Iterator[str]:
    """Show the blocks of a dataset, newest first, as they are read."""
    with opened_repository(settings_of(data_dir)) as repository:
        blocks = islice(chain_of(repository.open(parsed_ref(dataset))).blocks(), limit)
        if output == Format.TEXT:
            from services.cli.manifests import block_line

            yield from map(block_line, blocks)
        else:
            yield from json_array(map(_logged, blocks))


def _logged(encoded: EncodedBlock) -> dict[str, Any]:
    from services.cli.manifests import block_document

    return {"hash": str(encoded.hash), **block_document(encoded)["content"]}


@reporting
def inspect(dataset: DatasetArgument, data_dir: DataDir = None, output: Output = Format.TEXT) -> Report:
    """Show what a dataset is: its schema, sources with their topics and positions, license, and sizes."""
    with opened_repository(settings_of(data_dir)) as repository:
        found = _inspected(repository, repository.open(parsed_ref(dataset)))
    return Report(_page(found), found)


def _inspected(repository: Repository, dataset: Dataset) -> dict[str, Any]:
    chain = chain_of(dataset)
    state = chain.state()
    bindings = {binding.source_name: binding for binding in repository.catalog.push_sources(dataset.entry.id)}
    return {
        **_listed(dataset),
        "schema": _ddl(state),
        "sources": [_source(state, source, bindings.get(source.source_name)) for source in state.sources],
        "pollingSource": state.polling_source.to_document() if state.polling_source else None,
        "transform": state.transform.to_document() if state.transform else None,
        "vocabulary": state.vocabulary.to_document(),
        **_descriptions_and_sizes(chain),
    }


def _ddl(state: ChainState) -> list[str] | None:
    """The columns as DDL; as their logical types where DDL has no word for one."""
    from odf_common.data.arrow_types import to_arrow
    from odf_common.data.ddl import format_ddl
    from odf_common.data.errors import UnsupportedTypeError

    if state.data_schema is None:
        return None
    try:
        return list(format_ddl(to_arrow(state.data_schema)))
    except UnsupportedTypeError:
        return [f"{field.name} {field.type.kind}" for field in state.data_schema.fields]


def _source(state: ChainState, source: AddPushSource, binding: PushSourceBinding | None) -> dict[str, Any]:
    from services.cli.positions import counts_of, read_offsets

    offsets = read_offsets(state, source.source_name)
    document = source.to_document()
    return {
        "name": source.source_name,
        "read": document["read"],
        "preprocess": document.get("preprocess"),
        "merge": document["merge"],
        "topic": binding.topic if binding else None,
        "settings": binding.settings.model_dump() if binding else None,
        "problem": binding.problem if binding else None,
        "next": dict(sorted(offsets.next.items())) if offsets else {},
        "lastBlock": counts_of(offsets) if offsets else None,
    }


def _descriptions_and_sizes(chain: MetadataChain) -> dict[str, Any]:
    """What no state keeps, found on a walk through all blocks."""
    from odf_common.chain.named_objects import named_objects
    from odf_common.metadata.events import SetAttachments, SetInfo, SetLicense
    from odf_common.storage.layout import ObjectKind

    found: dict[str, Any] = {"info": None, "license": None, "attachments": None}
    names = {SetInfo: "info", SetLicense: "license", SetAttachments: "attachments"}
    slices = size = blocks_size = 0
    for encoded in chain.blocks():
        event = encoded.block.event
        blocks_size += len(encoded.data)
        if (name := names.get(type(event))) is not None and found[name] is None:
            found[name] = {key: item for key, item in event.to_document().items() if key != "kind"}
        for named in named_objects(encoded.block):
            slices += named.kind == ObjectKind.DATA
            size += named.size
    return {**found, "slices": slices, "dataSize": size, "blocksSize": blocks_size}


def _page(found: dict[str, Any]) -> str:
    lines = [
        f"{found['alias']}  {found['kind']}",
        f"id         {found['id']}",
        f"head       {found['head']}",
        f"blocks     {found['blocks']} ({found['blocksSize']} bytes)",
        f"records    {found['records']} in {found['slices']} slices ({found['dataSize']} bytes)",
        f"watermark  {found['watermark'] or '-'}",
    ]
    if found["info"]:
        lines.append(
            f"info       {found['info'].get('description', '')} {_listing(found['info'].get('keywords'))}".rstrip()
        )
    if found["license"]:
        lines.append(f"license    {found['license']['name']} <{found['license']['websiteUrl']}>")
    lines.append(f"columns    {', '.join(f'{name}: {value}' for name, value in found['vocabulary'].items())}")
    lines.append(
        "schema     "
        + ("\n           ".join(found["schema"]) if found["schema"] else "not known before the first data")
    )
    for source in found["sources"]:
        lines += _source_lines(source)
    return "\n".join(lines)


def _listing(items: list[str] | None) -> str:
    return f"[{', '.join(items)}]" if items else ""


_WORDS = {
    "records": "records",
    "duplicates": "duplicates",
    "deadLetters": "dead letters",
    "derived": "derived",
    "late": "late",
}


def _source_lines(source: dict[str, Any]) -> Iterator[str]:
    yield f"source     {source['name']}: {source['read']['kind']}, merge {source['merge']['kind']}"
    yield f"  topic    {source['topic'] or 'not bound yet: a running system does it'}"
    if source["settings"]:
        yield "  settings " + ", ".join(f"{name}={value}" for name, value in source["settings"].items())
    positions = ", ".join(f"{partition}:{position}" for partition, position in source["next"].items())
    yield f"  read to  {positions or 'the beginning'}"
    if source["lastBlock"]:
        yield "  newest   " + ", ".join(f"{count} {_WORDS[name]}" for name, count in source["lastBlock"].items())
    if source["problem"]:
        yield f"  problem  {source['problem']}"
