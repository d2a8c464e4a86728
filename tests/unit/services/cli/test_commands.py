from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from services.cli.__main__ import app

PAGE = Path(__file__).resolve().parents[4] / "docs" / "commands.md"


def names(group: typer.Typer, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield *prefix, command.name or command.callback.__name__.replace("_", "-")
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        assert inner.name is not None
        yield from names(inner.typer_instance, (*prefix, inner.name))


COMMANDS = list(names(app))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    assert f"Example: odf {' '.join(command)}" in re.sub(r"\s+", " ", shown.stdout)


def test_the_page_names_every_command_and_no_other() -> None:
    known = {" ".join(command) for command in COMMANDS}
    named = set(re.findall(r"`odf ((?:[a-z-]+ ?)+?)(?= [A-Z\[]|`)", PAGE.read_text()))
    assert named - {"COMMAND"} == known
