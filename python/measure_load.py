"""What load from many hosts costs the driver: bytes that the hosts send, and its processor time. For docs/scale.md.

    python -P python/measure_load.py 50 1000 20

runs 1,000 users for 20 s, divided among 50 hosts; each is a process of this machine and loads the same private server,
every user once a second. The bytes are those of the driver's requests and of the answers.
"""

import multiprocessing
import sys
import time
from multiprocessing.connection import Connection

from smbscope import _smbscope


def serve(pipe: Connection) -> None:
    """Be a host."""
    host = _smbscope.LoadHost()
    while request := pipe.recv_bytes():
        pipe.send_bytes(host.answer(request))


class Way:
    """The way to a host, which counts what passes."""

    def __init__(self, pipe: Connection) -> None:
        """Go by this pipe."""
        self.pipe = pipe
        self.sizes: list[int] = []

    def __call__(self, request: bytes) -> bytes:
        """Ask, and wait for the answer."""
        self.pipe.send_bytes(request)
        answer = self.pipe.recv_bytes()
        self.sizes.append(len(request) + len(answer))
        return answer


def main() -> None:
    """Run, and print a line."""
    hosts, users, seconds = (int(argument) for argument in sys.argv[1:4])
    ways: list[Way] = []
    context = multiprocessing.get_context("spawn")

    def start(_address: str, _slots: int) -> list[tuple[str, bool, Way]]:
        for _ in range(hosts):
            here, there = context.Pipe()
            context.Process(target=serve, args=(there,), daemon=True).start()
            ways.append(Way(here))
        return [(f"host{number}", True, way) for number, way in enumerate(ways)]

    line = ["bench", "--cluster", "x", "--users", str(users), "--duration", f"{seconds}s", "--warmup", "0s", "-q"]
    line += ["--think", "1s", "--connect-rate", "500", "--workload", "echo", "--threads", "1", *sys.argv[4:]]
    before = time.process_time()
    status = _smbscope.main([sys.executable, "-P", "-m", "smbscope"], line, start)
    used = time.process_time() - before
    streamed = [size for way in ways for size in way.sizes]
    largest = [max(way.sizes[12:]) for way in ways]
    print(
        f"status {status}: {hosts} hosts, {users} users: {sum(streamed) / hosts / 1e3:.0f} kB a host in all, of which "
        f"{sum(largest) / hosts / 1e3:.0f} kB at the end; {len(streamed) / hosts:.0f} calls a host; driver {used:.2f} s"
    )


if __name__ == "__main__":
    main()
