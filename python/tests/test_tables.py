"""Tables in pyarrow, Polars, pandas and DuckDB, and the exchange table as it streams."""

import csv
import io
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import smbscope
from conftest import OFFICE, SMB1, cli

# As the report says in `BATCH_ROWS`.
BATCH_ROWS = 8192


def test_times_have_types_that_say_so(office: smbscope.Analysis) -> None:
    commands, episodes = pa.table(office.commands).schema, pa.table(office.episodes).schema
    assert commands.field("response_time_p95").type == pa.duration("ns")
    assert commands.field("count").type == pa.int64() == commands.field("response_time_count").type
    assert episodes.field("start_ns").type == pa.timestamp("ns", tz="UTC")
    assert episodes.field("waited_ns").type == pa.duration("ns")
    assert pa.schema(office.commands) == commands


def test_every_library_takes_a_table(office: smbscope.Analysis) -> None:
    rows = office.commands.to_pylist()
    names, counts = [row["command"] for row in rows], [row["count"] for row in rows]
    arrow = pa.table(office.commands)
    assert arrow["command"].to_pylist() == names
    # Nanoseconds, to the last one.
    assert arrow["response_time_max"].cast(pa.int64()).to_pylist() == [row["response_time_max"] for row in rows]
    polars = pl.DataFrame(office.commands)
    assert polars["command"].to_list() == names and polars["count"].to_list() == counts
    pandas = pd.DataFrame.from_arrow(office.commands)  # type: ignore[attr-defined] # newer than its stubs
    assert list(pandas["command"]) == names and list(pandas["count"]) == counts
    commands = office.commands
    assert commands is not None
    found = duckdb.sql("select command, count from commands order by count desc, command")
    assert found is not None and sorted(found.fetchall()) == sorted(zip(names, counts, strict=True))


def test_a_table_crosses_without_a_copy(office: smbscope.Analysis) -> None:
    table = office.commands
    once, again = pa.table(table), pa.table(table)
    for name in ("count", "response_time_p50", "command", "errors"):
        first, second = once[name].chunk(0).buffers(), again[name].chunk(0).buffers()
        assert [buffer and buffer.address for buffer in first] == [buffer and buffer.address for buffer in second]


def test_a_table_outlives_what_it_is_from() -> None:
    def made() -> pa.Table:
        return pa.table(smbscope.analyze(SMB1).files)

    assert made()["path"].to_pylist() == [row["path"] for row in smbscope.analyze(SMB1).files.to_pylist()]


@pytest.mark.parametrize("capture", [OFFICE, SMB1], ids=lambda path: path.name)
def test_the_exchange_table_is_that_of_the_command_line(capture: Path, tmp_path: Path) -> None:
    cli("analyze", "-q", "-o", tmp_path / "cli.parquet", capture)
    written = pq.read_table(tmp_path / "cli.parquet")
    exchanges = smbscope.analyze(capture).exchanges()
    streamed = pa.table(exchanges)
    assert streamed.column_names == written.column_names
    plain = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in streamed.schema]
    target = pa.schema(list(zip(streamed.column_names, plain, strict=True)))
    assert streamed.cast(target).equals(written.cast(target))
    # And again: it is read anew.
    batches = [len(batch) for batch in exchanges]
    assert sum(batches) == len(written) and max(batches) <= BATCH_ROWS
    said = csv.DictReader(io.StringIO(cli("analyze", "-q", "--format", "csv", "--csv-raw", capture)))
    numbers = [int(row["response_time_ns"]) if row["response_time_ns"] else None for row in said]
    assert streamed["response_time_ns"].to_pylist() == numbers


def test_a_filter_chooses_exchanges_too() -> None:
    reads = pl.DataFrame(smbscope.analyze(OFFICE, filter="command == READ").exchanges())
    assert set(reads["command"].to_list()) == {"READ"}


def test_duckdb_asks_the_captures_themselves() -> None:
    exchanges = smbscope.analyze(OFFICE).exchanges()
    assert exchanges is not None
    found = duckdb.sql("select count(*) from exchanges where command = 'READ'")
    assert found is not None
    [(count,)] = found.fetchall()
    [row] = [row for row in smbscope.analyze(OFFICE).commands.to_pylist() if row["command"] == "READ"]
    assert count >= row["count"]


def test_rows_need_no_library() -> None:
    code = (
        "import sys, smbscope; rows = smbscope.analyze(sys.argv[1]).commands.to_pylist(); "
        "assert rows[0]['count'] > 0; print(sorted({'pyarrow', 'numpy', 'pandas', 'polars'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code, OFFICE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_names_are_text_in_a_notebook() -> None:
    hostile = '{"schema": "smbscope.report/1", "users": [{"user": "<script>alert(1)</script>\\u001b[31m"}]}'
    html = smbscope.Document(hostile).table("users")._repr_html_()
    assert "<script" not in html and "\x1b" not in html and "&lt;script&gt;" in html
    page = smbscope.Document(hostile)._repr_html_()
    assert "<script" not in page


def test_a_table_that_is_not_there_is_an_error(office: smbscope.Analysis) -> None:
    with pytest.raises(smbscope.ArgumentError, match=r'^no table "nothing" in smbscope.report/1: it has generator, '):
        office.table("nothing")
    with pytest.raises(smbscope.ArgumentError, match="not a document of smbscope"):
        smbscope.Document("{}")
    with pytest.raises(smbscope.ArgumentError, match="not JSON"):
        smbscope.Document("{")
