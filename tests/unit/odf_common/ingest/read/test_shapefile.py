from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
import shapefile
from hypothesis import given
from hypothesis import strategies as st

from odf_common.ingest.read import whole
from odf_common.ingest.read.choice import reader_of
from odf_common.ingest.read.records import Records
from odf_common.metadata.sources import ReadStepEsriShapefile
from tests.unit.odf_common.ingest.sources import letters, messages


def parts(*names: str, encoding: str = "utf-8", base: str = "cities") -> dict[str, bytes]:
    """The files of a shapefile: a point for each name, and a feature without a shape."""
    files = {suffix: io.BytesIO() for suffix in ("shp", "shx", "dbf")}
    with shapefile.Writer(**files, encoding=encoding) as writer:
        for name, kind, size, decimals in (("name", "C", 20, 0), ("n", "N", 10, 0), ("f", "F", 12, 3)):
            writer.field(name, kind, size, decimals)
        writer.field("d", "D")
        writer.field("b", "L")
        for number, name in enumerate(names):
            writer.point(number + 0.5, 2)
            writer.record(name, number, number / 2, "20200131", True)
        writer.null()
        writer.record("", None, None, None, None)
    return {f"{base}.{suffix}": file.getvalue() for suffix, file in files.items()}


def packed(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def read(*values: bytes | None, columns: tuple[str, ...] | None = None, sub_path: str | None = None) -> Records:
    step = ReadStepEsriShapefile(ddl_schema=columns, sub_path=sub_path)
    return reader_of(step, None).read(messages(*values))


def reason(value: bytes, **options: Any) -> str:
    """Why a message is refused, after one that is read."""
    records = read(packed(parts("x", base="a/x")), value, **options)
    [letter] = records.unreadable
    assert (letter.offset, letter.index, letter.data) == (1, None, value)
    assert records.rows.num_rows == 2
    return letter.reason


def test_a_feature_is_a_row_of_its_attributes_and_its_geometry_as_text() -> None:
    records = read(packed(parts("Zürich")))
    assert records.unreadable == []
    assert records.rows.to_pylist() == [
        {
            "b": True,
            "d": "2020-01-31",
            "f": 0.0,
            "geometry": '{"coordinates":[0.5,2.0],"type":"Point"}',
            "n": 0,
            "name": "Zürich",
        },
        dict.fromkeys(["b", "d", "f", "geometry", "n", "name"]),
    ]


def test_declared_columns_are_taken_by_name() -> None:
    records = read(packed(parts("x")), columns=("d DATE", "n DOUBLE", "geometry STRING"))
    assert [str(row["d"]) for row in records.rows.to_pylist()] == ["2020-01-31", "None"]
    assert records.rows["n"].to_pylist() == [0.0, None]


@pytest.mark.parametrize(
    ("label", "encoding"), [("1252", "cp1252"), ("ISO-8859-1", "latin-1"), ("ANSI 1252", "cp1252")]
)
def test_the_cpg_file_tells_the_encoding(label: str, encoding: str) -> None:
    files = parts("Zürich", encoding=encoding)
    assert read(packed({**files, "CITIES.CPG": label.encode()})).rows["name"][0].as_py() == "Zürich"
    expected = "feature 1: the .dbf file is not utf-8: put a .cpg file that names its encoding into the zip archive"
    assert reason(packed(files)) == expected
    assert reason(packed({**files, "cities.cpg": b"klingon"})) == (
        "the .cpg file names the encoding 'klingon', which is not known"
    )


def test_the_sub_path_picks_one_of_several() -> None:
    both = packed({**parts("x", base="a/one"), **parts("y", base="b/two"), "__MACOSX/._one.shp": b""})
    assert read(both, sub_path="*/two.shp").rows["name"][0].as_py() == "y"
    assert reason(both, sub_path=None) == (
        "the zip archive has several .shp files: a/one.shp, b/two.shp; let subPath of the read step pick one"
    )
    [letter] = read(both, sub_path="*.kml").unreadable
    assert letter.reason == "subPath '*.kml' picks no .shp file of the zip archive, which has a/one.shp, b/two.shp"


def test_parts_that_are_missing_are_named() -> None:
    files = parts("x")
    assert reason(packed({"readme.txt": b"", "cities.dbf": files["cities.dbf"]})) == (
        "the zip archive has no .shp file, it holds cities.dbf, readme.txt: put .shp, .shx and .dbf into it"
    )
    assert reason(packed({"cities.shp": files["cities.shp"]})) == (
        "the zip archive has 'cities.shp' without its .dbf: put both into it"
    )
    assert read(packed({name: files[name] for name in ("cities.shp", "cities.dbf")})).rows.num_rows == 2


def test_parts_of_different_lengths_are_refused() -> None:
    files, others = parts("x"), parts("x", "y")
    assert reason(packed({**files, "cities.shp": others["cities.shp"]})) == (
        "feature 3: the .shp file has it, the .dbf file does not: one is cut off"
    )


def test_shapes_that_are_cut_off_are_refused() -> None:
    files = parts("x", "y")
    said = reason(packed({**files, "cities.shp": files["cities.shp"][:-20]}))
    assert said == "'cities.shp' is cut off: it says that it has 168 bytes, but has 148"


def test_deleted_records_are_left_out() -> None:
    files = parts("x", "y")
    table = bytearray(files["cities.dbf"])
    table[int.from_bytes(table[8:10], "little")] = ord("*")
    records = read(packed({**files, "cities.dbf": bytes(table)}))
    assert records.rows["geometry"].to_pylist()[0] == '{"coordinates":[1.5,2.0],"type":"Point"}'


@pytest.mark.parametrize("name", ["../cities.shp", "/etc/x.shp", "a/../../x.shp", "..\\x.shp", "C:\\x.shp"])
def test_paths_that_lead_out_of_the_archive_are_refused(name: str) -> None:
    said = reason(packed({**parts("x"), name: b""}))
    assert said.startswith("the zip archive has a file with the path ")
    assert said.endswith(", which leads out of it: pack it anew")


def test_a_small_archive_that_becomes_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MAX_UNPACKED_MESSAGE", 1 << 20)
    said = reason(packed({**parts("x"), "cities.shp": bytes(2 << 20)}))
    assert said == "'cities.shp' unpacks to more than the 1048576 bytes that are left for it: is it a zip bomb?"


def test_what_is_no_archive_is_refused() -> None:
    assert reason(parts("x")["cities.shp"]) == "this is no zip archive: a directory is missing (140 bytes)"
    assert reason(packed(parts("x"))[:-30]).startswith("the zip archive is cut off")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_that_the_library_unpacks_in_one_go_are_refused(method: int) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as file:
        for name, data in parts("x").items():
            file.writestr(name, data)
    assert reason(archive.getvalue()).endswith("is packed in a way that is not supported: pack it with deflate")


def test_a_misfit_names_its_feature() -> None:
    records = read(packed(parts("1", "2")), columns=("name BIGINT",))
    assert letters(records.unreadable) == [(0, None, "WrongType")]
    assert records.unreadable[0].reason == "feature 1: column 'name': expected BIGINT, found string \"1\""


def test_columns_of_one_name_are_refused() -> None:
    files = {suffix: io.BytesIO() for suffix in ("shp", "shx", "dbf")}
    with shapefile.Writer(**files) as writer:
        writer.field("geometry", "C", 20)
        writer.null()
        writer.record("x")
    said = reason(packed({f"a.{suffix}": file.getvalue() for suffix, file in files.items()}))
    assert said == "two columns of the shapefile want to be called 'geometry'"


@given(st.data())
def test_damaged_shapefiles_raise_nothing(data: st.DataObject) -> None:
    files = parts("x", "y")
    name = data.draw(st.sampled_from(["cities.shp", "cities.dbf"]))
    content = bytearray(files[name])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content)) | st.just(len(content))) :]
    records = read(packed({**files, name: bytes(content)}))
    assert len(records.unreadable) <= 1
    for geometry in records.rows["geometry"].to_pylist() if "geometry" in records.rows.column_names else ():
        assert geometry is None or json.loads(geometry)["type"]
