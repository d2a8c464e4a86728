"""Broker, committer, gateway and job of a whole system are killed while events are published."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

import httpx
import pytest

from odf_common.metadata.events import AddPushSource
from odf_common.metadata.sources import MergeStrategyAppend, MergeStrategyLedger, ReadStepNdJson
from odf_common.settings import Settings
from services.broker.ports import choose_ports
from services.supervisor import restarts
from services.supervisor.services import default_services
from services.supervisor.status import ServiceState, ServiceStatus
from tests.faults.test_job import Publishing, check
from tests.systems import CrashPoints, IngestedDataset, eventually, running_system

pytestmark = pytest.mark.slow

COMMITTER_POINTS = [f"committer.{point}:3" for point in ("before-data", "after-blocks", "after-ref", "after-notify")]
GATEWAY_POINTS = ["gateway.before-produce:3", "gateway.after-produce:3"]


class Visitors:
    """Send numbered events over HTTP, each until the gateway says that it has it."""

    def __init__(self, dataset: IngestedDataset) -> None:
        self.count = 0
        self.retried: set[int] = set()
        self._dataset = dataset
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.02):
            if self._is_taken(json.dumps({"id": self.count}).encode()):
                self.count += 1
            else:
                self.retried.add(self.count)

    def _is_taken(self, event: bytes) -> bool:
        endpoints = self._dataset.system.supervisor.endpoints
        if endpoints is None:
            return False
        url = f"{endpoints.gateway_url}/{self._dataset.dataset.entry.alias}/ingest"
        try:
            answer = httpx.post(url, content=event, headers={"content-type": "application/x-ndjson"}, timeout=10)
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.ACCEPTED


def test_every_service_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "LONGEST_DELAY_S", 0.5)
    data_dir = tmp_path / "data"
    port = choose_ports(data_dir / "broker", port=None).clients
    services = {each.name: each for each in default_services(Settings(data_dir=data_dir), kafka_port=port)}
    crashes = {
        "committer": CrashPoints(services["committer"], tmp_path / "crashes", COMMITTER_POINTS),
        "gateway": CrashPoints(services["gateway"], tmp_path / "crashes", GATEWAY_POINTS),
    }
    services |= {name: crash.dying for name, crash in crashes.items()}

    def on_change(status: ServiceStatus) -> None:
        for crash in crashes.values():
            crash.on_change(status)

    read = ReadStepNdJson(ddl_schema=("event_time TIMESTAMP", "id BIGINT"))
    with running_system(data_dir, list(services.values()), on_change=on_change, kafka_port=port) as system:
        plain = system.add("plain", AddPushSource(source_name="default", read=read, merge=MergeStrategyAppend()))
        ledger = MergeStrategyLedger(primary_key=("id",))
        visits = system.add("visits", AddPushSource(source_name="default", read=read, merge=ledger))
        publishing = Publishing([plain], per_second=100)
        with publishing.running():
            visitors = Visitors(visits)
            for crash in crashes.values():
                eventually(lambda crash=crash: crash.is_over, lambda crash=crash: crash.left)  # type: ignore[misc]
            system.kill("broker")
            system.kill("ingest")
            system.kill("broker")
            for name in services:
                system.wait_ready(name)
            before = visitors.count
            eventually(lambda: visitors.count > before + 20)
            visitors.stop()
        check(plain, publishing.count, repeated=True)
        visits.wait_until_read()
        ids = Counter(row["id"] for row in visits.rows())
        assert set(ids) == set(range(visitors.count))
        # A Ledger does not compare rows of one batch: what was sent again can be there again, nothing else.
        assert {each for each, times in ids.items() if times > 1} <= visitors.retried
        visits.verified()
        assert all(each.state is ServiceState.READY for each in system.supervisor.states())
