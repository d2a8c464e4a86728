"""Fetch step Container: a program in a container prints data, and tells by files what it was at.

The names of its environment variables are those of kamu: images written for it work here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from odf_common.errors import InvalidTextError
from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import FetchStepContainer
from odf_common.timestamp import Timestamp
from services.poller.command import running
from services.poller.content import refuse_html
from services.poller.errors import FetchDamagedError, FetchUnreachableError, StepRefusedError
from services.poller.fetched import ETAG, LAST_MODIFIED, Fetched, FetchJob, Found, UpToDate, checked_state
from services.poller.settings import PollerSettings
from services.poller.templates import names_in

_ENGINES = ("podman", "docker")
_ANSWER_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.1
_SHOWN_STDERR = 2_000  # bytes
_MAX_NOTE = 5_000  # bytes
# What the engine, its libraries or the loader would take for themselves.
_OF_THE_ENGINE = re.compile(
    r"LD_|DYLD_|GLIBC_|MALLOC_|GCONV_|LOCPATH|NLSPATH|GO[A-Z]+$|PYTHON|BASH|ENV$|SHELL|IFS$|PATH$|HOME$|TMP|XDG_|SSL_|"
    r"CONTAINER|PODMAN|DOCKER|BUILDAH|STORAGE_|REGISTRY_|REGISTRIES_|NETAVARK|.*_PROXY$|DBUS_|_",
    re.IGNORECASE,
)
_OUT = "/opt/odf/out"  # where the container sees the folder for its notes
_NEW_ETAG = "new-etag"
_NEW_LAST_MODIFIED = "new-last-modified"
_HAS_MORE = "new-has-more-data"


def engine_of(settings: PollerSettings) -> str:
    """The program that runs containers; StepRefusedError where none does."""
    wanted = (settings.container_engine,) if settings.container_engine else _ENGINES
    for name in wanted:
        if (found := shutil.which(name)) is not None and _answers(found):
            return found
    raise StepRefusedError(
        f"the fetch step Container needs {' or '.join(wanted)}, and none answers here: install podman, or start the "
        "engine (ODF_POLLER_CONTAINER_ENGINE names another one)"
    )


def _answers(engine: str) -> bool:
    try:
        asked = subprocess.run([engine, "ps", "--quiet"], capture_output=True, timeout=_ANSWER_TIMEOUT_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def run_container(step: FetchStepContainer, job: FetchJob) -> Found:
    """Run it; what it prints is the payload."""
    check_container(step, job.settings)
    engine = engine_of(job.settings)
    public, hidden = _public(step), _hidden(step, job)
    out = job.file()
    with tempfile.TemporaryDirectory(prefix="odf-container-", dir=job.folder) as folder:
        notes = Path(folder)
        notes.chmod(0o777)  # the program in the container may be another user
        _run(_Run(engine, _name(job), step, public, hidden, notes), out, job)
        has_more = (notes / _HAS_MORE).exists()
        state = _new_state(notes)
    size = out.seek(0, 2)
    out.seek(0)
    if state is None:
        if size == 0:
            return UpToDate("the container printed nothing")
        raise FetchDamagedError(
            "the container printed data but did not say which: it must write a new tag or time to the file that "
            "ODF_NEW_ETAG_PATH or ODF_NEW_LAST_MODIFIED_PATH names"
        )
    if state == job.last and size == 0:
        return UpToDate("the container has nothing new")
    refuse_html(out, job.prepare)  # type: ignore[arg-type]
    return Fetched(file=out, state=state, has_more=has_more)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Run:
    engine: str
    name: str
    step: FetchStepContainer
    public: Mapping[str, str]
    """Variables that stand in the chain for all to see. In the engine's own environment they could steer the engine."""
    hidden: Mapping[str, str]
    """Variables that stay out of the arguments, which everyone on the machine can see."""
    notes: Path

    def command(self) -> list[str]:
        """How the engine is called."""
        command, args = list(self.step.command or ()), list(self.step.args or ())
        entry_point = ["--entrypoint", command[0]] if command else []
        variables = [*(f"{name}={value}" for name, value in self.public.items()), *self.hidden]
        environment = [part for each in variables for part in ("--env", each)]
        volume = ["--volume", f"{self.notes}:{_OUT}"]
        options = ["--rm", "--name", self.name, *volume, *environment, *entry_point]
        return [self.engine, "run", *options, self.step.image, *command[1:], *args]


def _name(job: FetchJob) -> str:
    """The same for all polls of a dataset from a data folder, of which there is one at a time."""
    place = f"{job.dataset_id} {job.folder.absolute() if job.folder else ''}"
    return f"odf-poll-{hashlib.sha256(place.encode()).hexdigest()[:24]}"


def _public(step: FetchStepContainer) -> dict[str, str]:
    return {each.name: each.value for each in step.env or () if each.value is not None and not names_in(each.value)}


def _hidden(step: FetchStepContainer, job: FetchJob) -> dict[str, str]:
    environment = {
        each.name: job.secrets.value(each.name) if each.value is None else job.secrets.filled(each.value)
        for each in step.env or ()
        if each.value is None or names_in(each.value)
    }
    environment |= {
        "ODF_BATCH_SIZE": str(job.settings.container_batch_size),
        "ODF_NEW_ETAG_PATH": f"{_OUT}/{_NEW_ETAG}",
        "ODF_NEW_LAST_MODIFIED_PATH": f"{_OUT}/{_NEW_LAST_MODIFIED}",
        "ODF_NEW_HAS_MORE_DATA_PATH": f"{_OUT}/{_HAS_MORE}",
    }
    if (etag := job.state_of(ETAG)) is not None:
        environment["ODF_ETAG"] = etag
    if (modified := job.state_of(LAST_MODIFIED)) is not None:
        environment["ODF_LAST_MODIFIED"] = modified
    return environment


def check_container(step: FetchStepContainer, settings: PollerSettings) -> None:
    """StepRefusedError for what would break the engine's command line, and where no engine answers."""
    if not step.image or step.image.startswith("-"):
        raise StepRefusedError(f"{step.image[:100]!r} is no name of an image")
    for each in step.env or ():
        if not each.name or "=" in each.name or "\0" in each.name or each.name.startswith("-"):
            raise StepRefusedError(f"{each.name[:40]!r} is no name of an environment variable")
        if each.value is not None and names_in(each.value) and _OF_THE_ENGINE.match(each.name):
            raise StepRefusedError(
                f"the environment variable {each.name} would steer the engine itself, as its value has a placeholder: "
                "choose another name, or a value without placeholders"
            )
    engine_of(settings)


def _run(run: _Run, out: IO[bytes], job: FetchJob) -> None:
    _remove(run)  # one that was left behind by a poller that was killed
    with tempfile.TemporaryFile(dir=job.folder) as problems:
        is_over = False
        try:
            with running(
                run.command(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=problems,
                env={**os.environ, **run.hidden},
            ) as process:
                while process.poll() is None:
                    job.check_time()
                    _check_size(job, out, problems)
                    time.sleep(_LOOK_EVERY_S)
                is_over = True
        finally:
            if not is_over:
                _remove(run)  # the client's end is not the container's
        _check_size(job, out, problems)
        if process.returncode != 0:
            raise FetchUnreachableError(f"the container ended with {_how(process.returncode)}{_said(problems)}")


def _check_size(job: FetchJob, *files: IO[bytes]) -> None:
    job.check_size(sum(os.fstat(each.fileno()).st_size for each in files))


def _how(returncode: int) -> str:
    return f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"


def _remove(run: _Run) -> None:
    """Kill the container and forget it, if there is one."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603
            [run.engine, "rm", "--force", run.name], capture_output=True, timeout=_ANSWER_TIMEOUT_S, check=False
        )


def _said(problems: IO[bytes]) -> str:
    end = problems.seek(0, 2)
    problems.seek(max(0, end - _SHOWN_STDERR))
    text = problems.read().decode(errors="replace").strip()
    return f": {text}" if text else ""


def _new_state(notes: Path) -> FetchedState | None:
    """The tag comes first, as with HTTP."""
    if etag := _note(notes / _NEW_ETAG):
        return checked_state(ETAG, etag)
    if text := _note(notes / _NEW_LAST_MODIFIED):
        try:
            return FetchedState(kind=LAST_MODIFIED, value=str(Timestamp.parse(text)))
        except InvalidTextError as error:
            raise FetchDamagedError(f"the container wrote a time that is none: {error}") from error
    return None


def _note(path: Path) -> str | None:
    """What the container wrote; a link could lead to a file of this machine."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MAX_NOTE).decode(errors="replace").strip()
