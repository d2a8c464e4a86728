"""What we write is read by the reference implementation, and the other way round."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from odf_common.chain.metadata_chain import MetadataChain
from odf_common.metadata.events import SetInfo
from odf_common.metadata.manifests import MetadataBlockManifest
from odf_common.storage.dataset_folder import local_folder
from odf_common.text.reader import read_documents
from odf_common.text.validation import validate
from odf_common.wire.decode import decode_block
from odf_common.wire.encode import encode_block
from tests.conformance.peer import Workspace, needs_peer
from tests.datasets import append_all, make_dataset

pytestmark = [pytest.mark.slow, needs_peer]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "workspace")


def odf(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class TestOursForThePeer:
    @pytest.fixture
    def ours(self, tmp_path: Path) -> Path:
        folder = tmp_path / "ours"
        make_dataset(local_folder(folder), tmp_path)
        return folder

    @pytest.fixture
    def pulled(self, ours: Path, workspace: Workspace) -> Workspace:
        workspace.run("pull", f"file://{ours}", "--as", "cities")
        return workspace

    def test_it_is_pulled_block_for_block(self, ours: Path, pulled: Workspace) -> None:
        assert {block.name for block in (ours / "blocks").iterdir()} == {
            block.name for block in (pulled.folder("cities") / "blocks").iterdir()
        }

    def test_it_is_verified(self, pulled: Workspace) -> None:
        pulled.run("verify", "cities")

    def test_it_is_queried_across_the_added_column(self, pulled: Workspace) -> None:
        rows = pulled.query('select "offset", op, city, population, area from "cities" order by "offset"')
        assert [row["offset"] for row in rows] == list(range(9))
        assert rows[4] == {"offset": 4, "op": 0, "city": "city 4 ü", "population": 4000, "area": None}
        assert rows[6] == {"offset": 6, "op": 0, "city": "city 6 ü", "population": None, "area": 1.5}

    def test_its_log_shows_every_block_by_our_hash(self, ours: Path, pulled: Workspace) -> None:
        log = pulled.run("log", "cities", "-o", "yaml")
        shown = [line.removeprefix("# Block: ") for line in log.splitlines() if line.startswith("# Block: ")]
        dataset = local_folder(ours)
        assert shown == [str(block.hash) for block in MetadataChain(dataset.objects, dataset.refs).blocks()]

    def test_it_grows_and_is_pulled_again(self, ours: Path, pulled: Workspace) -> None:
        dataset = local_folder(ours)
        append_all(MetadataChain(dataset.objects, dataset.refs), [SetInfo(description="more", keywords=("a",))])
        pulled.run("pull", "cities")
        head = (pulled.folder("cities") / "refs" / "head").read_text()
        assert head == (ours / "refs" / "head").read_text()

    def test_what_the_peer_appends_to_it_passes_our_check(self, pulled: Workspace) -> None:
        pulled.run("repo", "alias", "rm", "--all", "cities")
        rows = pulled.root / "rows.ndjson"
        row = {"event_time": "2024-03-01T00:00:00Z", "city": "new", "population": 1, "area": 0.5}
        rows.write_text(json.dumps(row) + "\n")
        pulled.run("ingest", "cities", rows)
        checked = odf("chain", "check", pulled.folder("cities"), "-o", "json")
        assert checked.returncode == 0, checked.stdout
        assert json.loads(checked.stdout)["records"] == 10


SOURCE = """\
kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [event_time TIMESTAMP, city STRING, population BIGINT]}
      merge: {kind: Ledger, primaryKey: [event_time, city]}"""
INFO = """\
kind: SetInfo
      description: "two\\nlines"
      keywords: ["yes", "010", "x: y", "2020-01-01"]"""
LICENSE = "kind: SetLicense\n      shortName: OGL\n      name: Open\n      websiteUrl: https://example.org/"
ATTACHMENTS = "kind: SetAttachments\n      attachments: {kind: Embedded, items: [{path: README.md, content: '# Hi'}]}"


class TestThePeersForUs:
    @pytest.fixture
    def theirs(self, workspace: Workspace) -> Workspace:
        workspace.add("cities", SOURCE, INFO, LICENSE, ATTACHMENTS)
        for day in (1, 2):
            rows = workspace.root / f"{day}.ndjson"
            lines = [
                {"event_time": f"2024-01-0{day}T00:00:00Z", "city": f"city {n} ü", "population": n or None}
                for n in range(3)
            ]
            rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
            workspace.run("ingest", "cities", rows)
        workspace.run("pull", "cities", "--set-watermark", "2024-02-01T00:00:00Z")
        return workspace

    def test_they_pass_our_check(self, theirs: Workspace) -> None:
        checked = odf("chain", "check", theirs.folder("cities"), "-o", "json")
        assert checked.returncode == 0, checked.stdout
        found = json.loads(checked.stdout)
        assert (found["records"], found["unknown"]) == (6, [])

    def test_their_blocks_are_encoded_again_to_the_same_bytes(self, theirs: Workspace) -> None:
        for path in (theirs.folder("cities") / "blocks").iterdir():
            decoded = decode_block(path.read_bytes())
            assert decoded.unknown == ()
            assert encode_block(decoded.block, manifest_version=decoded.manifest_version) == decoded.data

    def test_their_log_in_yaml_is_read_by_us_and_hashes_alike(self, theirs: Workspace) -> None:
        log = theirs.run("log", "cities", "-o", "yaml")
        hashes = [line.removeprefix("# Block: ") for line in log.splitlines() if line.startswith("# Block: ")]
        documents = [text for text in log.split("---\n") if text.strip()]
        assert len(documents) == len(hashes) == 9
        for text, block_hash in zip(documents, hashes, strict=True):
            (document,) = read_documents(text)
            manifest = validate(MetadataBlockManifest, document)
            encoded = encode_block(manifest.content, manifest_version=manifest.version)
            assert str(decode_block(encoded).hash) == block_hash

    def test_a_flipped_bit_of_theirs_is_found(self, theirs: Workspace) -> None:
        slice_file = next((theirs.folder("cities") / "data").iterdir())
        data = bytearray(slice_file.read_bytes())
        data[len(data) // 2] ^= 1
        slice_file.write_bytes(data)
        checked = odf("chain", "check", theirs.folder("cities"), "-o", "json")
        assert checked.returncode == 1
        assert json.loads(checked.stdout)["file"] == f"data/{slice_file.name}"
