from __future__ import annotations

from odf_common.catalog.catalog import Catalog
from odf_common.chain.state import ChainState
from odf_common.identity.references import DatasetAlias
from odf_common.messages.kafka_offsets import KafkaOffsets
from odf_common.metadata.events import MetadataEvent
from odf_common.repository.appending import append_events, without_rows
from odf_common.repository.repository import Repository
from odf_common.settings import Settings
from odf_common.timestamp import Timestamp
from tests.unit.services.cli.datasets import CITY, HOT, Cli


def read(cli: Cli, start: int, end: int) -> None:
    """Append a block that says it read these positions and found only duplicates."""
    settings = Settings(data_dir=cli.data_dir)
    count = end - start
    offsets = KafkaOffsets(
        topic="t", topic_id="one", start={0: start}, next={0: end}, messages=count, records=count, duplicates=count
    )

    def decide(chain: ChainState) -> list[MetadataEvent]:
        return [without_rows(chain, watermark=chain.watermark, source_state=offsets.to_state("sensors"))]

    with Catalog.open(settings.catalog_url) as catalog:
        repository = Repository.at(settings.repository_location, catalog)
        append_events(repository, DatasetAlias.parse("city"), decide, Timestamp.now())


def test_all_datasets_are_checked_with_their_sources(cli: Cli) -> None:
    cli.add(f"{CITY}---\n{HOT}")
    read(cli, 0, 3)
    read(cli, 3, 4)
    found = cli.found("verify")
    assert [(each["alias"], each["ok"]) for each in found["datasets"]] == [("city", True), ("hot", True)]
    (source,) = found["datasets"][0]["sources"]
    assert (source["messages"], source["duplicates"], source["next"]) == (4, 4, {"0": 4})


def test_a_watermark_by_hand_does_not_break_the_certificate(cli: Cli) -> None:
    cli.add()
    read(cli, 0, 3)
    cli.found("watermark", "set", "city", "2024-01-01T00:00:00Z")
    read(cli, 3, 4)
    assert cli.found("verify", "city")["datasets"][0]["sources"][0]["blocks"] == 2


def test_ranges_that_do_not_tile_the_topic_fail_with_the_block(cli: Cli) -> None:
    cli.add(f"{CITY}---\n{HOT}")
    read(cli, 0, 3)
    read(cli, 4, 5)
    found = cli.found("verify", exit_code=1)
    assert found["ok"] is False
    city, hot = found["datasets"]
    assert (city["file"], hot["ok"]) == (f"blocks/{cli.found('list')[0]['head']}", True)
    assert "a gap" in city["reason"]
    assert "1 of 2 datasets failed" in cli.text("verify", exit_code=1)


def test_a_damaged_block_is_named(cli: Cli) -> None:
    (city,) = cli.add()
    block = cli.data_dir / "datasets" / city["id"].removeprefix("did:odf:") / "blocks" / city["head"]
    block.chmod(0o644)
    block.write_bytes(block.read_bytes()[:-1] + b"x")
    found = cli.found("verify", "city", exit_code=1)
    assert found["datasets"][0]["file"] == f"blocks/{city['head']}"
