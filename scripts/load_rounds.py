"""Measures the load generator in rounds, and shows each figure as a median with its spread.

A single measurement of a second depends on what else the machine did in that second. So all cases of a table are
measured once per round, in an order that varies, and longer disturbances affect all of them. Figures dominated by noise
are not shown, and differences within the noise are marked.
"""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

# Rounds per table: the minimum for a spread, and the usual number.
ROUNDS_MIN = 3
ROUNDS_USUAL = 5
# Longest measurement in seconds that a larger budget can buy.
SECONDS_MAX = 10
# Largest uncertainty (half of the range, relative to the median) of a figure that is shown.
NOISE = 0.15


class BudgetError(Exception):
    """The budget is too small for the minimum number of rounds."""


@dataclass(frozen=True)
class Cost:
    """Cost of a round of a table."""

    cases: int
    # Additional seconds per case: connecting, creating files, warming up.
    beside: float
    # Shortest useful measurement in seconds.
    least: float = 1.0

    def of(self, rounds: int, seconds: float) -> float:
        return self.cases * rounds * (self.beside + max(seconds, self.least))


@dataclass(frozen=True)
class Plan:
    """Number and duration of the measurements of each case."""

    rounds: int
    seconds: int


def plan(budget_s: float, costs: Sequence[Cost]) -> Plan:
    """Returns the most rounds that fit the budget (up to the usual number), then the longest measurements."""

    def total(rounds: int, seconds: int) -> float:
        return sum(cost.of(rounds, seconds) for cost in costs)

    for rounds in range(ROUNDS_USUAL, ROUNDS_MIN - 1, -1):
        fitting = [seconds for seconds in range(1, SECONDS_MAX + 1) if total(rounds, seconds) <= budget_s]
        if fitting:
            return Plan(rounds, fitting[-1])
    raise BudgetError(f"{ROUNDS_MIN} rounds take about {total(ROUNDS_MIN, 1) / 60:.0f} min: give more, or fewer parts")


def duration(text: str) -> float:
    """Parses a duration such as `90s`, `10m` or `1h` into seconds."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.replace(".", "", 1).isdigit():
        raise ValueError(f"expected a time such as 90s, 10m or 1h, and found {text!r}")
    return float(number) * units[unit]


def order(cases: int, number: int) -> list[int]:
    """Returns the order of the cases in a round. It varies by round and is the same in every run."""
    indices = list(range(cases))
    random.Random(number).shuffle(indices)
    return indices


Figures = Mapping[str, float]


@dataclass
class Case:
    """A row of a table."""

    labels: list[str]
    # Measures the figures once. Returns None if the server can't do it.
    measure: Callable[[], Figures | None]
    # Rows of a group are compared with its first row.
    group: str = ""
    measured: list[Figures] = field(default_factory=list)
    impossible: bool = False


@dataclass(frozen=True)
class Column:
    """A column of figures."""

    heading: str
    key: str
    digits: int = 0


def measure(cases: Sequence[Case], rounds: int, say: Callable[[str], None]) -> None:
    """Measures all cases in turns."""
    for number in range(rounds):
        for place, index in enumerate(order(len(cases), number), 1):
            case = cases[index]
            if case.impossible:
                continue
            say(f"round {number + 1}/{rounds}, {place}/{len(cases)}: {', '.join(case.labels)}")
            figures = case.measure()
            if figures is None:
                case.impossible = True
            else:
                case.measured.append(figures)


@dataclass(frozen=True)
class Spread:
    """Median and range of a figure over several rounds."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> "Spread":
        return Spread(statistics.median(values), min(values), max(values))

    @property
    def uncertainty(self) -> float:
        """Half of the range, relative to the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0

    def overlaps(self, other: "Spread") -> bool:
        """Returns True if the ranges overlap."""
        return self.low <= other.high and other.low <= self.high

    def cell(self, digits: int, base: "Spread | None" = None) -> str:
        """Formats the median and its spread, or only the range of a noisy figure. `≈` marks an overlap with the
        base."""
        if self.uncertainty > NOISE:
            return f"noise ({self.low:,.{digits}f} – {self.high:,.{digits}f})"
        same = " ≈" if base is not None and self.overlaps(base) else ""
        return f"{self.median:,.{digits}f} ±{self.uncertainty:.0%}{same}"


def rows(cases: Sequence[Case], columns: Sequence[Column]) -> list[list[str]]:
    """Returns the cells of a table."""
    first: dict[str, Case] = {}
    made = []
    for case in cases:
        base = first.setdefault(case.group, case) if case.group else case
        cells = list(case.labels)
        for column in columns:
            spread = spread_of(case, column)
            if case.impossible or spread is None:
                cells.append("not on this server" if case.impossible else "–")
            else:
                cells.append(spread.cell(column.digits, None if base is case else spread_of(base, column)))
        made.append(cells)
    return made


def spread_of(case: Case, column: Column) -> Spread | None:
    values = [figures[column.key] for figures in case.measured if column.key in figures]
    return Spread.of(values) if len(values) >= ROUNDS_MIN else None
