"""Java and the jars that Kafka and Spark need: found, or fetched once by their coordinates into a cache.

PySpark brings Apache Ivy as a jar that runs on its own, so Java and Python are all that a machine needs.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from odf_common.child_process import tied_to_this_process
from odf_common.errors import NotFoundError, StoreUnavailableError

JarSet = Literal["broker", "spark-kafka"]

OLDEST_JAVA = 17
CACHE_FOLDER_VARIABLE = "ODF_JARS_DIR"

_DEFINITIONS = Path(__file__).parent / "java"
_COMPLETE = ".complete"
_TITLES: dict[JarSet, str] = {"broker": "Kafka", "spark-kafka": "Spark's Kafka connector"}
_SHOWN_LINES = 8


class JavaNotFoundError(NotFoundError):
    """There is no Java, or it is too old."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"Java {OLDEST_JAVA} or newer is needed to run Kafka and Spark ({found}): install it "
            f"(Debian: apt-get install openjdk-{OLDEST_JAVA}-jre-headless) or set JAVA_HOME"
        )


def find_java() -> Path:
    """The program `java`, as JAVA_HOME or else PATH has it; JavaNotFoundError says what to install."""
    java = _java_of_home(os.environ.get("JAVA_HOME")) or _java_on_path()
    version = _version_of(java)
    if version < OLDEST_JAVA:
        raise JavaNotFoundError(f"{java} is version {version}")
    return java


def jars_folder(name: JarSet) -> Path:
    """Where these jars are, or will be; another definition has another folder."""
    definition = hashlib.sha256(_definition(name).read_bytes() + _ivy_settings().read_bytes())
    return _cache_folder() / f"{name}-{definition.hexdigest()[:12]}"


def retrieve_jars(name: JarSet, on_progress: Callable[[str], None] = lambda _: None) -> Path:
    """The folder of these jars, fetched if this is the first time; StoreUnavailableError if that did not work.

    Processes that ask at the same time wait for the first one. `on_progress` gets one short line per file.
    """
    folder = jars_folder(name)
    if (folder / _COMPLETE).exists():
        return folder
    java = find_java()
    with _locked(folder.with_suffix(".lock")):
        if not (folder / _COMPLETE).exists():
            _fetch(name, folder, java, on_progress)
    return folder


def jars_in(folder: Path) -> list[Path]:
    """The jars of a retrieved folder, in a stable order."""
    return sorted(folder.glob("*.jar"))


def _java_of_home(home: str | None) -> Path | None:
    if not home:
        return None
    java = Path(home) / "bin" / "java"
    if not java.exists():
        raise JavaNotFoundError(f"JAVA_HOME is {home}, where there is no bin/java")
    return java


def _java_on_path() -> Path:
    found = shutil.which("java")
    if found is None:
        raise JavaNotFoundError("none was found")
    return Path(found)


def _version_of(java: Path) -> int:
    """The major version: 17 of `17.0.15`, 8 of `1.8.0_402`."""
    try:
        said = subprocess.run(  # noqa: S603 - a command of our own
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaNotFoundError(f"{java} does not run: {error}") from error
    return parse_java_version(said.stderr + said.stdout)


def parse_java_version(said: str) -> int:
    """The major version in what `java -version` prints; 0 if it is not there."""
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(version[1]) if version else 0


def _fetch(name: JarSet, folder: Path, java: Path, on_progress: Callable[[str], None]) -> None:
    part = folder.with_suffix(".part")
    ivy_cache = folder.with_suffix(".ivy")  # stays after a failure, so that the next try goes on where this one ended
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    _run_ivy(name, java, ivy_cache=ivy_cache, out=part, on_progress=on_progress)
    (part / _COMPLETE).touch()
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    shutil.rmtree(ivy_cache, ignore_errors=True)


def _run_ivy(name: JarSet, java: Path, *, ivy_cache: Path, out: Path, on_progress: Callable[[str], None]) -> None:
    title = _TITLES[name]
    on_progress(f"Fetching the jars of {title} (once on this machine)")
    command: list[str | Path] = [java, "-jar", _ivy_jar(), "-settings", _ivy_settings(), "-cache", ivy_cache]
    command += ["-ivy", _definition(name), "-confs", "default", "-retrieve", f"{out}/[artifact]-[revision].[ext]"]
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 - a command of our own
        tied_to_this_process(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as ivy:
        try:
            assert ivy.stdout is not None
            for line in ivy.stdout:
                lines.append(line)
                if (file := downloaded_jar(line)) is not None:
                    on_progress(f"Fetching the jars of {title}: {file}")
        except BaseException:
            ivy.kill()
            raise
    if ivy.returncode != 0 or not jars_in(out):
        raise StoreUnavailableError(
            f"the jars of {title} could not be fetched: check the network (JAVA_TOOL_OPTIONS can name a proxy) and "
            f"try again, or copy the folder {jars_folder(name)} from a machine that has it "
            f"({CACHE_FOLDER_VARIABLE} can name another place). Ivy says:\n" + "\n".join(relevant_lines(lines))
        )
    on_progress(f"Fetched {len(jars_in(out))} jars of {title}")


def downloaded_jar(line: str) -> str | None:
    """The file that Ivy says it is downloading."""
    found = re.match(r"downloading \S*/([^/\s]+\.jar)\b", line.strip())
    return found[1] if found else None


def relevant_lines(lines: list[str]) -> list[str]:
    """What of Ivy's output tells why it failed, without the names of hosts."""
    problems = [line for line in lines if re.search(r"UNRESOLVED|not found|FAILED|ERROR|refused|rror:|xception", line)]
    shown = [re.sub(r"https?://[^/\s]+", "…", line.strip().lstrip(": ")) for line in problems or lines]
    return list(dict.fromkeys(line for line in shown if line))[:_SHOWN_LINES]


def _definition(name: JarSet) -> Path:
    return _DEFINITIONS / f"{name}.xml"


def _ivy_settings() -> Path:
    return _DEFINITIONS / "ivysettings.xml"


def _cache_folder() -> Path:
    if chosen := os.environ.get(CACHE_FOLDER_VARIABLE):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "odf-streams" / "jars"


def _ivy_jar() -> Path:
    # Importing PySpark would take a second; where it lies is enough.
    pyspark = importlib.util.find_spec("pyspark")
    found = sorted(Path(pyspark.origin).parent.glob("jars/ivy-*.jar")) if pyspark and pyspark.origin else []
    if not found:
        raise NotFoundError("PySpark, whose Ivy fetches the jars, is not installed completely: run `make setup`")
    return found[-1]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
