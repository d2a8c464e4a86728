"""`odf source`: where data comes from, how it is read and whether it is."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odf_common.errors import NotFoundError
from services.cli.opening import DataDir, DatasetArgument, chain_of, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, Report, reporting
from services.cli.source_settings import changed_settings, settings_text
from services.cli.tables import columns_text, printable

if TYPE_CHECKING:
    from odf_common.catalog.records import DatasetEntry, PushSourceBinding
    from odf_common.chain.state import ChainState
    from odf_common.identity.did import DatasetId
    from odf_common.metadata.events import DisablePollingSource, DisablePushSource
    from odf_common.repository.repository import Repository
    from odf_common.settings import Settings

app = typer.Typer(no_args_is_help=True)

Source = Annotated[
    str | None, typer.Argument(metavar="SOURCE", help="Needed if there are several.", show_default="the only one")
]


@app.command(name="list", epilog="Example: odf source list city.temperature")
@reporting
def list_(dataset: DatasetArgument, data_dir: DataDir = None, output: Output = Format.TEXT) -> Report:
    """List the sources of a dataset with their topics and settings. A polling source is called `default`."""
    settings = settings_of(data_dir)
    with opened_repository(settings) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))
        state = chain_of(repository.open(entry.id)).state()
        found = [_described(binding, state) for binding in repository.catalog.push_sources(entry.id)]
    polled = _last_poll(settings, entry.id) if state.polling_source is not None else None
    for each in found:
        each["lastPoll"] = polled if each["kind"] == "polling" else None
    header = ("name", "kind", "state", "topic", "partitions", "settings")
    rows = [[each["name"], each["kind"], each["state"], each["topic"], *settings_text(each)] for each in found]
    problems = [printable(f"problem of {each['name']}: {each['problem']}") for each in found if each["problem"]]
    polls = [] if polled is None else [_poll_text(polled)]
    return Report("\n".join([columns_text(header, rows), *problems, *polls]) if found else "no sources", found)


def _last_poll(settings: Settings, dataset_id: DatasetId) -> dict[str, Any] | None:
    from services.poller.status import read_status

    status = read_status(settings, dataset_id)
    return None if status is None else status.model_dump(mode="json", by_alias=True)


def _poll_text(poll: dict[str, Any]) -> str:
    failures = f", failed {poll['failures']} times in a row" if poll["failures"] > 1 else ""
    return printable(f"last poll {poll['finished']}: {poll['result']}, {poll['detail']}{failures}")


def _described(binding: PushSourceBinding, state: ChainState) -> dict[str, Any]:
    name = binding.source_name
    polling = state.polling_source is not None and state.source(name) is not None
    active = state.source(name) is not None
    switched = "active" if binding.settings.enabled else "off"
    return {
        "name": name,
        "kind": "polling" if polling else "push",
        "active": active,
        "state": "disabled" if not active else "stopped" if binding.problem else switched,
        "topic": binding.topic,
        "settings": binding.settings.model_dump(),
        "problem": binding.problem,
    }


@app.command(name="set", epilog="Example: odf source set city.temperature --batch-time 60 --max-ahead 3600")
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
    max_ahead: Annotated[
        float | None,
        typer.Option(help="Seconds that an event may lie in the future and still move the watermark."),
    ] = None,
    no_max_ahead: Annotated[
        bool, typer.Option("--no-max-ahead", help="Let every event time move the watermark.")
    ] = False,
    accept_new_columns: Annotated[
        bool | None,
        typer.Option(
            "--accept-new-columns/--no-accept-new-columns",
            help="Whether columns that no read schema declares may join the dataset.",
        ),
    ] = None,
    event_id_window: Annotated[
        float | None, typer.Option(help="Seconds for which an event id is remembered; 0 does not look at ids.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="Poll so often, in seconds.")] = None,
    cron: Annotated[str | None, typer.Option(help="Poll at these times (UTC), such as '15 * * * *'.")] = None,
    no_schedule: Annotated[bool, typer.Option("--no-schedule", help="Poll only when `odf pull` says so.")] = False,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Change how a source is read. A running system follows at once; what is not given stays as it is."""
    given: dict[str, Any] = {
        "batch_time_s": batch_time,
        "batch_rows": batch_rows,
        "batch_bytes": batch_bytes,
        "watermark_delay_s": watermark_delay,
        "max_ahead_s": max_ahead,
        "accept_new_columns": accept_new_columns,
        "event_id_window_s": event_id_window,
        "poll_every_s": every,
        "poll_cron": cron,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    removed = {"max_ahead_s": no_max_ahead, "poll_every_s": no_schedule, "poll_cron": no_schedule}
    changes |= {name: None for name, is_removed in removed.items() if is_removed and name not in changes}
    with opened_repository(settings_of(data_dir)) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))
        state = chain_of(repository.open(entry.id)).state()
        binding = _binding(repository, entry, source)
        settings = changed_settings(binding.settings, changes, is_polling=state.polling_source is not None)
        changed = _bind(repository, replace(binding, settings=settings))
        found = _described(changed, state)
    rows = [[name, f"{value}"] for name, value in changed.settings.model_dump().items()]
    return Report(columns_text(["setting", "value"], rows), found)


def _binding(repository: Repository, entry: DatasetEntry, source: str | None) -> PushSourceBinding:
    from odf_common.repository.bindings import binding_of

    return binding_of(repository.catalog, entry, source)


def _bind(repository: Repository, binding: PushSourceBinding) -> PushSourceBinding:
    with repository.catalog.begin() as transaction:
        transaction.bind_push_source(binding)
    return binding


@app.command(epilog="Example: odf source disable city.temperature sensors")
@reporting
def disable(
    dataset: DatasetArgument,
    source: Source = None,
    in_chain: Annotated[
        bool,
        typer.Option("--in-chain", help="End the source for good, by an event in the chain. See below what it costs."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Switch a source off: nothing is read from it until `odf source enable`, which goes on where it was.

    The switch is this installation's own. With --in-chain the chain says it to everyone, by a DisablePushSource or
    DisablePollingSource event; but the programs of today other than this one cannot read a chain that holds one.
    """
    with opened_repository(settings_of(data_dir)) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))
        if in_chain:
            return _disable_in_chain(repository, entry, source, confirmed=yes)
        return _switch(repository, entry, source, enabled=False)


@app.command(epilog="Example: odf source enable city.temperature sensors")
@reporting
def enable(
    dataset: DatasetArgument, source: Source = None, data_dir: DataDir = None, output: Output = Format.TEXT
) -> Report:
    """Switch a source on again: it is read from where it was."""
    with opened_repository(settings_of(data_dir)) as repository:
        return _switch(repository, repository.catalog.dataset(parsed_ref(dataset)), source, enabled=True)


def _switch(repository: Repository, entry: DatasetEntry, source: str | None, *, enabled: bool) -> Report:
    binding = _binding(repository, entry, source)
    name = binding.source_name
    if chain_of(repository.open(entry.id)).state().source(name) is None:
        raise NotFoundError(
            f"the chain of {entry.alias} has no active source {name!r}: `odf append {entry.alias} FILE` adds it again"
        )
    if binding.settings.enabled == enabled:
        return Report(f"up to date: source {name} is {_switched(enabled)}", {"source": name, "change": "up to date"})
    _bind(repository, replace(binding, settings=binding.settings.model_copy(update={"enabled": enabled})))
    return Report(f"source {name} is {_switched(enabled)}", {"source": name, "change": _switched(enabled)})


def _switched(enabled: bool) -> str:
    return "on" if enabled else "off"


_UNREADABLE = "programs of today other than this one cannot read a chain that holds such an event"


def _disable_in_chain(repository: Repository, entry: DatasetEntry, source: str | None, *, confirmed: bool) -> Report:
    from odf_common.repository.appending import append_events
    from odf_common.timestamp import Timestamp

    state = chain_of(repository.open(entry.id)).state()
    name = source if source is not None else _binding(repository, entry, None).source_name
    event = _ending(state, name)
    if not confirmed and sys.stdin.isatty():
        typer.confirm(f"{event.kind} of source {name!r}: {_UNREADABLE}. Append it?", abort=True, err=True)
    block = append_events(repository, entry.id, [event], Timestamp.now())[-1]
    found = {"source": name, "change": "disabled", "event": event.kind, "blockHash": str(block)}
    note = f"the chain now holds a {event.kind} event: {_UNREADABLE}"
    return Report(f"source {name} is disabled, block {block}", found, (note,))


def _ending(state: ChainState, name: str) -> DisablePushSource | DisablePollingSource:
    from odf_common.chain.state import DEFAULT_SOURCE_NAME
    from odf_common.metadata.events import DisablePollingSource, DisablePushSource

    if state.polling_source is not None and name == DEFAULT_SOURCE_NAME:
        return DisablePollingSource()
    return DisablePushSource(source_name=name)


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
    """Let a source that stopped with a problem be read again."""
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
