"""What an analysis or a load much larger than those measured takes on a cluster, by arithmetic from measured rates.

python scripts/scale_model.py --divide 300e6 --follow 150e6 --shuffle 0.6
python scripts/scale_model.py --users 10000 --hosts 50
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


@dataclass(frozen=True)
class LoadRates:
    """What was measured of load from several hosts; docs/scale.md says how."""

    command: float = 25e-6
    """Seconds of a processor that a command costs the client."""
    looks: float = 4.0
    """How often a second a host is asked what is new."""
    ray_call: float = 285e-6
    """Seconds of the driver's processor for a call through Ray."""
    merge: float = 1.1e-3
    """Seconds of the driver's processor to ask a host and to merge what it tells, for each second of a load point."""
    streamed: float = 1.3e3
    """Bytes a second that a host streams."""
    result: float = 63e3
    """Bytes that a host sends at the end of a load point, without single commands."""
    exchange: float = 135.0
    """Bytes of a single command, where they are kept, and how many are at most."""
    exchanges: int = 250_000


@dataclass(frozen=True)
class LoadEstimate:
    """What a load point takes."""

    users_a_host: float
    host_cores: float
    """Processors that the load takes on each host."""
    driver_cores: float
    """Processors that merging takes on the driver."""
    streamed: float
    """Bytes a second to the driver."""
    result: float
    """Bytes to the driver at the end of a load point: without single commands, and with as many as are kept."""
    result_with_exchanges: float
    connecting: float
    """Seconds until all users have a session."""
    hosts_max: float
    """Hosts at which one processor of the driver is busy with merging all the time."""


def load(users: int, hosts: int, per_user: float, connect_rate: float, rates: LoadRates) -> LoadEstimate:
    """What so many users on so many hosts take, each with so many commands a second."""
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
    """Print a table for users with 1, 10 and 100 commands a second."""
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
    """Print a table for 1 TB and 100 TB a day, or for a load."""
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
