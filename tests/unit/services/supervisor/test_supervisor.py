"""The supervisor with tiny children of our own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from odf_common.endpoints import endpoints_file, running_endpoints
from odf_common.settings import Settings
from services.supervisor import Service, ServiceState, ServiceStatus, Supervisor, SystemFailedError, SystemRunsError

pytestmark = pytest.mark.slow

TIMEOUT_S = 20.0
PRELUDE = """\
import json, os, signal, subprocess, sys, threading, time
from pathlib import Path
folder = Path(os.environ["ODF_DATA_DIR"])
def ready(**more): print(json.dumps({"ready": True, **more}), flush=True)
def note(text):
    with open(folder / "notes", "a") as file: file.write(text + "\\n")
def serve(name):
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    ready(url="http://127.0.0.1:1")
    told.wait()
    note(name)
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, kafka_bootstrap_servers="127.0.0.1:1")


def child(name: str, code: str, **options: float) -> Service:
    return Service(name=name, command=(sys.executable, "-S", "-c", PRELUDE + code), **options)  # type: ignore[arg-type]


def serving(name: str) -> Service:
    return child(name, f"serve({name!r})")


@pytest.fixture
def supervise(settings: Settings) -> Iterator[Callable[..., Supervisor]]:
    started: list[Supervisor] = []

    def start(*services: Service, on_change: Callable[[ServiceStatus], None] = lambda _: None) -> Supervisor:
        supervisor = Supervisor(settings, services, on_change=on_change)
        started.append(supervisor)
        supervisor.start()
        return supervisor

    yield start
    for supervisor in started:
        supervisor.stop()


def eventually(condition: Callable[[], object], what: str = "it") -> None:
    give_up = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < give_up, f"{what} did not come true in {TIMEOUT_S} s"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_all_services_are_ready_and_tell_where_they_are(
    supervise: Callable[..., Supervisor], settings: Settings
) -> None:
    supervisor = supervise(serving("committer"), serving("gateway"))
    supervisor.wait_ready(TIMEOUT_S)
    states = supervisor.states()
    assert [(s.name, s.state, s.restarts) for s in states] == [
        ("committer", ServiceState.READY, 0),
        ("gateway", ServiceState.READY, 0),
    ]
    assert all(s.memory for s in states)
    eventually(endpoints_file(settings).exists)
    assert running_endpoints(settings).gateway_url == "http://127.0.0.1:1"
    supervisor.stop()
    assert not endpoints_file(settings).exists()


def test_services_stop_in_the_opposite_order(supervise: Callable[..., Supervisor], settings: Settings) -> None:
    supervisor = supervise(*map(serving, ("broker", "committer", "ingest", "gateway")))
    supervisor.wait_ready(TIMEOUT_S)
    pids = [s.pid for s in supervisor.states()]
    supervisor.stop()
    assert (settings.data_dir / "notes").read_text().split() == ["gateway", "ingest", "committer", "broker"]
    assert all(pid is not None and gone(pid) for pid in pids)
    assert {s.state for s in supervisor.states()} == {ServiceState.STOPPED}


def test_what_dies_is_started_again(supervise: Callable[..., Supervisor]) -> None:
    supervisor = supervise(serving("one"))
    supervisor.wait_ready(TIMEOUT_S)
    (before,) = supervisor.states()
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    eventually(lambda: supervisor.states()[0].restarts == 1)
    supervisor.wait_ready(TIMEOUT_S)
    assert supervisor.states()[0].pid != before.pid


def test_gauges_of_the_dead_do_not_count(supervise: Callable[..., Supervisor], settings: Settings) -> None:
    supervisor = supervise(serving("one"))
    supervisor.wait_ready(TIMEOUT_S)
    (before,) = supervisor.states()
    assert before.pid is not None
    metrics = settings.data_dir.absolute() / "run" / "metrics"
    kept = [f"counter_{before.pid}.db", f"gauge_livesum_{before.pid}0.db"]
    for name in (*kept, f"gauge_livesum_{before.pid}.db"):
        (metrics / name).touch()
    os.kill(before.pid, signal.SIGKILL)
    eventually(lambda: supervisor.states()[0].restarts == 1)
    assert sorted(file.name for file in metrics.iterdir()) == kept


def test_what_dies_at_once_waits_longer_each_time(supervise: Callable[..., Supervisor]) -> None:
    changes: list[ServiceStatus] = []
    supervisor = supervise(child("one", "sys.exit('the disk is full')"), on_change=changes.append)
    eventually(lambda: supervisor.states()[0].restarts == 2)
    waits = [change.detail for change in changes if change.state is ServiceState.WAITING]
    assert waits[:2] == ["the disk is full; starts again in 0.5 s", "the disk is full; starts again in 1 s"]


def test_a_program_that_is_not_there_is_tried_again(supervise: Callable[..., Supervisor]) -> None:
    supervisor = supervise(Service(name="one", command=("/no/such/program",)))
    eventually(lambda: supervisor.states()[0].state is ServiceState.WAITING)
    assert str(supervisor.states()[0].detail).startswith("cannot run /no/such/program: No such file or directory")


def test_who_says_that_another_try_will_not_help_is_left(supervise: Callable[..., Supervisor]) -> None:
    error = json.dumps({"level": "error", "event": "no Java here"})
    supervisor = supervise(serving("one"), child("two", f"print({error!r}, file=sys.stderr); sys.exit(3)"))
    with pytest.raises(SystemFailedError, match="two is failed: no Java here"):
        supervisor.wait_ready(TIMEOUT_S)
    assert supervisor.states()[1].restarts == 0
    supervisor.stop()
    assert [s.state for s in supervisor.states()] == [ServiceState.STOPPED, ServiceState.FAILED]


def test_who_is_not_ready_in_time_is_named(supervise: Callable[..., Supervisor]) -> None:
    slow = child("two", "print(json.dumps({'progress': 'fetching'}), flush=True); time.sleep(60)")
    supervisor = supervise(serving("one"), slow)
    eventually(lambda: supervisor.states()[1].detail == "fetching")
    with pytest.raises(SystemFailedError, match="two is starting: fetching"):
        supervisor.wait_ready(0.1)


def test_who_does_not_listen_is_ended_by_force_and_so_is_its_family(
    supervise: Callable[..., Supervisor], settings: Settings
) -> None:
    code = """\
signal.signal(signal.SIGTERM, signal.SIG_IGN)
note(str(subprocess.Popen(["sleep", "600"]).pid))
ready()
time.sleep(600)
"""
    supervisor = supervise(child("deaf", code, stop_timeout_s=0.2))
    supervisor.wait_ready(TIMEOUT_S)
    pid = supervisor.states()[0].pid
    grandchild = int((settings.data_dir / "notes").read_text())
    assert not gone(grandchild)
    supervisor.stop()
    assert pid is not None
    assert gone(pid)
    eventually(lambda: gone(grandchild))


def test_a_second_supervisor_is_refused(supervise: Callable[..., Supervisor], settings: Settings) -> None:
    supervisor = supervise(serving("one"))
    with pytest.raises(SystemRunsError, match=f"already .process {os.getpid()}."):
        Supervisor(settings, ()).start()
    supervisor.stop()
    supervisor.start()
    supervisor.wait_ready(TIMEOUT_S)


def test_children_know_where_everything_is(supervise: Callable[..., Supervisor], settings: Settings) -> None:
    (settings.data_dir / "run" / "metrics").mkdir(parents=True)
    (settings.data_dir / "run" / "metrics" / "old.db").touch()
    supervisor = supervise(child("one", "note(json.dumps(dict(os.environ))); serve('one')"))
    supervisor.wait_ready(TIMEOUT_S)
    environment = json.loads((settings.data_dir / "notes").read_text())
    assert environment["ODF_KAFKA_BOOTSTRAP_SERVERS"] == "127.0.0.1:1"
    assert environment["PROMETHEUS_MULTIPROC_DIR"] == str(settings.data_dir / "run" / "metrics")
    assert list((settings.data_dir / "run" / "metrics").iterdir()) == []


RUN = """\
import sys
from pathlib import Path
from odf_common.settings import Settings
from services.supervisor import Service, run
settings = Settings(data_dir=Path(sys.argv[1]), kafka_bootstrap_servers="127.0.0.1:1")
sys.exit(run(settings, services=[Service(name="gateway", command=(sys.executable, "-S", "-c", sys.argv[2]))]))
"""


@pytest.fixture
def running(settings: Settings) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def run(code: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RUN, str(settings.data_dir), PRELUDE + code]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


def children_of(process: subprocess.Popen[str], settings: Settings) -> list[int]:
    eventually(endpoints_file(settings).exists)
    return [one.pid for one in psutil.Process(process.pid).children(recursive=True)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everything_in_order(
    running: Callable[[str], subprocess.Popen[str]], settings: Settings, number: signal.Signals
) -> None:
    process = running("serve('gateway')")
    pids = children_of(process, settings)
    process.send_signal(number)
    out, error = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, error) == (0, "")
    assert pids
    assert all(map(gone, pids))
    assert "ready" in out
    assert out.splitlines()[-1].split()[1:] == ["gateway", "stopped"]
    assert (settings.data_dir / "notes").read_text() == "gateway\n"


def test_killed_with_force_it_takes_its_children_along(
    running: Callable[[str], subprocess.Popen[str]], settings: Settings
) -> None:
    process = running("serve('gateway')")
    pids = children_of(process, settings)
    process.kill()
    process.wait()
    assert pids
    for pid in pids:
        eventually(lambda pid=pid: gone(pid), f"the end of {pid}")  # type: ignore[misc]


def test_a_system_that_cannot_come_up_ends_with_the_reason(
    running: Callable[[str], subprocess.Popen[str]], settings: Settings
) -> None:
    _, error = running("sys.stderr.write('Java is missing\\n'); sys.exit(3)").communicate(timeout=TIMEOUT_S)
    assert error.startswith("odf: gateway could not start: Java is missing (see ")
