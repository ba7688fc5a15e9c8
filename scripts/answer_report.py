"""smbscope's report on a capture, reduced to what the answer tests need."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

# Parts that add up to the duration of a connection.
PARTS = (
    "think",
    "request_transfer",
    "network",
    "server",
    "server_or_network",
    "response_transfer",
    "waiting",
    "idle",
    "unknown",
    "filtered_out",
)
SECONDS = {"s": 1.0, "ms": 1e-3}


class Report:
    """JSON report on a capture; times in seconds."""

    def __init__(self, smbscope: Path, capture: Path) -> None:
        command = [str(smbscope), "analyze", "--quiet", "--format", "json", str(capture)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self._json: dict[str, Any] = json.loads(done.stdout)

    @property
    def culprit(self) -> str:
        return str(self._json["answer"]["culprit"])

    @property
    def headline(self) -> str:
        return str(self._json["answer"]["headline"])

    @property
    def causes(self) -> list[str]:
        """Keys of the causes, worst first."""
        return [str(cause["id"]) for cause in self._json["answer"]["causes"]]

    def said(self) -> str:
        """Returns the headline, its evidence and the causes."""
        answer = self._json["answer"]
        return " ".join([self.headline, *answer["evidence"], *(cause["sentence"] for cause in answer["causes"])])

    def names_seconds(self, seconds: float, *, within: float) -> bool:
        """Returns True if a sentence states this time within a relative tolerance."""
        named = re.findall(r"([0-9.]+) (s|ms)\b", self.said())
        return any(abs(float(number) * SECONDS[unit] - seconds) <= within * seconds for number, unit in named)

    def part(self, *names: str) -> float:
        """Returns the sum of these parts of the time split over all connections."""
        split = self._json["time_split"]
        return sum(int(split[f"{name}_ns"]) for name in names) / 1e9

    def waited(self) -> float:
        """Returns the time with commands outstanding."""
        return self.part("server", "server_or_network", "network", "request_transfer", "response_transfer")

    def slowest(self, kind: str = "response_time") -> float:
        """Returns a time of the slowest exchange."""
        first = self._json["slowest"][0]
        return int(first[f"{kind}_ns"] or 0) / 1e9

    def slow_at(self, at: float) -> list[dict[str, Any]]:
        """Returns the slow exchanges that were outstanding at this clock time, slowest first."""
        return [
            slow
            for slow in self._json["slowest"]
            if slow["request_first_ns"] <= at * 1e9 <= slow["request_first_ns"] + slow["response_time_ns"]
        ]

    def slowest_of_all(self) -> dict[str, Any]:
        return dict(self._json["slowest"][0])

    def retransmitted(self) -> int:
        """Returns the number of retransmitted segments."""
        return sum(
            int(connection[direction]["retransmitted"])
            for connection in self._json["connections"]
            for direction in ("to_server", "to_client")
        )

    def round_trip(self) -> float:
        """Returns the longest round trip between client and server."""
        return (
            max(
                (connection["server_round_trip_ns"] or 0) + (connection["client_round_trip_ns"] or 0)
                for connection in self._json["connections"]
            )
            / 1e9
        )

    def unsound(self) -> list[str]:
        """Returns the sums that are inconsistent."""
        wrong = []
        splits = {f"connection {c['flow_id']}": c["time_split"] for c in self._json["connections"]}
        whole = self._json["time_split"]
        for name, split in {**splits, "the whole": whole}.items():
            total = sum(split[f"{part}_ns"] for part in PARTS)
            if total != split["elapsed_ns"]:
                wrong.append(f"the parts of {name} add up to {total} ns instead of {split['elapsed_ns']} ns")
        for connection in self._json["connections"]:
            lasted = connection["last_ns"] - connection["first_ns"]
            if connection["time_split"]["elapsed_ns"] != lasted:
                wrong.append(f"connection {connection['flow_id']} lasted {lasted} ns, and its split says otherwise")
        for key, value in whole.items():
            if value != sum(split[key] for split in splits.values()):
                wrong.append(f"{key} of all connections is not the sum over the connections")
        return wrong

    def table(self) -> str:
        """Returns the time split in one line."""
        parts = [(self.part(part), part) for part in PARTS if self.part(part) >= 0.000_5]
        return ", ".join(f"{part.replace('_', ' ')} {seconds:.3f} s" for seconds, part in sorted(parts, reverse=True))
