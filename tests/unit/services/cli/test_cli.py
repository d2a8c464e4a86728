from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from services.cli.__main__ import app

DID = "did:odf:fed012e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6"
SEED = f"kind: Seed\ndatasetId: {DID}\ndatasetKind: Root\n"
BLOCK = """\
kind: MetadataBlock
version: 2
content:
  systemTime: 2020-01-01T12:00:00Z
  prevBlockHash: f16209eb949bd8ff0bb1d827f11809aebc6bd0d5955c7f368469a913c70d196620272
  sequenceNumber: 117
  event:
    kind: AddData
"""
BLOCK_HASH = "f162073e2977b8beae4aef53670067c1173b9d68e69721908d080b84286ab366d1e14"
EXAMPLE = """\
kind: MetadataBlock
version: 2
content:
  systemTime: 2020-01-01T12:00:00Z
  prevBlockHash: f16209eb949bd8ff0bb1d827f11809aebc6bd0d5955c7f368469a913c70d196620272
  sequenceNumber: 123
  event:
    kind: SetDataSchema
    schema: DAAAAAgACAAAAAQACAAAAAQAAAACAAAAQAAAAAQAAADY////GAAAAAwAAAAAAAAGEAAAAAAAAAAEAAQABAAAAAEAAABiAA\
AAEAAUABAAAAAPAAQAAAAIABAAAAAYAAAAIAAAAAAAAAIcAAAACAAMAAQACwAIAAAAQAAAAAAAAAEAAAAAAQAAAGEAAAA=
"""
"""As the reference implementation prints it (ODF 0.36)."""
NOON = "2020-01-01T12:00:00Z"


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def found(result: Result, *, exit_code: int = 0) -> Any:
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def block(tmp_path: Path) -> Path:
    return write(tmp_path / "block.yaml", BLOCK)


class TestBlock:
    def test_a_manifest_and_its_block_file_have_the_same_hash(self, block: Path, tmp_path: Path) -> None:
        binary = tmp_path / "block.bin"
        assert run("block", "encode", block, "-o", binary).stdout.strip() == BLOCK_HASH
        assert run("block", "hash", binary).stdout.strip() == BLOCK_HASH
        assert found(run("block", "hash", block, "-o", "json")) == {"hash": BLOCK_HASH}

    def test_what_was_encoded_is_decoded_to_the_same_manifest(self, block: Path, tmp_path: Path) -> None:
        binary = tmp_path / "block.bin"
        run("block", "encode", block, "-o", binary)
        assert run("block", "decode", binary).stdout == BLOCK
        manifest = json.dumps(found(run("block", "decode", binary, "-o", "json")))
        assert run("block", "hash", "-", stdin=manifest).stdout.strip() == BLOCK_HASH

    def test_a_block_is_shown_as_the_reference_shows_it(self, tmp_path: Path) -> None:
        binary = tmp_path / "block.bin"
        run("block", "encode", write(tmp_path / "example.yaml", EXAMPLE), "-o", binary)
        assert run("block", "decode", binary).stdout == EXAMPLE

    def test_the_version_is_the_manifests_unless_it_is_given(self, block: Path, tmp_path: Path) -> None:
        three = write(tmp_path / "three.yaml", BLOCK.replace("version: 2", "version: 3"))
        hash_of_three = run("block", "hash", three).stdout
        assert hash_of_three.strip() != BLOCK_HASH
        assert run("block", "hash", block, "--manifest-version", "3").stdout == hash_of_three

    def test_a_wrong_manifest_is_refused_with_line_column_and_field(self, tmp_path: Path) -> None:
        wrong = write(tmp_path / "wrong.yaml", BLOCK + "    newData: 1\n")
        result = run("block", "hash", wrong)
        assert result.exit_code == 1
        assert f"{wrong}:9:5: content.event.newData" in result.stderr
        assert found(run("block", "hash", wrong, "-o", "json"), exit_code=1)["error"] == "InvalidManifest"

    def test_damaged_bytes_are_refused(self, tmp_path: Path) -> None:
        damaged = tmp_path / "damaged.bin"
        damaged.write_bytes(b"\0" * 50)
        for command in ("decode", "hash"):
            result = run("block", command, damaged)
            assert result.exit_code == 1
            assert result.stderr.startswith("error: ")

    def test_a_manifest_given_for_a_block_is_recognised(self, block: Path) -> None:
        result = run("block", "decode", block)
        assert result.exit_code == 1
        assert str(block) in result.stderr
        assert "it may be a manifest" in result.stderr

    def test_no_more_is_read_than_a_block_may_have(self) -> None:
        result = run("block", "hash", "/dev/zero")
        assert result.exit_code == 1
        assert "larger than" in result.stderr

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        result = run("block", "decode", tmp_path / "nothing")
        assert result.exit_code == 1
        assert result.stderr == f"error: {tmp_path / 'nothing'}: No such file or directory\n"


class TestId:
    def test_a_new_identity_is_different_each_time_and_its_key_file_private(self, tmp_path: Path) -> None:
        key_file = tmp_path / "dataset.key"
        first = found(run("id", "new", "--key-file", key_file, "-o", "json"))
        assert first["id"] != found(run("id", "new", "-o", "json"))["id"]
        assert key_file.stat().st_mode & 0o777 == 0o600
        refused = run("id", "new", "--key-file", key_file)
        assert refused.exit_code == 1
        assert "never overwritten" in refused.stderr

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            (DID, "dataset id"),
            ("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", "did:key"),
            ("property.parcel-polygons", "dataset alias"),
            ("kamu.dev/covid19.cases", "dataset alias"),
            ("data.gov/ny-newyork/public-safety.ems", "remote dataset alias"),
            (f"repo/{DID}", "remote dataset id"),
            ("https://opendata.ca/odf/x/", "url"),
            ("f162008c3792b2a4deed1bd7ea2328fb5de5531eccf0fbfa04a7d800cdc267137c635", "multihash"),
            ("zW1a3CNT52HXiJNniLkWMeev3CPRy9QiNRMWGyTrVNg4hY8", "multihash"),
        ],
    )
    def test_a_text_is_told_by_its_kind(self, text: str, kind: str) -> None:
        assert found(run("id", "parse", text, "-o", "json"))["kind"] == kind

    def test_a_known_repository_makes_a_reference_remote(self) -> None:
        parts = found(run("id", "parse", "kamu.dev/x", "--known-repo", "Kamu.dev", "-o", "json"))
        assert parts == {"kind": "remote dataset alias", "repo": "kamu.dev", "name": "x"}

    @pytest.mark.parametrize("text", ["../x", "a//b", "a" * 300, "a\0b", "in^valid", "did:odf:fzz", "foo:bar", ""])
    def test_a_wrong_text_is_refused_with_the_position(self, text: str) -> None:
        result = run("id", "parse", text)
        assert result.exit_code == 1
        assert "at character" in result.stderr


class TestChain:
    def test_events_are_appended_one_by_one_with_the_time_asked_for(self, tmp_path: Path) -> None:
        events = write(tmp_path / "events.yaml", f"{SEED}---\nkind: SetInfo\ndescription: d\n")
        folder = tmp_path / "dataset"
        appended = run("chain", "append", folder, events, "--at", NOON, "--step", "1.5").stdout.split()
        log = found(run("chain", "log", folder, "-o", "json"))
        assert [block["hash"] for block in reversed(log)] == appended
        assert [block["content"]["systemTime"] for block in reversed(log)] == [NOON, "2020-01-01T12:00:01.500Z"]
        assert found(run("chain", "check", folder, "-o", "json"))["blocks"] == 2

    def test_manifests_of_events_are_taken_like_bare_ones(self, tmp_path: Path) -> None:
        manifest = "kind: MetadataEvent\nversion: 1\ncontent:\n" + "".join(f"  {line}\n" for line in SEED.splitlines())
        hashes = [
            run("chain", "append", tmp_path / name, write(tmp_path / "e.yaml", text), "--at", NOON).stdout
            for name, text in (("a", SEED), ("b", manifest))
        ]
        assert hashes[0] == hashes[1] != ""

    def test_a_refusal_says_which_event_and_which_rule_and_keeps_what_came_before(self, tmp_path: Path) -> None:
        events = write(tmp_path / "events.yaml", f"{SEED}---\nkind: AddData\n---\nkind: SetInfo\n")
        refusal = found(run("chain", "append", tmp_path / "d", events, "-o", "json"), exit_code=1)
        assert (refusal["refused"], refusal["error"], len(refusal["appended"])) == (1, "EmptyEvent", 1)
        assert found(run("chain", "check", tmp_path / "d", "-o", "json"))["blocks"] == 1

    def test_an_unreadable_event_is_refused_before_anything_is_appended(self, tmp_path: Path) -> None:
        events = write(tmp_path / "events.yaml", f"{SEED}---\nkind: SetInfo\ncolour: red\n")
        result = run("chain", "append", tmp_path / "d", events)
        assert result.exit_code == 1
        assert f"{events}:6:1" in result.stderr
        refusal = found(run("chain", "append", tmp_path / "d", events, "-o", "json"), exit_code=1)
        assert (refusal["refused"], refusal["error"], refusal["appended"]) == (1, "InvalidManifest", [])
        assert not (tmp_path / "d").exists()

    @pytest.mark.parametrize("step", ["inf", "1e300"])
    def test_a_step_that_cannot_be_counted_is_refused(self, tmp_path: Path, step: str) -> None:
        events = write(tmp_path / "events.yaml", f"{SEED}---\nkind: SetInfo\n")
        result = run("chain", "append", tmp_path / "d", events, "--step", step)
        assert result.exit_code == 1
        assert "seconds" in result.stderr

    def test_a_time_that_is_none_is_wrong_usage(self, tmp_path: Path) -> None:
        result = run("chain", "append", tmp_path / "d", write(tmp_path / "events.yaml", SEED), "--at", "yesterday")
        assert result.exit_code == 2
        assert "--at" in result.stderr

    def test_a_file_without_events_is_refused(self, tmp_path: Path) -> None:
        result = run("chain", "append", tmp_path / "d", write(tmp_path / "events.yaml", "---\n"))
        assert result.exit_code == 1
        assert "no event" in result.stderr

    def test_a_hostile_name_cannot_forge_a_line_of_the_log(self, tmp_path: Path) -> None:
        source = (
            'kind: AddPushSource\nsourceName: "x\\n 9999 forged \\e[31m"\nread: {kind: NdJson}\nmerge: {kind: Append}\n'
        )
        run("chain", "append", tmp_path / "d", write(tmp_path / "events.yaml", f"{SEED}---\n{source}"))
        lines = run("chain", "log", tmp_path / "d").stdout.splitlines()
        assert len(lines) == 2
        assert "\x1b" not in lines[0]

    def test_files_that_events_name_must_be_there_unless_asked_otherwise(self, tmp_path: Path) -> None:
        checkpoint = "kind: AddData\nnewCheckpoint:\n  physicalHash: " + BLOCK_HASH + "\n  size: 1\n"
        events = write(tmp_path / "events.yaml", f"{SEED}---\n{checkpoint}")
        refused = found(run("chain", "append", tmp_path / "d", events, "-o", "json"), exit_code=1)
        assert refused["error"] == "ObjectNotFound"
        assert run("chain", "append", tmp_path / "e", events, "--no-objects").exit_code == 0
        missing = found(run("chain", "check", tmp_path / "e", "-o", "json"), exit_code=1)
        assert missing["file"] == f"checkpoints/{BLOCK_HASH}"

    def test_the_log_in_yaml_is_made_of_manifests_that_can_be_encoded_again(self, tmp_path: Path) -> None:
        events = write(tmp_path / "events.yaml", SEED)
        appended = run("chain", "append", tmp_path / "d", events, "--at", NOON).stdout
        log = write(tmp_path / "log.yaml", run("chain", "log", tmp_path / "d", "-o", "yaml").stdout)
        assert run("block", "hash", log).stdout == appended

    @pytest.mark.parametrize("command", ["check", "log"])
    def test_a_folder_that_is_no_dataset_is_refused(self, tmp_path: Path, command: str) -> None:
        result = run("chain", command, tmp_path)
        assert result.exit_code == 1
        assert "refs/head" in result.stderr


class TestHash:
    def test_a_physical_hash_is_that_of_the_bytes(self, tmp_path: Path) -> None:
        file = write(tmp_path / "file", "multihash")
        expected = "f162008c3792b2a4deed1bd7ea2328fb5de5531eccf0fbfa04a7d800cdc267137c635"
        assert found(run("hash", "physical", file, "-o", "json")) == {"hash": expected, "size": 9}

    @pytest.mark.parametrize("command", ["logical", "physical"])
    def test_what_is_no_file_is_refused(self, tmp_path: Path, command: str) -> None:
        for path in (tmp_path / "nothing", tmp_path):
            result = run("hash", command, path)
            assert result.exit_code == 1
            assert str(path) in result.stderr

    def test_what_is_not_parquet_has_no_logical_hash(self, tmp_path: Path) -> None:
        result = run("hash", "logical", write(tmp_path / "file", "text"))
        assert result.exit_code == 1
        assert "cannot be read as Parquet" in result.stderr


@pytest.mark.parametrize("arguments", [["block"], ["chain", "check"], ["block", "encode", "x"], ["nonsense"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


COMMANDS = {
    "block": ("encode", "decode", "hash"),
    "hash": ("logical", "physical"),
    "id": ("new", "parse"),
    "chain": ("check", "log", "append"),
}


@pytest.mark.parametrize("command", [f"{group} {name}" for group, names in COMMANDS.items() for name in names])
def test_every_command_helps_with_an_example(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Example: odf {command}" in result.stdout
