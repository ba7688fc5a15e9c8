"""Data frames of tables, and what a notebook shows of documents and tables."""

import subprocess
import sys
from html import unescape
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import smbscope
from conftest import DATA, OFFICE, cli, needs_samba
from smbscope import _notebook

SLOW = DATA / "demo-slow-server.pcap.zst"

# Names that end a cell, begin a script, reverse text, or steer a terminal.
HOSTILE = "</td><script>alert(1)</script>\\u001b[31m\\u202e\\\"'&"


def test_a_data_frame_has_the_rows_of_the_table(office: smbscope.Analysis) -> None:
    for table in (office.commands, office.groups, office.causes, office.files):
        rows = table.to_pylist()
        pandas, polars = table.to_pandas(), table.to_polars()
        assert isinstance(pandas, pd.DataFrame) and isinstance(polars, pl.DataFrame)
        assert list(pandas.columns) == polars.columns == table.column_names
        assert len(pandas) == len(polars) == len(rows)
    counts = [row["count"] for row in office.commands.to_pylist()]
    assert office.commands.to_pandas()["count"].tolist() == counts
    assert office.commands.to_polars()["count"].to_list() == counts


def test_integers_and_times_stay_exact_next_to_missing_values() -> None:
    document = """{"schema": "smbscope.report/1", "slowest": [
        {"request_first_ns": 1700000000123456789, "request_bytes": 9007199254740993,
         "response_time_ns": 9007199254740993},
        {"request_first_ns": 1700000000123456790, "request_bytes": null, "response_time_ns": 1}]}"""
    table = smbscope.Document(document).table("slowest")
    frame = table.to_pandas()
    assert frame["request_bytes"].dtype == pd.Int64Dtype() and frame["request_bytes"][0] == 9007199254740993
    assert frame["request_bytes"].isna().tolist() == [False, True]
    assert frame["response_time_ns"][0] == pd.Timedelta(9007199254740993, "ns")
    assert frame["request_first_ns"][0] == pd.Timestamp(1700000000123456789, tz="UTC")
    polars = table.to_polars()
    assert polars["request_bytes"].to_list() == [9007199254740993, None]
    assert polars["response_time_ns"].cast(pl.Int64).to_list() == [9007199254740993, 1]


def test_the_exchange_table_becomes_a_data_frame(tmp_path: Path) -> None:
    cli("analyze", "-q", "-o", tmp_path / "cli.parquet", OFFICE)
    written = pl.read_parquet(tmp_path / "cli.parquet")
    exchanges = smbscope.analyze(OFFICE).exchanges()
    polars, pandas = exchanges.to_polars(), exchanges.to_pandas()
    assert polars.columns == written.columns == list(pandas.columns)
    assert polars["response_time_ns"].to_list() == written["response_time_ns"].to_list()
    # An integer with missing values stays an integer.
    assert pandas["response_time_ns"].dtype == pd.Int64Dtype()
    assert pandas["response_time_ns"].isna().sum() == written["response_time_ns"].null_count()


@pytest.mark.parametrize(
    ("missing", "function", "text"),
    [
        ("pandas", "to_pandas", "to_pandas() needs pandas: pip install pandas pyarrow"),
        ("pyarrow", "to_pandas", "to_pandas() needs pyarrow: pip install pandas pyarrow"),
        ("polars", "to_polars", "to_polars() needs polars: pip install polars"),
    ],
)
def test_a_missing_library_is_one_line_that_says_what_to_install(missing: str, function: str, text: str) -> None:
    code = f"""
import sys, smbscope
if "{missing}" == "pyarrow":
    import pandas
sys.modules["{missing}"] = None
table = smbscope.analyze(sys.argv[1]).groups
try:
    table.{function}()
except ModuleNotFoundError as error:
    print(error, error.name)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code, OFFICE], capture_output=True, text=True, check=True)
    assert done.stdout == f"{text} {missing}\n"


def test_html_of_a_table_has_the_columns_asked_for_in_readable_units(office: smbscope.Analysis) -> None:
    html = office.groups.to_html(columns=["group", "response_time_p95"], rows=2)
    assert html.count("<tr>") == 3 and html.count("<th ") == 2
    assert "2 of " in html and ("µs" in html or "ms" in html)
    assert '<td style="text-align:right">' in html
    with pytest.raises(smbscope.ArgumentError, match=r'^no column "p95": there are group, '):
        office.groups.to_html(columns=["p95"])


def test_a_notebook_shows_the_answer_and_then_the_tables() -> None:
    analysis = smbscope.analyze(SLOW)
    [answer] = analysis.answer.to_pylist()
    [cause, *_] = analysis.causes.to_pylist()
    html = unescape(analysis._repr_html_())
    texts = (answer["headline"], cause["advice"], answer["evidence"][0], "<code>causes", "<code>groups")
    places = [html.index(text) for text in texts]
    assert places == sorted(places)
    assert html.count("<table>") == 2
    assert len(html) < 20_000


def test_every_column_that_a_notebook_shows_exists() -> None:
    kinds = [f'{{"schema": "smbscope.{kind}/1"}}' for kind in ("report", "bench", "compare", "study", "prediction")]
    documents = [smbscope.Document(kind) for kind in kinds]
    for name, columns in _notebook._TABLES.items():
        known = {column for one in documents if name in one.tables for column in one.table(name).column_names}
        assert set(columns) <= known, name


def test_a_healthy_capture_has_no_empty_table(office: smbscope.Analysis) -> None:
    html = office._repr_html_()
    assert len(office.causes) == 0
    assert "Nothing is slow" in html and html.count("<table>") == 1


def test_a_comparison_shows_its_answer_and_its_sides() -> None:
    comparison = smbscope.compare(OFFICE, SLOW, name=["<i>before", "after"])
    html = comparison._repr_html_()
    [answer] = comparison.answers.to_pylist()
    assert "&lt;i&gt;before" in html and "<i>" not in html
    assert html.index("<strong>") < html.index("<table>")
    assert answer["headline"].split()[-1] in html


def test_a_run_shows_its_answer_and_its_load_points() -> None:
    needs_samba()
    run = smbscope.bench(users="1,2", duration="500ms", warmup="0s", workload="echo")
    html = run._repr_html_()
    assert "<strong>" in html and "operations_per_second" in html and "total_client_p95" in html
    assert len(run.runs.to_polars()) == 2


def test_hostile_names_are_text_everywhere() -> None:
    document = f"""{{"schema": "smbscope.report/1",
        "answer": {{"headline": "{HOSTILE}", "evidence": ["{HOSTILE}"], "caveats": ["{HOSTILE}"], "causes": [
            {{"title": "{HOSTILE}", "advice": "{HOSTILE}", "subject": {{"client": "{HOSTILE}"}}}}]}},
        "groups": [{{"group": "{HOSTILE}", "count": 1}}], "users": [{{"user": "{HOSTILE}"}}]}}"""
    hostile = smbscope.Document(document)
    table = hostile.table("users")
    for html in (hostile._repr_html_(), table._repr_html_(), table.to_html(), table.to_html(columns=["user"])):
        assert "<script" not in html and "\x1b" not in html and "\u202e" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert hostile._repr_html_().count("&lt;script&gt;") >= 6


def test_a_page_is_isolated_in_its_frame(office: smbscope.Analysis) -> None:
    html = smbscope.Page(office, height="20em")._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts" ') and "height:20em" in html
    assert "<script" not in html and html.count("<") == 2
    hostile = smbscope.Page(office, height='"><script>')._repr_html_()
    assert "<script" not in hostile
