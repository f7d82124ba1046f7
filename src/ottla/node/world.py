"""The doors a node is given: the machine's own, or a simulator's."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.world.clock import Clock, RealClock
from ottla.world.disk import Disk, RealDisk
from ottla.world.entropy import Entropy, RealEntropy
from ottla.world.network import Network, RealNetwork
from ottla.world.worker import ThreadWorker, Worker


@dataclass(frozen=True, slots=True)
class World:
    """Clock, disk, network and entropy, the loop's timers, threads by name, and where to report."""

    clock: Clock
    disk: Disk
    network: Network
    entropy: Entropy
    timers: Any
    worker: Callable[[str], Worker]
    report: Callable[[str], None]


def real_world(loop: asyncio.AbstractEventLoop) -> World:
    """The world as it is."""
    clock = RealClock()

    def report(text: str) -> None:
        print(f"{stamp(clock.now_ms())} {text}", file=sys.stderr, flush=True)  # noqa: T201

    return World(
        clock,
        RealDisk(),
        RealNetwork(),
        RealEntropy(),
        loop,
        lambda name: ThreadWorker(loop, name),
        report,
    )


def stamp(now_ms: int) -> str:
    """A moment as people read it, in UTC."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
