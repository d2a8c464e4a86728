from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app

ROOT = Path(__file__).resolve().parents[3]


def test_the_examples_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "using-the-core.md").read_text()
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(example, names)


def test_the_commands_of_the_readme_exist() -> None:
    commands = re.findall(r"^    (?:\$ )?odf (\w+ \w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert commands
    for command in set(commands):
        assert CliRunner().invoke(app, [*command.split(), "--help"]).exit_code == 0


def test_every_decision_and_page_that_is_named_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} names {link}"


def test_every_decision_that_code_names_exists() -> None:
    for source in (ROOT / "odf_common").rglob("*.py"):
        for named in re.findall(r"docs/decisions/[\w.-]+\.md", source.read_text()):
            assert (ROOT / named).exists(), f"{source} names {named}"


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
