#!/usr/bin/env python3
"""Checks that other programs read the exchange table correctly.

Each capture is analysed into Parquet and into the JSON report. DuckDB, pandas (with pyarrow) and Polars then read the
Parquet file, count and time every command and group on their own, and must arrive at the figures of the report. Counts
must be equal. Medians, 95th and 99th percentiles must be equal to the nanosecond as long as the report's are exact: up
to 10,000 values, above that they come from a histogram with three significant digits. All use definition 7 of Hyndman
and Fan; the report omits percentiles that too few values support.
"""

import argparse
import json
import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import duckdb
import pandas
import polars

ROOT = Path(__file__).resolve().parent.parent
# Largest number of values with exact percentiles in the report, and the relative error above it.
EXACT = 10_000
TOLERANCE = 1e-3
# Percentile, its key in the report, and the minimum number of values.
PERCENTILES = ((0.5, "p50", 1), (0.95, "p95", 20), (0.99, "p99", 100))
# Rows that are not commands of their own, which the report lists separately.
APART = ("async portion", "server-initiated")
NOT_IN_HEADLINE = ("Waiting", "Encrypted")


@dataclass(frozen=True, slots=True)
class Figures:
    """Number of commands, number of timed commands, and percentiles of their response times in ns."""

    count: int
    timed: int
    percentiles: tuple[float, ...]


# By kind ("command", "group", "headline") and name.
Table = dict[tuple[str, str], Figures]


def reported(report: dict[str, Any]) -> Table:
    """Returns the figures of the JSON report. Missing percentiles are omitted from the end of the tuple."""

    def figures(row: dict[str, Any]) -> Figures:
        times = row["response_time"]
        found = tuple(float(times[key]) for _, key, _ in PERCENTILES if times[key] is not None)
        return Figures(row["count"], row["timed"], found)

    def groups(rows: list[dict[str, Any]]) -> Iterator[tuple[tuple[str, str], Figures]]:
        for row in rows:
            if row["parts"]:
                yield from groups(row["parts"])
            else:
                yield ("group", row["group"]), figures(row)

    table: Table = dict(groups(report["groups"]))
    for row in report["commands"]:
        waiting = " (waiting)" if row["groups"] == ["Waiting"] else ""
        # A command that only has separate rows still has an entry.
        if row["count"]:
            table["command", f"{row['protocol']} {row['command']}{waiting}"] = figures(row)
    table["headline", ""] = figures(report["totals"]["headline"])
    return table


def by_duckdb(path: Path) -> Table:
    """Returns counts and percentiles from SQL."""
    names = {
        "command": "protocol || ' ' || command || if(\"group\" = 'Waiting', ' (waiting)', '')",
        "group": '"group"',
        "headline": "''",
    }
    table: Table = {}
    with duckdb.connect() as connection:
        for kind, name in names.items():
            where = f'and "group" not in {NOT_IN_HEADLINE}' if kind == "headline" else ""
            rows = connection.execute(
                f"""select {name}, count(*), count(*) filter (outcome = 'complete'),
                        quantile_cont(response_time_ns, {[p for p, _, _ in PERCENTILES]})
                            filter (outcome = 'complete')
                    from read_parquet(?)
                    where coalesce(subcommand, '') not in {APART} and outcome <> 'server_initiated' {where}
                    group by 1""",
                [str(path)],
            ).fetchall()
            for found, count, timed, percentiles in rows:
                table[kind, found] = Figures(count, timed, tuple(float(value) for value in percentiles or ()))
    return table


def by_pandas(path: Path) -> Table:
    """Returns counts and percentiles from pandas. By default, pandas would convert integer columns with nulls to
    floats."""
    frame = pandas.read_parquet(path, dtype_backend="pyarrow")
    frame = frame[~frame["subcommand"].astype("string").fillna("").isin(APART)]
    frame = frame[frame["outcome"].astype("string") != "server_initiated"]
    group = frame["group"].astype("string")
    waiting = (group == "Waiting").map({True: " (waiting)", False: ""})
    names = frame["protocol"].astype("string") + " " + frame["command"].astype("string") + waiting.astype("string")
    table: Table = {}
    keys = {"command": names, "group": group, "headline": group.where(group.isin(NOT_IN_HEADLINE), "")}
    for kind, key in keys.items():
        for found, part in frame.groupby(key):
            if kind == "headline" and found != "":
                continue
            times = part["response_time_ns"][part["outcome"].astype("string") == "complete"].astype("int64")
            found_percentiles = tuple(float(times.quantile(p)) for p, _, _ in PERCENTILES) if len(times) else ()
            table[kind, str(found)] = Figures(len(part), len(times), found_percentiles)
    return table


def by_polars(path: Path) -> Table:
    """Returns counts and percentiles from Polars."""
    text = polars.String
    frame = polars.read_parquet(path).with_columns(polars.col("protocol", "command", "group", "outcome").cast(text))
    frame = frame.filter(
        ~polars.col("subcommand").cast(text).fill_null("").is_in(APART) & (polars.col("outcome") != "server_initiated")
    )
    group = polars.col("group")
    waiting = polars.when(group == "Waiting").then(polars.lit(" (waiting)")).otherwise(polars.lit(""))
    timed = polars.col("outcome") == "complete"
    times = polars.col("response_time_ns").filter(timed)
    table: Table = {}
    keys = {
        "command": polars.concat_str(polars.col("protocol"), polars.lit(" "), polars.col("command"), waiting),
        "group": group,
        "headline": polars.lit(""),
    }
    for kind, key in keys.items():
        rows = frame.filter(~group.is_in(NOT_IN_HEADLINE)) if kind == "headline" else frame
        grouped = rows.group_by(key.alias("name")).agg(
            polars.len().alias("count"),
            timed.sum().alias("timed"),
            *(times.quantile(p, interpolation="linear").alias(name) for p, name, _ in PERCENTILES),
        )
        for row in grouped.iter_rows(named=True):
            percentiles = [row[name] for _, name, _ in PERCENTILES]
            known = tuple(float(value) for value in percentiles if value is not None)
            table[kind, row["name"]] = Figures(row["count"], row["timed"], known)
    return table


READERS: dict[str, Callable[[Path], Table]] = {"DuckDB": by_duckdb, "pandas": by_pandas, "Polars": by_polars}


def differences(expected: Table, found: Table) -> Iterator[str]:
    """Yields the differences between a reader's figures and the report's."""
    for kind, name in sorted(expected.keys() | found.keys()):
        mine, theirs = expected.get((kind, name)), found.get((kind, name))
        where = f"{kind} {name}".strip()
        if mine is None or theirs is None:
            # Without commands, the report has an empty headline, and the table has no row to group.
            if mine is None or mine.count:
                yield f"{where}: only in the {'table' if mine is None else 'report'}"
            continue
        if (mine.count, mine.timed) != (theirs.count, theirs.timed):
            yield f"{where}: {theirs.count} commands, {theirs.timed} timed; reported {mine.count}, {mine.timed}"
            continue
        supported = [key for _, key, fewest in PERCENTILES if mine.timed >= fewest]
        if len(mine.percentiles) != len(supported):
            yield f"{where}: {len(mine.percentiles)} percentiles reported, of {mine.timed} values"
            continue
        for key, reported_ns, found_ns in zip(supported, mine.percentiles, theirs.percentiles, strict=False):
            # Rounded to whole nanoseconds. Interpolation with doubles is accurate to about a thousandth of a
            # nanosecond.
            allowed = 0.501 if mine.timed <= EXACT else abs(found_ns) * TOLERANCE + 1
            if abs(reported_ns - found_ns) > allowed:
                yield f"{where}: {key} {found_ns:.3f} ns; reported {reported_ns:.0f} ns"


def moments(path: Path) -> dict[str, int]:
    """Returns the sum of all timestamps in nanoseconds by reader, to check that integers are read without loss."""
    columns = ["request_first_ns", "response_last_ns"]
    with duckdb.connect() as connection:
        row = connection.execute(f"select {', '.join(f'sum({c})' for c in columns)} from read_parquet(?)", [str(path)])
        by_sql = sum(int(value or 0) for value in row.fetchone() or ())
    frame = pandas.read_parquet(path, columns=columns, dtype_backend="pyarrow")
    polar = polars.read_parquet(path, columns=columns)
    return {
        "DuckDB": by_sql,
        "pandas": sum(int(value) for column in columns for value in frame[column].dropna().tolist()),
        "Polars": sum(int(value) for column in columns for value in polar[column].drop_nulls().to_list()),
    }


def analyze(smbscope: Path, capture: Path, *options: str) -> bytes:
    command = [str(smbscope), "analyze", str(capture), "--quiet", *options]
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if run.returncode:
        raise SystemExit(f"check_table: {' '.join(command)}: {run.stderr.decode().strip()}")
    return run.stdout


def check(smbscope: Path, capture: Path, scratch: Path) -> Iterator[str]:
    """Yields all problems with one capture."""
    path = scratch / "exchanges.parquet"
    analyze(smbscope, capture, "--format", "parquet", "-o", str(path))
    report = cast(dict[str, Any], json.loads(analyze(smbscope, capture, "--format", "json")))
    expected = reported(report)
    for name, reader in READERS.items():
        yield from (f"{name}: {problem}" for problem in differences(expected, reader(path)))
    sums = moments(path)
    if len(set(sums.values())) != 1:
        yield f"points in time add up differently: {sums}"
    with duckdb.connect() as connection:
        rows = connection.execute("select key, value from parquet_kv_metadata(?)", [str(path)]).fetchall()
    metadata = {bytes(key).decode(): bytes(value).decode() for key, value in rows}
    if metadata.get("smbscope.schema") != "smbscope.exchanges/1":
        yield f"the metadata name the schema {metadata.get('smbscope.schema')!r}"
    for key in ("captures", "quality"):
        if json.loads(metadata.get(f"smbscope.{key}", "null")) != report[key]:
            yield f"smbscope.{key} in the metadata is not `{key}` of the report"


def refuses_a_terminal(smbscope: Path, capture: Path) -> str | None:
    """Checks that writing binary output to a terminal fails with a one-line message."""
    master, terminal = pty.openpty()
    try:
        command = [str(smbscope), "analyze", str(capture), "--format", "parquet"]
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(terminal)
        os.close(master)
    lines = run.stderr.splitlines()
    if run.returncode != 1 or len(lines) != 1 or "cannot write Parquet to a terminal" not in lines[0]:
        return f"a terminal was not refused: exit {run.returncode}, {run.stderr!r}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smbscope", type=Path, required=True)
    parser.add_argument("captures", type=Path, nargs="*", help="instead of the bundled ones")
    options = parser.parse_args()
    smbscope: Path = options.smbscope.resolve()
    data = ROOT / "tests" / "data"
    captures: list[Path] = options.captures or sorted(
        path for path in data.rglob("*.pcap*.zst") if not path.name.endswith(".tsv.zst")
    )
    failed = 0
    with tempfile.TemporaryDirectory(prefix="smbscope-table-") as scratch:
        for capture in captures:
            problems = list(check(smbscope, capture, Path(scratch)))
            failed += bool(problems)
            for problem in problems:
                print(f"check_table: {capture.name}: {problem}", file=sys.stderr)
    refusal = refuses_a_terminal(smbscope, captures[0])
    if refusal:
        failed += 1
        print(f"check_table: {refusal}", file=sys.stderr)
    print(f"check_table: {len(captures)} captures read by {', '.join(READERS)}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
