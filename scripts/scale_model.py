"""How long an analysis of much more data than was measured takes on a cluster, by plain arithmetic from measured rates.

python scripts/scale_model.py --divide 300e6 --follow 150e6 --shuffle 0.6
"""

import argparse
from dataclasses import dataclass

DAY = 86_400
TERABYTE = 1e12


@dataclass(frozen=True)
class Rates:
    """What was measured on one core."""

    divide: float
    """Bytes of captures a second that are divided."""
    follow: float
    """Bytes of captures a second whose pieces are followed."""
    shuffle: float
    """Bytes of pieces for each byte of captures."""
    merge: float = 0.5
    """Seconds to merge a part."""


@dataclass(frozen=True)
class Estimate:
    """What a day of captures takes."""

    core_hours: float
    """Of both steps."""
    cores: int
    """That keep up with a day in a day."""
    shuffled: float
    """Bytes a second between hosts, where those cores are at work all the time."""


def estimate(captured: float, rates: Rates, parts: int = 256) -> Estimate:
    """What so many bytes a day take."""
    seconds = captured / rates.divide + captured / rates.follow + parts * rates.merge
    return Estimate(seconds / 3600, int(-(-seconds // DAY)), captured * rates.shuffle / DAY)


def longest_part(captured: float, share: float, rates: Rates) -> float:
    """Seconds that the largest pair of hosts takes by itself: no number of hosts makes it faster."""
    return captured * share / rates.follow


def main() -> None:
    """Print a table for 1 TB and 100 TB a day."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--divide", type=float, required=True, help="bytes a second and core that are divided")
    arguments.add_argument("--follow", type=float, required=True, help="bytes a second and core that are followed")
    arguments.add_argument("--shuffle", type=float, required=True, help="bytes of pieces for a byte of captures")
    given = arguments.parse_args()
    rates = Rates(given.divide, given.follow, given.shuffle)
    print("| captures a day | core hours | cores that keep up | shuffled | pair of hosts with 1% of all |")
    print("|---|---|---|---|---|")
    for terabytes in (1, 100):
        captured = terabytes * TERABYTE
        day = estimate(captured, rates)
        pair = longest_part(captured, 0.01, rates)
        print(
            f"| {terabytes} TB | {day.core_hours:,.1f} | {day.cores} | {day.shuffled / 1e6:,.0f} MB/s | {pair:,.0f} s |"
        )


if __name__ == "__main__":
    main()
