#!/usr/bin/env python3
"""A wire with delay and loss: carries Ethernet frames between two interfaces, in user space.

    scripts/wire.py INTERFACE INTERFACE [--delay-ms MS] [--loss SHARE]

Every frame is handed on MS later, in order; of the frames with data, SHARE is lost, in each direction, by a generator
with a fixed seed. It runs until it is ended. `tc … netem` does the same where the kernel has it, which is not
everywhere.
"""

import argparse
import random
import select
import socket
import sys
import time
from collections import deque

# From <linux/if_ether.h>: frames of every protocol.
ETH_P_ALL = 0x0003
FRAME_MAX = 65_700
# Frames up to this size hold no data of TCP.
BARE_MAX = 90


def endpoint(interface: str) -> socket.socket:
    """A socket that takes and hands on whole frames."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
    made.bind((interface, 0))
    made.setblocking(False)
    return made


class Direction:
    """From one interface to the other."""

    def __init__(self, source: socket.socket, target: socket.socket, *, delay_s: float, loss: float, seed: int) -> None:
        self.source = source
        self.target = target
        self.delay_s = delay_s
        self.loss = loss
        self.chance = random.Random(seed)
        self.under_way: deque[tuple[float, bytes]] = deque()

    def take(self) -> None:
        """Takes what has come in."""
        while True:
            try:
                frame, address = self.source.recvfrom(FRAME_MAX)
            except BlockingIOError:
                return
            if address[2] == socket.PACKET_OUTGOING:
                continue
            if len(frame) > BARE_MAX and self.chance.random() < self.loss:
                continue
            self.under_way.append((time.monotonic() + self.delay_s, frame))

    def hand_on(self) -> None:
        """Hands on what has been under way for long enough."""
        now = time.monotonic()
        while self.under_way and self.under_way[0][0] <= now:
            try:
                self.target.send(self.under_way.popleft()[1])
            except OSError:
                # The other end is going away, or its queue is full: a lost frame, as on any wire.
                continue

    def next_due(self) -> float | None:
        return self.under_way[0][0] if self.under_way else None


def carry(first: str, second: str, *, delay_s: float, loss: float) -> None:
    """Carries frames both ways, for ever."""
    ends = endpoint(first), endpoint(second)
    directions = [
        Direction(ends[0], ends[1], delay_s=delay_s, loss=loss, seed=1),
        Direction(ends[1], ends[0], delay_s=delay_s, loss=loss, seed=2),
    ]
    print("ready", flush=True)
    while True:
        due = [time_due for direction in directions if (time_due := direction.next_due()) is not None]
        timeout = max(0.0, min(due) - time.monotonic()) if due else None
        select.select(ends, [], [], timeout)
        for direction in directions:
            direction.take()
            direction.hand_on()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("interfaces", nargs=2, metavar="INTERFACE")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="of each frame, each way")
    parser.add_argument("--loss", type=float, default=0.0, metavar="SHARE", help="of the frames with data, each way")
    arguments = parser.parse_args()
    carry(*arguments.interfaces, delay_s=arguments.delay_ms / 1_000, loss=arguments.loss)
    return 0


if __name__ == "__main__":
    sys.exit(main())
