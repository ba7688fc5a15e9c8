"""Runs smbscope on a capture and reads its exchange table and counters."""

import csv
import io
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Exchange:
    """A row of the exchange table, with the columns needed here."""

    client_port: int
    protocol: str
    command: str
    subcommand: str
    message_id: int | None
    status: str
    outcome: str
    request_first: int | None
    request_last: int | None
    response_first: int | None
    response_last: int | None
    request_first_ns: int | None
    request_last_ns: int | None
    interim_ns: int | None
    response_first_ns: int | None
    response_last_ns: int | None
    compounded: bool

    def srt(self) -> int | None:
        if self.response_last_ns is None or self.request_last_ns is None:
            return None
        return self.response_last_ns - self.request_last_ns

    def response_time(self) -> int | None:
        if self.response_last_ns is None or self.request_first_ns is None:
            return None
        return self.response_last_ns - self.request_first_ns

    def interim_time(self) -> int | None:
        if self.interim_ns is None or self.request_last_ns is None:
            return None
        return self.interim_ns - self.request_last_ns

    def paired(self) -> bool:
        return self.request_first is not None and self.response_last is not None

    def describe(self) -> str:
        return (
            f"{self.command} id {self.message_id}, request {self.request_first}–{self.request_last}, "
            f"response {self.response_first}–{self.response_last}, {self.outcome}"
        )


@dataclass(slots=True)
class Analysis:
    """smbscope's results for a capture."""

    exchanges: list[Exchange]
    quality: dict[str, int]
    error: str = ""
    sentence: str = ""
    not_timed: dict[str, float] = field(default_factory=dict)
    """Percentage of untimed commands: percent, at_least, at_most."""


def number(text: str) -> int | None:
    return int(text, 0) if text else None


def analyze(smbscope: Path, capture: Path) -> Analysis:
    """Runs smbscope twice: for the exchange table and for the quality counters."""
    runs = []
    for output in (["csv", "--csv-raw"], ["json"]):
        command = [str(smbscope), "analyze", str(capture), "--format", *output]
        run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if run.returncode:
            lines = run.stderr.strip().splitlines() or [f"exit {run.returncode}"]
            return Analysis([], {}, lines[-1].replace(str(capture), capture.name))
        runs.append(run.stdout)
    exchanges = [
        Exchange(
            client_port=int(row["client_port"] or 0),
            protocol=row["protocol"],
            command=row["command"],
            subcommand=row["subcommand"],
            message_id=number(row["message_id"]),
            status=row["status"],
            outcome=row["outcome"],
            request_first=number(row["request_first_packet"]),
            request_last=number(row["request_last_packet"]),
            response_first=number(row["response_first_packet"]),
            response_last=number(row["response_last_packet"]),
            request_first_ns=number(row["request_first_ns"]),
            request_last_ns=number(row["request_last_ns"]),
            interim_ns=number(row["interim_ns"]),
            response_first_ns=number(row["response_first_ns"]),
            response_last_ns=number(row["response_last_ns"]),
            compounded=row["compounded"] in ("true", "1"),
        )
        for row in csv.DictReader(io.StringIO(runs[0]))
    ]
    try:
        quality = json.loads(runs[1])["quality"]
    except (ValueError, KeyError, TypeError):
        return Analysis([], {}, "its JSON report has no `quality`")
    counters = {name: value for name, value in quality.items() if isinstance(value, int)}
    return Analysis(exchanges, counters, "", quality["sentence"], quality["not_timed"])
