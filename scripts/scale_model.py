"""Calculates the resources for analyses and loads much larger than those measured, from measured rates.

python scripts/scale_model.py --divide 300e6 --follow 150e6 --shuffle 0.6
python scripts/scale_model.py --users 10000 --hosts 50
"""

import argparse
from dataclasses import dataclass

DAY = 86_400
TERABYTE = 1e12


@dataclass(frozen=True)
class Rates:
    """Rates measured on one core."""

    divide: float
    """Bytes of captures divided per second."""
    follow: float
    """Bytes of captures per second whose pieces are followed."""
    shuffle: float
    """Bytes of pieces per byte of captures."""
    merge: float = 0.5
    """Seconds to merge a part."""


@dataclass(frozen=True)
class Estimate:
    """Resources for a day of captures."""

    core_hours: float
    """Total of both steps."""
    cores: int
    """Number of cores that process a day of captures in a day."""
    shuffled: float
    """Bytes per second between hosts if these cores are busy all the time."""


def estimate(captured: float, rates: Rates, parts: int = 256) -> Estimate:
    """Returns the resources for this many bytes per day."""
    seconds = captured / rates.divide + captured / rates.follow + parts * rates.merge
    return Estimate(seconds / 3600, int(-(-seconds // DAY)), captured * rates.shuffle / DAY)


def longest_part(captured: float, share: float, rates: Rates) -> float:
    """Returns the seconds for the largest pair of hosts, a lower bound however many hosts there are."""
    return captured * share / rates.follow


@dataclass(frozen=True)
class LoadRates:
    """Rates measured with load from several hosts (method: docs/scale.md)."""

    command: float = 25e-6
    """Client CPU seconds per command."""
    looks: float = 4.0
    """Polls per host and second."""
    ray_call: float = 285e-6
    """Driver CPU seconds per call through Ray."""
    merge: float = 1.1e-3
    """Driver CPU seconds to poll a host and merge its data, per second of a load point."""
    streamed: float = 1.3e3
    """Bytes per second streamed by a host."""
    result: float = 63e3
    """Bytes sent by a host at the end of a load point, without individual commands."""
    exchange: float = 135.0
    """Bytes per individual command if these are kept, and their maximum number."""
    exchanges: int = 250_000


@dataclass(frozen=True)
class LoadEstimate:
    """Resources for a load point."""

    users_a_host: float
    host_cores: float
    """Processors that the load uses on each host."""
    driver_cores: float
    """Processors that merging uses on the driver."""
    streamed: float
    """Bytes per second to the driver."""
    result: float
    """Bytes to the driver at the end of a load point: without individual commands, and with the maximum number kept."""
    result_with_exchanges: float
    connecting: float
    """Seconds until all users have a session."""
    hosts_max: float
    """Number of hosts at which merging keeps one processor of the driver fully busy."""


def load(users: int, hosts: int, per_user: float, connect_rate: float, rates: LoadRates) -> LoadEstimate:
    """Returns the resources for this many users and hosts, with a command rate per user."""
    driver = rates.looks * rates.ray_call + rates.merge
    return LoadEstimate(
        users_a_host=users / hosts,
        host_cores=users / hosts * per_user * rates.command,
        driver_cores=hosts * driver,
        streamed=hosts * rates.streamed,
        result=hosts * rates.result,
        result_with_exchanges=hosts * rates.result + rates.exchanges * rates.exchange,
        connecting=users / connect_rate,
        hosts_max=1 / driver,
    )


def show_load(users: int, hosts: int, connect_rate: float) -> None:
    """Prints a table for users with 1, 10 and 100 commands per second."""
    print("| commands a second of a user | of all | cores a host | cores of the driver | streamed | connecting |")
    print("|---|---|---|---|---|---|")
    rates = LoadRates()
    for per_user in (1, 10, 100):
        found = load(users, hosts, per_user, connect_rate, rates)
        print(
            f"| {per_user} | {users * per_user:,} | {found.host_cores:.2f} | {found.driver_cores:.2f} "
            f"| {found.streamed / 1e3:,.0f} kB/s | {found.connecting:,.0f} s |"
        )
    found = load(users, hosts, 1, connect_rate, rates)
    whole = found.result_with_exchanges
    print(f"At the end of a load point {found.result / 1e6:.1f} MB, with single commands {whole / 1e6:.0f} MB.")
    print(f"One core of the driver merges {found.hosts_max:,.0f} hosts.")


def main() -> None:
    """Prints a table for 1 TB and 100 TB a day, or for a load."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--divide", type=float, help="bytes a second and core that are divided")
    arguments.add_argument("--follow", type=float, help="bytes a second and core that are followed")
    arguments.add_argument("--shuffle", type=float, help="bytes of pieces for a byte of captures")
    arguments.add_argument("--users", type=int, help="users of a load, instead of captures")
    arguments.add_argument("--hosts", type=int, default=50, help="hosts that they work on")
    arguments.add_argument("--connect-rate", type=float, default=100.0, help="sessions that are made a second")
    given = arguments.parse_args()
    if given.users is not None:
        show_load(given.users, given.hosts, given.connect_rate)
        return
    if None in (given.divide, given.follow, given.shuffle):
        arguments.error("--divide, --follow and --shuffle are needed, or --users")
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
