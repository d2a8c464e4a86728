"""What is looked at when a polling source is added, so that it is refused then and not when it is polled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from odf_common.metadata.events import SetPollingSource
from odf_common.metadata.sources import (
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    PrepStepDecompress,
    PrepStepPipe,
)
from services.poller.errors import StepRefusedError
from services.poller.settings import PollerSettings
from services.poller.templates import check_allowed, names_in

_PLACEHOLDER = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


def check_fetch(source: SetPollingSource, settings: PollerSettings) -> None:
    """StepRefusedError, with what to do, if the source cannot be polled with these settings."""
    for text in _texts(source.fetch):
        for name in names_in(text):
            check_allowed(name, settings.allowed_names)
    _check_step(source.fetch, settings)
    _check_prepare(source, settings)


def _check_step(step: FetchStep, settings: PollerSettings) -> None:
    match step:
        case FetchStepUrl():
            _check_url(step)
        case FetchStepFilesGlob():
            from services.poller.fetch.files_glob import check_glob

            check_glob(step, settings)
        case FetchStepContainer():
            from services.poller.fetch.container import check_container

            check_container(step, settings)
        case FetchStepMqtt():
            from services.poller.fetch.mqtt import check_mqtt

            check_mqtt(step)
        case FetchStepEthereumLogs():
            from services.poller.fetch.ethereum import check_logs

            check_logs(step, settings)


def _check_url(step: FetchStepUrl) -> None:
    from services.poller.fetch.files import path_of
    from services.poller.fetch.url import check_event_time, split_url

    check_event_time(step)
    if step.url.lstrip().startswith("${{"):
        return  # only who polls knows how it begins
    parts = split_url(_PLACEHOLDER.sub("x", step.url))
    if parts.scheme == "file":
        path_of(parts)


def _check_prepare(source: SetPollingSource, settings: PollerSettings) -> None:
    from services.poller.prepare import PIPE_REFUSED

    for step in source.prepare or ():
        if isinstance(source.fetch, FetchStepMqtt):
            raise StepRefusedError("messages of MQTT are taken as they are: the source cannot have prepare steps")
        if isinstance(step, PrepStepPipe) and not settings.allow_pipe:
            raise StepRefusedError(PIPE_REFUSED)
        if isinstance(step, PrepStepPipe) and not step.command:
            raise StepRefusedError("the prepare step Pipe names no command")
        if isinstance(step, PrepStepDecompress) and step.sub_path == "":
            raise StepRefusedError("subPath is empty: leave it out where the archive has one file only")


def _texts(step: FetchStep) -> Iterator[str]:
    """Where placeholders are filled."""
    match step:
        case FetchStepUrl():
            yield step.url
            yield from (header.value for header in step.headers or ())
        case FetchStepFilesGlob():
            yield step.path
        case FetchStepContainer():
            yield from (each.value or "" for each in step.env or ())
            yield from (f"${{{{ env.{each.name} }}}}" for each in step.env or () if each.value is None)
        case FetchStepMqtt():
            yield from (text for text in (step.host, step.username, step.password) if text is not None)
        case FetchStepEthereumLogs():
            yield step.node_url or ""
