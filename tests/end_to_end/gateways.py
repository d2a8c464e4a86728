"""A gateway in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True, slots=True)
class GatewayProcess:
    process: subprocess.Popen[str]
    url: str

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30)


@contextmanager
def a_gateway_process(data_dir: Path, bootstrap_servers: str, **environment: str) -> Iterator[GatewayProcess]:
    variables = os.environ | {
        "ODF_DATA_DIR": str(data_dir),
        "ODF_KAFKA_BOOTSTRAP_SERVERS": bootstrap_servers,
        "ODF_GATEWAY_PORT": "0",
        **environment,
    }
    command = [sys.executable, "-m", "services.gateway"]
    with (
        (data_dir / "gateway.log").open("a") as log,
        subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (data_dir / "gateway.log").read_text()
            yield GatewayProcess(process, json.loads(line)["url"])
        finally:
            process.kill()
