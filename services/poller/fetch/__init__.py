"""The ways to get at data, one module each; `fetch` chooses by the step."""

from __future__ import annotations

from odf_common.metadata.sources import (
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
)
from services.poller.fetched import FetchJob, Found


def fetch(step: FetchStep, job: FetchJob) -> Found:
    """Look whether there is something new, and get it; a FetchError says why that did not work."""
    match step:
        case FetchStepUrl():
            from services.poller.fetch.url import fetch_url

            return fetch_url(step, job)
        case FetchStepFilesGlob():
            from services.poller.fetch.files_glob import fetch_next_file

            return fetch_next_file(step, job)
        case FetchStepContainer():
            from services.poller.fetch.container import run_container

            return run_container(step, job)
        case FetchStepMqtt():
            from services.poller.fetch.mqtt import collect_messages

            return collect_messages(step, job)
        case FetchStepEthereumLogs():
            from services.poller.fetch.ethereum import fetch_logs

            return fetch_logs(step, job)
