"""An analysis from Python is the one of the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

import smbscope
from conftest import DATA, OFFICE, SMB1, cli

CAPTURES = sorted([*DATA.glob("*.pcap.zst"), *(DATA / "found").glob("*.pcap*")])

# Objects whose keys are statuses or outcomes.
MAPS = ("errors", "outcomes")


def flat(entry: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A row of a table as the JSON document says it: the keys of an object are columns, maps are lists."""
    row: dict[str, Any] = {}
    for key, value in entry.items():
        if isinstance(value, dict) and key not in MAPS:
            row |= flat(value, f"{prefix}{key}_")
        else:
            row[prefix + key] = listed(key, value)
    return row


def listed(key: str, value: Any) -> Any:
    """A value within a row: an object with any keys is a list of them."""
    if isinstance(value, list):
        return [listed("", item) for item in value]
    if isinstance(value, dict) and key in MAPS:
        return [{"key": key, "value": item} for key, item in sorted(value.items())]
    if isinstance(value, dict):
        return {key: listed(key, item) for key, item in value.items()}
    return value


def assert_equal(found: Any, expected: Any, place: str) -> None:
    """Equal, but for the last bit of numbers with fractions, which are read from text twice."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key in expected:
            assert_equal(found[key], expected[key], f"{place}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_equal(one, other, f"{place}.{number}")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-15), place
    else:
        assert found == expected, place


def without_nulls(value: Any) -> Any:
    """What is null in one is missing in the other where an object is null as a whole."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_the_document_and_its_tables_are_those_of_the_command_line(capture: Path) -> None:
    said = cli("analyze", "-q", "--format", "json", capture)
    analysis = smbscope.analyze(capture)
    assert analysis.to_json() == said
    document = json.loads(said)
    assert analysis.to_dict() == document
    expected = {"answer", "causes", "commands", "groups", "files", "clients", "shares", "connections", "episodes"}
    assert expected < set(analysis.tables)
    for name in analysis.tables:
        value = document["answer"]["causes"] if name == "causes" else document.get(name)
        entries = value if isinstance(value, list) else [value] if value is not None else []
        rows = analysis.table(name).to_pylist()
        assert len(rows) == len(entries), name
        for row, entry in zip(rows, entries, strict=True):
            assert_equal(without_nulls(row), without_nulls(flat(entry)), name)


def test_text_and_page_are_those_of_the_command_line(office: smbscope.Analysis, tmp_path: Path) -> None:
    assert office.to_text() == cli("analyze", "-q", OFFICE)
    assert office.to_text(full=True) == cli("analyze", "-q", "--full", OFFICE)
    cli("analyze", "-q", "-o", tmp_path / "cli.html", OFFICE)
    assert office.to_html() == (tmp_path / "cli.html").read_text(encoding="utf-8")


def test_options_are_those_of_the_command_line() -> None:
    options = ["--filter", "group == Read", "--by", "client,file", "--sort", "bytes", "--slow", "read=1us"]
    said = cli("analyze", "-q", "--format", "json", *options, "--title", "A", OFFICE)
    analysis = smbscope.analyze(
        OFFICE, filter="group == Read", by=["client", "file"], sort="bytes", slow="read=1us", title="A"
    )
    assert analysis.to_json() == said
    assert len(analysis.table("slices.entries")) > 0


def test_an_episode_has_its_commands() -> None:
    said = cli("analyze", "-q", "--format", "json", "--episode", "1", OFFICE)
    analysis = smbscope.analyze([OFFICE], episode=1)
    assert analysis.to_json() == said
    assert len(analysis.table("waterfall")) > 0


def test_several_captures_are_one() -> None:
    both = smbscope.analyze([SMB1, OFFICE])
    assert both.to_json() == cli("analyze", "-q", "--format", "json", SMB1, OFFICE)
    assert len(both.table("captures")) == 2


def test_the_result_does_not_depend_on_threads(office: smbscope.Analysis) -> None:
    for threads in (1, 2, 5):
        assert smbscope.analyze(OFFICE, threads=threads).to_json() == office.to_json()


@pytest.mark.parametrize("ending", ["json", "html", "csv"])
def test_a_saved_file_is_that_of_the_command_line(office: smbscope.Analysis, tmp_path: Path, ending: str) -> None:
    cli("analyze", "-q", "-o", tmp_path / f"cli.{ending}", OFFICE)
    office.save(tmp_path / f"saved.{ending}")
    assert (tmp_path / f"saved.{ending}").read_bytes() == (tmp_path / f"cli.{ending}").read_bytes()


def test_no_output_is_an_input(tmp_path: Path) -> None:
    capture = tmp_path / "capture.json"
    capture.write_bytes(OFFICE.read_bytes())
    with pytest.raises(smbscope.SmbscopeError, match="it is the input"):
        smbscope.analyze(capture).save(capture)
    assert capture.read_bytes() == OFFICE.read_bytes()
