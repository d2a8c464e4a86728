"""`odf status`: how the system does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from odf_common.errors import NotFoundError, StoreUnavailableError
from services.cli.opening import DataDir, chain_of, opened_repository, settings_of
from services.cli.reporting import Format, Output, Report, reporting
from services.cli.tables import columns_text, printable

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from odf_common.catalog.records import PushSourceBinding
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.chain.state import ChainState
    from odf_common.repository.repository import Dataset, Repository
    from odf_common.settings import Settings

_GATEWAY_TIMEOUT_S = 2.0


@reporting
def status(data_dir: DataDir = None, output: Output = Format.TEXT) -> Report:
    """Show the services, and per push source how far its blocks are behind its topic."""
    settings = settings_of(data_dir)
    with opened_repository(settings) as repository:
        services = _services(settings)
        datasets = _datasets(repository, services["kafka"])
    return Report(_text(services, datasets), {"services": services, "datasets": datasets})


def _services(settings: Settings) -> dict[str, Any]:
    from odf_common.endpoints import running_endpoints

    try:
        endpoints = running_endpoints(settings)
    except StoreUnavailableError as error:
        kafka = settings.kafka_bootstrap_servers
        return {"running": False, "kafka": kafka, "gateway": None, "ready": None, "hint": str(error)}
    return {
        "running": True,
        "kafka": settings.kafka_bootstrap_servers or endpoints.kafka_bootstrap_servers,
        "gateway": endpoints.gateway_url,
        "ready": _is_ready(endpoints.gateway_url),
        "hint": None,
    }


def _is_ready(gateway_url: str) -> bool:
    from urllib.error import URLError
    from urllib.request import urlopen

    try:
        with urlopen(f"{gateway_url.rstrip('/')}/readyz", timeout=_GATEWAY_TIMEOUT_S) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (URLError, OSError, ValueError):
        return False


def _datasets(repository: Repository, servers: str | None) -> list[dict[str, Any]]:
    from services.cli.topic_reading import opened_consumer

    entries = list(repository.datasets())
    if servers is None:
        return [_dataset(repository, repository.open(entry.id), None) for entry in entries]
    with opened_consumer(servers) as reader:
        return [_dataset(repository, repository.open(entry.id), reader) for entry in entries]


def _dataset(repository: Repository, dataset: Dataset, reader: Consumer | None) -> dict[str, Any]:
    from services.cli.lag import rows_per_second

    chain = chain_of(dataset)
    state = chain.state()
    bindings = repository.catalog.push_sources(dataset.entry.id)
    return {
        "alias": str(dataset.entry.alias),
        "id": str(dataset.entry.id),
        "head": str(state.head),
        "blocks": state.next_sequence_number,
        "records": state.next_offset,
        "watermark": str(state.watermark) if state.watermark else None,
        "rowsPerSecond": round(rows_per_second(_recent(chain), now=time.time()), 3),
        "sources": [_source(state, binding, reader) for binding in bindings],
    }


def _recent(chain: MetadataChain) -> Iterator[tuple[float, int]]:
    from odf_common.metadata.events import AddData

    for encoded in chain.blocks():
        event = encoded.block.event
        rows = 0
        if isinstance(event, AddData) and event.new_data is not None:
            rows = event.new_data.offset_interval.end - event.new_data.offset_interval.start + 1
        yield encoded.block.system_time.to_datetime().timestamp(), rows


def _source(state: ChainState, binding: PushSourceBinding, reader: Consumer | None) -> dict[str, Any]:
    from services.cli.positions import read_positions

    found: dict[str, Any] = {
        "name": binding.source_name,
        "active": state.source(binding.source_name) is not None,
        "enabled": binding.settings.enabled,
        "lastBlock": _last_block(state, binding.source_name),
        "topic": binding.topic,
        "next": read_positions(state, binding.source_name),
        "lagEvents": None,
        "lagSeconds": None,
        "problem": binding.problem,
    }
    return found if reader is None else found | _lag(reader, binding.topic, found)


def _last_block(state: ChainState, name: str) -> dict[str, int] | None:
    """What the source's newest block says became of its records."""
    from services.cli.positions import counts_of, read_offsets

    offsets = read_offsets(state, name)
    return counts_of(offsets) if offsets else None


def _lag(reader: Consumer, topic: str, source: dict[str, Any]) -> dict[str, Any]:
    from services.cli.lag import lag_of

    try:
        lag = lag_of(reader, topic, source["next"], now=time.time())
    except NotFoundError as error:
        return {"problem": source["problem"] or str(error)}
    except StoreUnavailableError as error:
        return {"problem": source["problem"] or f"lag not known: {error}"}
    return {"lagEvents": lag.events, "lagSeconds": round(lag.seconds, 3)}


def _text(services: dict[str, Any], datasets: list[dict[str, Any]]) -> str:
    if services["running"]:
        ready = "ready" if services["ready"] else "not ready"
        lines = [f"kafka    {services['kafka']}", f"gateway  {services['gateway']} {ready}"]
    else:
        lines = [services["hint"]]
    header = ("dataset", "source", "lag", "seconds", "rows/s", "watermark", "head", "topic")
    rows = [_row(dataset, source) for dataset in datasets for source in dataset["sources"] or [None]]
    off = [
        f"switched off: {dataset['alias']}, source {source['name']}"
        for dataset in datasets
        for source in dataset["sources"]
        if source["active"] and not source["enabled"]
    ]
    problems = [
        printable(f"problem of {dataset['alias']}, source {source['name']}: {source['problem']}")
        for dataset in datasets
        for source in dataset["sources"]
        if source["problem"]
    ]
    return "\n".join([*lines, columns_text(header, rows) if rows else "no datasets yet", *off, *problems])


def _row(dataset: dict[str, Any], source: dict[str, Any] | None) -> list[str]:
    head = dataset["head"]
    of_source = (
        ["-"] * 3 if source is None else [source["name"], _shown(source["lagEvents"]), _shown(source["lagSeconds"])]
    )
    return [
        dataset["alias"],
        *of_source,
        f"{dataset['rowsPerSecond']:g}",
        _shown(dataset["watermark"]),
        f"…{head[-8:]}",
        "-" if source is None else source["topic"],
    ]


def _shown(value: object) -> str:
    return "-" if value is None else str(value)
