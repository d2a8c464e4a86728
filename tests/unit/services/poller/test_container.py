from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import EnvVar, FetchStepContainer
from services.poller.errors import FetchDamagedError, FetchRefusedError, FetchUnreachableError, StepRefusedError
from services.poller.fetch import fetch
from services.poller.fetch.container import check_container
from services.poller.fetched import ETAG, LAST_MODIFIED, Fetched, UpToDate
from services.poller.settings import PollerSettings
from tests.unit.services.poller.conftest import MakeJob

# Stands for an engine: takes the options apart, notes them, and runs a script where the container would run.
ENGINE = r"""#!/bin/sh
echo "$@" >> "$ENGINE_FOLDER/asked"
[ "$1" = ps ] && exit "$(cat "$ENGINE_FOLDER/ps" 2>/dev/null || echo 0)"
[ "$1" = rm ] && exit 0
shift
while [ $# -gt 0 ]; do
    case "$1" in
        --rm) ;;
        --volume) OUT=${2%%:*}; shift ;;
        --env)
            case "$2" in
                *=*) echo "$2" ;;
                *) eval "echo \"$2=\$$2\"" ;;
            esac >> "$ENGINE_FOLDER/env"
            shift ;;
        --name) shift ;;
        --entrypoint) echo "entrypoint $2" >> "$ENGINE_FOLDER/run"; shift ;;
        *) break ;;
    esac
    shift
done
echo "run $*" >> "$ENGINE_FOLDER/run"
echo "$DOCKER_HOST" > "$ENGINE_FOLDER/steered"
. "$ENGINE_FOLDER/script"
"""


class Engine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def runs(self, script: str) -> None:
        (self.folder / "script").write_text(script)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    folder = tmp_path / "engine"
    folder.mkdir()
    program = folder / "podman"
    program.write_text(ENGINE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("ENGINE_FOLDER", str(folder))
    return Engine(folder)


def step(**more: Any) -> FetchStepContainer:
    return FetchStepContainer(image="example/image:1", **more)


TAGGED = "printf data; printf v2 > $OUT/new-etag"


def test_stdout_is_the_payload_and_the_tag_is_the_state(engine: Engine, make_job: MakeJob) -> None:
    engine.runs(TAGGED)
    found = fetch(step(command=("tool", "-x"), args=("a", "b c")), make_job())
    assert isinstance(found, Fetched)
    assert found.file.read() == b"data"
    assert (found.state, found.has_more) == (FetchedState(kind=ETAG, value="v2"), False)
    assert engine.text("run") == "entrypoint tool\nrun example/image:1 -x a b c\n"


def test_the_container_learns_what_the_chain_has(engine: Engine, make_job: MakeJob) -> None:
    engine.runs("printf data; echo 2024-05-01T12:00:00+00:00 > $OUT/new-last-modified; touch $OUT/new-has-more-data")
    found = fetch(step(), make_job(last=FetchedState(kind=ETAG, value="v1")))
    assert isinstance(found, Fetched)
    assert (found.state, found.has_more) == (FetchedState(kind=LAST_MODIFIED, value="2024-05-01T12:00:00Z"), True)
    known = dict(line.split("=", 1) for line in engine.text("env").splitlines())
    assert known["ODF_ETAG"] == "v1"
    assert known["ODF_BATCH_SIZE"] == "10000"
    assert known["ODF_NEW_ETAG_PATH"] == "/opt/odf/out/new-etag"
    assert "ODF_LAST_MODIFIED" not in known
    fetch(step(), make_job(last=found.state))
    assert "ODF_LAST_MODIFIED=2024-05-01T12:00:00Z" in engine.text("env")


def test_nothing_printed_is_nothing_new(engine: Engine, make_job: MakeJob) -> None:
    engine.runs("")
    assert isinstance(fetch(step(), make_job()), UpToDate)
    engine.runs("printf v1 > $OUT/new-etag")
    assert isinstance(fetch(step(), make_job(last=FetchedState(kind=ETAG, value="v1"))), UpToDate)


def test_secrets_reach_the_container_but_no_argument(engine: Engine, make_job: MakeJob) -> None:
    engine.runs(TAGGED)
    env = (EnvVar(name="TOKEN"), EnvVar(name="URL", value="x?k=${{ env.TOKEN }}"), EnvVar(name="PLAIN", value="1"))
    fetch(step(env=env), make_job(environment={"TOKEN": "s3cret"}, settings={"env_allow": "TOKEN"}))
    assert "PLAIN=1\nTOKEN=s3cret\nURL=x?k=s3cret\n" in engine.text("env")
    assert "s3cret" not in engine.text("asked")
    with pytest.raises(StepRefusedError, match="TOKEN is not for sources"):
        fetch(step(env=env), make_job(environment={"TOKEN": "s3cret"}))


@pytest.mark.parametrize(
    ("script", "error", "text"),
    [
        ("echo not so >&2; exit 4", FetchUnreachableError, "ended with exit code 4: not so"),
        ("printf data", FetchDamagedError, "did not say which"),
        ("printf data; echo today > $OUT/new-last-modified", FetchDamagedError, "a time that is none"),
        ("ln -s /etc/passwd $OUT/new-etag; printf data", FetchDamagedError, "did not say which"),
        ("yes", FetchRefusedError, "larger than 100000 bytes"),
        (TAGGED + "; printf '<html>'", None, ""),
        ("printf '<html>'; printf v > $OUT/new-etag", FetchDamagedError, "an HTML page"),
    ],
)
def test_containers_that_fail(
    engine: Engine, make_job: MakeJob, script: str, error: type[Exception] | None, text: str
) -> None:
    engine.runs(script)
    job = make_job(settings={"max_size": 100_000})
    if error is None:
        assert isinstance(fetch(step(), job), Fetched)
        return
    with pytest.raises(error, match=text):
        fetch(step(), job)


def test_a_container_that_takes_too_long_is_killed(engine: Engine, make_job: MakeJob) -> None:
    engine.runs("exec sleep 60")
    began = time.monotonic()
    with pytest.raises(FetchUnreachableError, match=r"longer than 0.5 s"):
        fetch(step(), make_job(settings={"fetch_timeout_s": 0.5}))
    assert time.monotonic() - began < 10
    assert engine.text("asked").splitlines()[-1].startswith("rm --force odf-poll-")


def test_nothing_that_the_client_started_survives(engine: Engine, make_job: MakeJob) -> None:
    engine.runs("sleep 300 & echo $! > $OUT/../pid; setsid sleep 300 & echo $! > $OUT/../other; sleep 300")
    job = make_job(settings={"fetch_timeout_s": 1.0})
    assert job.folder is not None
    with pytest.raises(FetchUnreachableError, match="longer than 1 s"):
        fetch(step(), job)
    for name in ("pid", "other"):
        assert not Path("/proc", (job.folder / name).read_text().strip()).exists()


def test_a_container_that_was_left_behind_is_removed_before_the_next_run(engine: Engine, make_job: MakeJob) -> None:
    engine.runs("")
    job = make_job()
    fetch(step(), job)
    fetch(step(), make_job(dataset_id=job.dataset_id))
    asked = [line.split() for line in engine.text("asked").splitlines() if not line.startswith("ps")]
    assert [words[0] for words in asked] == ["rm", "run", "rm", "run"]
    assert len({words[2] if words[0] == "rm" else words[3] for words in asked}) == 1


def test_a_source_does_not_steer_the_engine(engine: Engine, make_job: MakeJob) -> None:
    engine.runs(TAGGED)
    fetch(step(env=(EnvVar(name="DOCKER_HOST", value="tcp://example.org"),)), make_job())
    assert engine.text("steered") == "\n"
    assert "DOCKER_HOST=tcp://example.org\n" in engine.text("env")
    names = ("DOCKER_HOST", "LD_PRELOAD", "PATH", "CONTAINERS_CONF", "https_proxy", "GODEBUG", "HOME")
    for env in (EnvVar(name=name, value="x${{ env.TOKEN }}") for name in names):
        with pytest.raises(StepRefusedError, match="would steer the engine"):
            check_container(step(env=(env,)), PollerSettings())


def test_what_it_says_of_its_troubles_is_bounded(engine: Engine, make_job: MakeJob) -> None:
    engine.runs("yes >&2")
    with pytest.raises(FetchRefusedError, match="larger than 100000 bytes"):
        fetch(step(), make_job(settings={"max_size": 100_000}))


def test_without_an_engine_the_source_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    check_container(step(), PollerSettings())
    (engine.folder / "ps").write_text("125")
    with pytest.raises(StepRefusedError, match="needs podman or docker, and none answers here"):
        check_container(step(), PollerSettings(container_engine=None))
    with pytest.raises(StepRefusedError, match="needs other"):
        check_container(step(), PollerSettings(container_engine="other"))


@pytest.mark.parametrize(
    "bad", [{"image": "--privileged"}, {"image": ""}, {"env": (EnvVar(name="A=B"),)}, {"env": (EnvVar(name="--x"),)}]
)
def test_what_would_be_an_option_of_the_engine_is_refused(engine: Engine, bad: dict[str, Any]) -> None:
    with pytest.raises(StepRefusedError, match="is no name of"):
        check_container(FetchStepContainer(**({"image": "a"} | bad)), PollerSettings())
