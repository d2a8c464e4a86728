"""`odf up` as a user starts it: a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.streaming.system import opened
from odf_common.chain.metadata_chain import MetadataChain
from odf_common.endpoints import endpoints_file
from odf_common.identity.did import DatasetId
from odf_common.settings import Settings

_TIMEOUT_S = 120.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Up:
    """The running command."""

    settings: Settings
    pid: int

    def wait_ready(self) -> None:
        """Until the addresses are told."""
        _until(lambda: endpoints_file(self.settings).exists(), "the system did not come up")

    def wait_for_data(self, dataset_id: DatasetId) -> None:
        """Until the dataset's first records are committed."""
        with opened(self.settings) as repository:
            dataset = repository.open(dataset_id)
            chain = MetadataChain(dataset.objects, dataset.refs)
            _until(lambda: chain.state().last_offset is not None, "nothing was committed")


@contextmanager
def odf_up(settings: Settings) -> Iterator[Up]:
    """The command from its start to its end."""
    command = [sys.executable, "-m", "services.cli", "up", "--port", "0", "--data-dir", str(settings.data_dir)]
    environment = os.environ | (
        {"ODF_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers} if settings.kafka_bootstrap_servers else {}
    )
    with (
        (settings.data_dir / "up.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=environment) as process,
    ):
        try:
            yield Up(settings, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _until(is_true: object, problem: str) -> None:
    assert callable(is_true)
    end = time.monotonic() + _TIMEOUT_S
    while not is_true():
        if time.monotonic() > end:
            raise SystemExit(f"{problem} within {_TIMEOUT_S:g} s")
        time.sleep(_POLL_S)
