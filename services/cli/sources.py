"""`odf source`: push sources, how they are read and whether they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.cli.opening import DataDir, DatasetArgument, chain_of, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, Report, reporting
from services.cli.tables import columns_text, printable

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry, PushSourceBinding
    from odf_common.repository.repository import Repository
    from odf_common.settings import Settings

app = typer.Typer(no_args_is_help=True)

Source = Annotated[
    str | None, typer.Argument(metavar="SOURCE", help="Needed if there are several.", show_default="the only one")
]


@app.command(name="list", epilog="Example: odf source list city.temperature")
@reporting
def list_(dataset: DatasetArgument, data_dir: DataDir = None, output: Output = Format.TEXT) -> Report:
    """List the push sources of a dataset with their topics and settings."""
    with opened_repository(settings_of(data_dir)) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))
        active = {source.source_name for source in chain_of(repository.open(entry.id)).state().push_sources}
        found = [_described(binding, active) for binding in repository.catalog.push_sources(entry.id)]
    header = ("name", "state", "topic", "partitions", "batch-time", "batch-rows", "batch-bytes", "watermark-delay")
    rows = [_row(source) for source in found]
    problems = [printable(f"problem of {each['name']}: {each['problem']}") for each in found if each["problem"]]
    return Report("\n".join([columns_text(header, rows), *problems]) if found else "no push sources", found)


def _described(binding: PushSourceBinding, active: set[str]) -> dict[str, Any]:
    return {
        "name": binding.source_name,
        "active": binding.source_name in active,
        "topic": binding.topic,
        "settings": binding.settings.model_dump(),
        "problem": binding.problem,
    }


def _row(source: dict[str, Any]) -> list[str]:
    state = "stopped" if source["problem"] else "active" if source["active"] else "disabled"
    settings = source["settings"]
    return [
        source["name"],
        state,
        source["topic"],
        str(settings["partitions"]),
        f"{settings['batch_time_s']:g} s",
        str(settings["batch_rows"]),
        str(settings["batch_bytes"]),
        f"{settings['watermark_delay_s']:g} s",
    ]


@app.command(name="set", epilog="Example: odf source set city.temperature --batch-time 60 --batch-rows 1000000")
@reporting
def set_(
    dataset: DatasetArgument,
    source: Source = None,
    batch_time: Annotated[
        float | None, typer.Option(help="Seconds a batch may wait to become larger; 0 is as fast as it goes.")
    ] = None,
    batch_rows: Annotated[int | None, typer.Option(help="Rows at which a batch is closed.")] = None,
    batch_bytes: Annotated[int | None, typer.Option(help="Bytes at which a batch is closed.")] = None,
    watermark_delay: Annotated[
        float | None, typer.Option(help="Seconds the watermark stays behind the largest event time.")
    ] = None,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Change how a push source is read. A running system follows at once; what is not given stays as it is."""
    given = {
        "batch_time_s": batch_time,
        "batch_rows": batch_rows,
        "batch_bytes": batch_bytes,
        "watermark_delay_s": watermark_delay,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise typer.BadParameter("say what to change: --batch-time, --batch-rows, --batch-bytes or --watermark-delay")
    with opened_repository(settings_of(data_dir)) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))
        changed = _change(repository, entry, source, changes)
    return Report(columns_text(*_settings_table(changed)), _described(changed, {changed.source_name}))


def _change(
    repository: Repository, entry: DatasetEntry, source: str | None, changes: dict[str, Any]
) -> PushSourceBinding:
    from pydantic import ValidationError

    from odf_common.repository.bindings import binding_of

    binding = binding_of(repository.catalog, entry, source)
    try:
        settings = type(binding.settings).model_validate(binding.settings.model_dump() | changes)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = f"--{str(first['loc'][0]).removesuffix('_s').replace('_', '-')}"
        raise typer.BadParameter(first["msg"], param_hint=option) from error
    changed = replace(binding, settings=settings)
    with repository.catalog.begin() as transaction:
        transaction.bind_push_source(changed)
    return changed


def _settings_table(binding: PushSourceBinding) -> tuple[list[str], list[list[str]]]:
    return ["setting", "value"], [[name, f"{value}"] for name, value in binding.settings.model_dump().items()]


@app.command(epilog="Example: odf source disable city.temperature sensors")
@reporting
def disable(
    dataset: DatasetArgument, source: Source = None, data_dir: DataDir = None, output: Output = Format.TEXT
) -> Report:
    """End a push source. Peers of today cannot read a chain that holds a DisablePushSource event."""
    from odf_common.metadata.events import DisablePushSource
    from odf_common.repository.appending import append_events
    from odf_common.repository.bindings import binding_of
    from odf_common.timestamp import Timestamp

    with opened_repository(settings_of(data_dir)) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))
        name = source if source is not None else binding_of(repository.catalog, entry, None).source_name
        block = append_events(repository, entry.id, [DisablePushSource(source_name=name)], Timestamp.now())[-1]
    note = "the chain now holds a DisablePushSource event: programs of today other than this one cannot read it"
    return Report(f"source {name} is disabled, block {block}", {"source": name, "blockHash": str(block)}, (note,))


@app.command(epilog="Example: odf source resume city.temperature --accept-gap")
@reporting
def resume(
    dataset: DatasetArgument,
    source: Source = None,
    accept_gap: Annotated[
        bool, typer.Option("--accept-gap", help="Go on with what the topic holds now; the chain notes what was lost.")
    ] = False,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Let a push source that stopped with a problem be read again."""
    from odf_common.repository.bindings import binding_of

    settings = settings_of(data_dir)
    with opened_repository(settings) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))
        binding = binding_of(repository.catalog, entry, source)
        block = _accept_gap(settings, repository, binding) if accept_gap else None
        if binding.problem is None and block is None:
            return Report("up to date: the source has no problem", {"change": "up to date"})
        with repository.catalog.begin() as transaction:
            transaction.set_source_problem(entry.id, binding.source_name, None)
    found = {"change": "resumed", "source": binding.source_name, "problem": binding.problem, "blockHash": block}
    return Report(f"source {binding.source_name} is read again" + (f", block {block}" if block else ""), found)


def _accept_gap(settings: Settings, repository: Repository, binding: PushSourceBinding) -> str | None:
    from odf_common.endpoints import bootstrap_servers
    from odf_common.kafka.clients import admin_client
    from odf_common.kafka.topics import describe_topic
    from odf_common.repository.appending import append_events
    from odf_common.timestamp import Timestamp
    from services.cli.gaps import accepted_gap_events
    from services.cli.topic_reading import bounds, opened_consumer

    servers = bootstrap_servers(settings)
    topic = describe_topic(admin_client(servers), binding.topic)
    with opened_consumer(servers) as reader:
        held = bounds(reader, binding.topic)
    reason = binding.problem or "accepted by hand"
    appended = append_events(
        repository,
        binding.dataset_id,
        lambda chain: accepted_gap_events(chain, binding.source_name, topic, held, reason=reason),
        Timestamp.now(),
    )
    return str(appended[-1]) if appended else None
