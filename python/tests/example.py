"""A program that uses the package as a program would: what mypy --strict and pyright check, and a test runs."""

import sys
from typing import assert_type

import polars as pl
import pyarrow as pa

import smbscope


def slow_commands(capture: str) -> list[str]:
    """The commands of a capture, the slowest p95 first."""
    analysis = smbscope.analyze(capture, filter="group != Waiting", by=["client", "share"])
    assert_type(analysis, smbscope.Analysis)
    assert_type(analysis.commands, smbscope.Table)
    assert_type(analysis.commands.to_polars(), pl.DataFrame)
    commands = analysis.commands.to_polars().sort("response_time_p95", descending=True, nulls_last=True)
    names: list[str] = commands["command"].to_list()
    return names


def rows(capture: str) -> int:
    """The exchanges of a capture, a batch at a time."""
    total = 0
    for batch in smbscope.analyze(capture).exchanges():
        assert_type(batch, smbscope.Table)
        total += pa.table(batch).num_rows
    return total


def main() -> int:
    """Print what a capture shows."""
    try:
        print(rows(sys.argv[1]), *slow_commands(sys.argv[1]))
    except smbscope.SmbscopeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
