"""How commands speak: a result is printed as text or JSON, an error becomes one sentence and an exit code.

Exit codes: 0 fine, 1 refused or invalid, 2 wrong usage (typer's own), 130 ended by Ctrl-C.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec

import typer

from odf_common.errors import OdfError
from odf_common.wire.limits import MAX_BLOCK_SIZE

P = ParamSpec("P")

STDIN = Path("-")

_INTERRUPTED = 130
_MAX_INPUT_SIZE = MAX_BLOCK_SIZE + 1  # bytes; the one too many is what gets it refused


class Format(StrEnum):
    """How a result is printed."""

    TEXT = "text"
    JSON = "json"


Output = Annotated[Format, typer.Option("--output", "-o", help="Print for people or for scripts.")]


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found: `text` for people, `data` for scripts, `warnings` on stderr for both."""

    text: str
    data: Any
    warnings: tuple[str, ...] = ()
    exit_code: int = 0


Command = Callable[P, Report | Iterator[str]]
"""A command returns its report, or the lines of what would be too long to keep."""


def reporting(command: Command[P]) -> Callable[P, None]:
    """Print what a command returns or why it failed, in the format that its option `output` asks for."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            found = command(*args, **kwargs)
            if isinstance(found, Report):
                _print(found, as_json=kwargs.get("output") == "json")
            for line in found:
                typer.echo(line)
        except OdfError as error:
            report = failure(error.code, str(error))
        except BrokenPipeError:
            raise  # nobody reads on; the framework ends quietly
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None  # how commands that follow something are ended
        except OSError as error:
            report = failure("Unreadable", f"{error.filename or 'file'}: {error.strerror or error}")
        else:
            return
        _print(report, as_json=kwargs.get("output") == "json")

    return run


def failure(code: str, message: str, **more: Any) -> Report:
    """A report of what went wrong."""
    return Report(f"error: {message}", {**more, "error": code, "message": message}, exit_code=1)


def json_array(items: Iterator[dict[str, Any]]) -> Iterator[str]:
    """An array whose items are printed as they come."""
    separator = "["
    for item in items:
        yield separator + json.dumps(item, ensure_ascii=False)
        separator = ","
    yield "[]" if separator == "[" else "]"


def _print(report: Report, *, as_json: bool) -> NoReturn:
    for warning in report.warnings:
        typer.echo(f"note: {warning}", err=True)
    if as_json:
        typer.echo(json.dumps(report.data, ensure_ascii=False))
    elif report.text:
        typer.echo(report.text, err=report.exit_code != 0)
    raise typer.Exit(report.exit_code)


def read_input(path: Path) -> bytes:
    """The bytes of a file, or of standard input for `-`; cut behind what any block or manifest may have."""
    if path == STDIN:
        return sys.stdin.buffer.read(_MAX_INPUT_SIZE)
    with path.open("rb") as file:
        return file.read(_MAX_INPUT_SIZE)


def source_name(path: Path) -> str:
    """What errors call the input."""
    return "<stdin>" if path == STDIN else str(path)
