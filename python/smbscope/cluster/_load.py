"""Load from several hosts: a load generator on each, as an actor of Ray, and the driver's way to it."""

import logging
import os
import socket
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import smbscope
from smbscope import _smbscope
from smbscope._smbscope import ArgumentError, RunError

if TYPE_CHECKING:
    from smbscope._api import Bench

ANSWER_SECONDS = 15.0
"""A load host that does not answer for this long is lost. It answers at once, whatever it is doing."""

START_SECONDS = 60.0
"""How long the process of a load generator may take to start."""

Call = Callable[[bytes], bytes]


class Generator:
    """The load generator of a host."""

    def __init__(self) -> None:
        """Make one that waits for its driver."""
        self._host = _smbscope.LoadHost()

    def answer(self, request: bytes) -> bytes:
        """Answer a request of the driver."""
        return self._host.answer(request)

    def process(self) -> int:
        """Its process."""
        return os.getpid()


def hosts(address: str, slots: int) -> list[tuple[str, bool, Call]]:
    """Load generators on all hosts of a cluster: name, whether it is this machine, and the way to it."""
    if not ray.is_initialized():
        _reached(address)
        try:
            ray.init(
                address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=_dashboard(address)
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            message = f"cannot join the Ray cluster {address}: {error}"
            raise RunError(message) from error
    alive = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0]  # type: ignore[no-untyped-call]
    if not alive:
        message = f"the Ray cluster {address} has no host with a processor"
        raise RunError(message)
    names = Counter(str(node["NodeManagerHostname"]) for node in alive)
    here = ray.get_runtime_context().get_node_id()
    started: list[tuple[str, bool, Any]] = []
    for node in sorted(alive, key=lambda node: (str(node["NodeManagerHostname"]), str(node["NodeManagerAddress"]))):
        name = str(node["NodeManagerHostname"])
        if names[name] > 1:
            name = str(node["NodeManagerAddress"])
        for slot in range(slots):
            there = NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
            # One that dies is lost, with its sessions; another in its place would have none of them.
            actor: Any = ray.remote(Generator).options(num_cpus=0, max_restarts=0, scheduling_strategy=there)
            started.append((f"{name}#{slot + 1}" if slots > 1 else name, node["NodeID"] == here, actor.remote()))
    for name, _, actor in started:
        _answered(name, actor.process.remote(), START_SECONDS)
    return [(name, is_here, _way(name, actor)) for name, is_here, actor in started]


def _reached(address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would try for minutes."""
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdigit() or "/" in host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except OSError as error:
        message = f"cannot join the Ray cluster {address}: {error.strerror or error}"
        raise RunError(message) from error


def _dashboard(address: str) -> bool | None:
    return False if address == "local" else None


def _way(name: str, actor: Any) -> Call:
    def call(request: bytes) -> bytes:
        answer = _answered(name, actor.answer.remote(request), ANSWER_SECONDS)
        assert isinstance(answer, bytes)
        return answer

    return call


def _answered(name: str, result: Any, seconds: float) -> object:
    """What an actor answers; an error says why it is lost."""
    try:
        answer: object = ray.get(result, timeout=seconds)
    except ray.exceptions.GetTimeoutError as error:
        message = f"it did not answer for {seconds:.0f} s"
        raise RunError(message) from error
    except ray.exceptions.ActorUnavailableError as error:
        message = "it cannot be reached"
        raise RunError(message) from error
    except ray.exceptions.RayActorError as error:
        message = "its process ended"
        raise RunError(message) from error
    except ray.exceptions.RayError as error:
        message = f"{name}: {' '.join(str(error).split())}"
        raise RunError(message) from error
    return answer


def bench(
    target: str | None = None,
    *,
    address: str | None = None,
    slots: int = 1,
    on_lost_host: str = "continue",
    **options: Any,
) -> "Bench":
    """Load a server with users on the hosts of a Ray cluster: `smbscope.bench` with its users divided among them.

    Without an address it is the Ray that this process uses, or one that is started on this machine. Each host runs
    `slots` load generators. `on_lost_host` is what happens when one is lost: "continue" or "stop". All other options
    are those of `smbscope.bench`.
    """
    if options.keys() & {"cluster"}:
        message = "cluster: the cluster is named by address"
        raise ArgumentError(message)
    return smbscope.bench(target, cluster=at(address), slots=slots, on_lost_host=on_lost_host, **options)


def at(address: str | None) -> str:
    """The cluster that is meant."""
    if address is not None:
        return address
    if ray.is_initialized():
        return str(ray.get_runtime_context().gcs_address)
    return "auto" if os.environ.get("RAY_ADDRESS") else "local"
