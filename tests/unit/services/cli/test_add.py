from __future__ import annotations

from odf_common.identity.key_pair import KeyPair
from tests.unit.services.cli.datasets import CITY, HOT, Cli

LICENSE = """\
kind: MetadataEvent
version: 1
content:
  kind: SetLicense
  shortName: CC0
  name: Creative Commons Zero
  websiteUrl: https://creativecommons.org/zero
"""
SECOND_SOURCE = "kind: AddPushSource\nsourceName: more\nread:\n  kind: NdJson\nmerge:\n  kind: Append\n"


def test_several_documents_of_one_file_become_datasets(cli: Cli) -> None:
    city, hot = cli.add(f"{CITY}---\n{HOT}")
    assert (city["alias"], city["kind"], city["change"]) == ("city", "Root", "created")
    assert city["sources"] == [{"name": "sensors", "topic": "odf.push.city.sensors"}]
    assert (hot["alias"], hot["kind"], hot["sources"]) == ("hot", "Derivative", [])


def test_the_private_key_is_kept_for_its_owner_alone(cli: Cli) -> None:
    (city,) = cli.add()
    key_file = cli.data_dir / "keys" / city["id"].removeprefix("did:odf:")
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert str(KeyPair.load(key_file).dataset_id) == city["id"]


def test_a_refused_snapshot_leaves_no_key(cli: Cli) -> None:
    refused = cli.text(
        "add",
        cli.write("wrong.yaml", CITY.replace("kind: Append", "kind: Snapshot\n      primaryKey: [town]")),
        exit_code=1,
    )
    assert "city: push source 'sensors'" in refused
    assert list(cli.data_dir.glob("keys/*")) == []


def test_a_manifest_can_come_from_standard_input(cli: Cli) -> None:
    assert cli.found("add", "-", stdin=CITY)["datasets"][0]["alias"] == "city"


def test_a_wrong_manifest_is_refused_with_its_line(cli: Cli) -> None:
    path = cli.write("wrong.yaml", CITY.replace("sourceName", "source"))
    assert f"{path}:8:5" in cli.text("add", path, exit_code=1)


def test_a_name_that_exists_is_refused_with_a_hint(cli: Cli) -> None:
    cli.add()
    refused = cli.found("add", cli.write("again.yaml", CITY), exit_code=1)
    assert refused["error"] == "NameTaken"
    assert "odf append city" in refused["message"]


def test_what_was_added_before_a_refused_one_is_told(cli: Cli) -> None:
    refused = cli.found(
        "add", cli.write("both.yaml", f"{CITY}---\n{HOT.replace('datasetRef: city', 'datasetRef: x')}"), exit_code=1
    )
    assert [each["alias"] for each in refused["datasets"]] == ["city"]
    assert "unknown inputs: x" in refused["message"]


def test_update_appends_what_differs(cli: Cli) -> None:
    cli.add()
    assert cli.add(CITY, "--update")[0]["change"] == "up to date"
    changed = CITY.replace("Temperatures", "Warmth").replace("- t DOUBLE", "- t DOUBLE\n      - h DOUBLE")
    assert cli.add(changed, "--update")[0]["change"] == "2 events appended"
    assert cli.found("inspect", "city")["info"]["description"] == "Warmth"


def test_partitions_and_topic_of_a_source_can_be_chosen(cli: Cli) -> None:
    cli.add(CITY, "--partitions", "4", "--topic", "mine")
    (source,) = cli.found("source", "list", "city")
    assert (source["topic"], source["settings"]["partitions"]) == ("mine", 4)


def test_a_topic_is_for_one_dataset(cli: Cli) -> None:
    both = cli.write("both.yaml", f"{CITY}---\n{HOT}")
    assert cli.run("add", both, "--topic", "mine").exit_code == 2


def test_events_are_appended_bare_or_in_manifests(cli: Cli) -> None:
    cli.add()
    found = cli.found("append", "city", cli.write("license.yaml", LICENSE), cli.write("source.yaml", SECOND_SOURCE))
    assert len(found["appended"]) == 2
    assert cli.found("inspect", "city")["license"]["shortName"] == "CC0"
    assert [each["topic"] for each in cli.found("source", "list", "city")] == [
        "odf.push.city.more",
        "odf.push.city.sensors",
    ]


def test_data_events_are_not_appended_by_hand(cli: Cli) -> None:
    cli.add()
    path = cli.write("data.yaml", "kind: AddData\nnewWatermark: 2024-01-01T00:00:00Z\n")
    assert "odf watermark set" in cli.text("append", "city", path, exit_code=1)


def test_an_appended_source_is_checked_as_well(cli: Cli) -> None:
    cli.add()
    path = cli.write("source.yaml", SECOND_SOURCE.replace("kind: Append", "kind: Snapshot\n  primaryKey: []"))
    assert "push source 'more'" in cli.text("append", "city", path, exit_code=1)


def test_without_a_repository_the_next_step_is_told(cli: Cli) -> None:
    assert "odf add" in cli.text("list", exit_code=1)
    assert not cli.data_dir.exists()


def test_a_source_that_takes_columns_away_is_refused_with_both_schemas(cli: Cli) -> None:
    schema = "kind: SetDataSchema\nschema:\n  fields:\n"
    for name, kind in (("offset", "Int64"), ("op", "Int32"), ("system_time", "Timestamp"), ("event_time", "Timestamp")):
        schema += f"  - name: {name}\n    type: {{kind: Option, inner: {{kind: {kind}}}}}\n"
    schema += "  - name: town\n    type: {kind: Option, inner: {kind: String}}\n"
    cli.add(CITY.replace("  metadata:\n", "  metadata:\n" + "".join(_indented(schema))))
    source = SECOND_SOURCE.replace("kind: NdJson", "kind: NdJson\n  schema: [city STRING]")
    refused = cli.text("append", "city", cli.write("source.yaml", source), exit_code=1)
    assert "push source 'more'" in refused
    assert "The dataset has:" in refused


def _indented(event: str) -> list[str]:
    first, *rest = event.splitlines()
    return [f"  - {first}\n", *(f"    {line}\n" for line in rest)]
