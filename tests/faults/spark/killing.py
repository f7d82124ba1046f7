"""Who is killed, and when: each kind waits for its moment of a transaction, strikes with -9, and has a successor."""

import contextlib
import itertools
import os
import random
import signal
from collections.abc import Callable, Sequence

from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import ProduceRequest
from tests.faults.spark.arena import Arena
from tests.faults.spark.gate import Caught, Moment, Trap
from tests.faults.spark.owner import owner
from tests.peers import process

Kill = Callable[[Arena, random.Random], None]


def driver_before(arena: Arena, chance: random.Random) -> None:
    """The driver dies as it commits; the broker never hears of it."""
    _driver(arena, chance, Moment.BEFORE)


def driver_meanwhile(arena: Arena, chance: random.Random) -> None:
    """The driver dies while the broker commits."""
    _driver(arena, chance, Moment.SENT)


def driver_after(arena: Arena, chance: random.Random) -> None:
    """The driver dies before it knows that the broker has committed, and before Spark writes it down."""
    _driver(arena, chance, Moment.ANSWERED)


def driver_late(arena: Arena, _: random.Random) -> None:
    """The driver dies, and its commit reaches the broker just before a successor's first word."""
    _late(arena, Moment.BEFORE)


def driver_too_late(arena: Arena, _: random.Random) -> None:
    """The same, when the successor's first word was answered: nothing may be committed by it any more."""
    _late(arena, Moment.ANSWERED)


def worker(arena: Arena, chance: random.Random) -> None:
    """A process that reads records dies in the midst of it: one that runs a task, or the one that plans them."""

    def is_ours(client_port: int) -> bool:
        return owner(client_port, arena.driver.family()) is not None

    moment, nth = chance.choice(list(Moment)), chance.randint(1, 5)
    arena.strike(Trap(FetchRequest, moment, _owner(arena), nth=nth, wanted=is_ours))


def workers(arena: Arena, chance: random.Random) -> None:
    """All processes of Python that run tasks die at once, those that read and those that write."""

    def is_ours(client_port: int) -> bool:
        return owner(client_port, arena.driver.family()) is not None

    def kill(_: Caught) -> None:
        for pid in arena.driver.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    arena.strike(
        Trap(FetchRequest, chance.choice(list(Moment)), kill, nth=chance.randint(1, 5), wanted=is_ours)
    )


def executor(arena: Arena, chance: random.Random) -> None:
    """The executor of a cluster dies with all of its processes, as one of its tasks reads its records."""
    assert arena.cluster is not None

    def families() -> dict[int, list[int]]:
        return {pid: process.family(pid) for pid in arena.cluster.executors()}  # type: ignore[union-attr]

    def is_ours(client_port: int) -> bool:
        return owner(client_port, itertools.chain(*families().values())) is not None

    def kill(caught: Caught) -> None:
        for family in families().values():
            if owner(caught.client_port, family) is not None:
                for pid in family:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    moment, nth = chance.choice(list(Moment)), chance.randint(1, 5)
    arena.strike(Trap(FetchRequest, moment, kill, nth=nth, wanted=is_ours))


def writer(arena: Arena, chance: random.Random) -> None:
    """The driver's process that writes a batch dies in the midst of it, and the driver lives on."""
    request = chance.choice([ProduceRequest, EndTxnRequest])
    arena.strike(Trap(request, chance.choice(list(Moment)), _owner(arena)))


def broker_midway(arena: Arena, chance: random.Random) -> None:
    """The broker dies when it has some of a batch's rows, or was about to get them."""
    moment, nth = chance.choice(list(Moment)), chance.randint(1, 3)
    arena.strike(Trap(ProduceRequest, moment, lambda _: arena.kill_broker(), nth=nth))


def broker_before(arena: Arena, _: random.Random) -> None:
    """The broker dies before it hears of the commit."""
    arena.strike(Trap(EndTxnRequest, Moment.BEFORE, lambda _: arena.kill_broker()))


def broker_meanwhile(arena: Arena, _: random.Random) -> None:
    """The broker dies while it commits."""
    arena.strike(Trap(EndTxnRequest, Moment.SENT, lambda _: arena.kill_broker()))


def broker_after(arena: Arena, _: random.Random) -> None:
    """The broker has committed and dies; the driver never heard of it."""
    arena.strike(Trap(EndTxnRequest, Moment.ANSWERED, lambda _: arena.kill_broker()))


def _owner(arena: Arena) -> Callable[[Caught], None]:
    def kill(caught: Caught) -> None:
        pid = owner(caught.client_port, arena.driver.family())
        assert pid is not None, "nobody has this connection"
        os.kill(pid, signal.SIGKILL)

    return kill


def _driver(arena: Arena, chance: random.Random, moment: Moment) -> None:
    kill = chance.choice([arena.kill_driver, arena.kill_java])
    arena.strike(Trap(EndTxnRequest, moment, lambda _: kill()))
    arena.succeed()


def _late(arena: Arena, moment: Moment) -> None:
    held: list[Caught] = []

    def kill(caught: Caught) -> None:
        held.append(caught)
        arena.kill_driver()

    def deliver(_: Caught) -> None:
        assert arena.gate.send_late(held[0].frame), "a late commit was not answered"

    arena.strike(Trap(EndTxnRequest, Moment.BEFORE, kill))
    later = arena.gate.set(Trap(InitProducerIdRequest, moment, deliver, held[0].transactional_id, cut=False))
    arena.succeed()
    arena.wait(later)


DRIVER_KILLS: tuple[Kill, ...] = (
    driver_before,
    driver_meanwhile,
    driver_after,
    driver_late,
    driver_too_late,
)
OTHER_KILLS: tuple[Kill, ...] = (
    worker,
    workers,
    writer,
    broker_before,
    broker_meanwhile,
    broker_midway,
    broker_after,
)


# Apache Kafka does not survive being killed as it commits: see `Arena.kill_broker`.
KILLS_FOR_KAFKA = tuple(
    each for each in DRIVER_KILLS + OTHER_KILLS if each not in (broker_meanwhile, broker_after)
)


def plan(count: int, chance: random.Random, kinds: Sequence[Kill] = DRIVER_KILLS + OTHER_KILLS) -> list[Kill]:
    """So many kills, every kind about as often as any other, in an order of chance."""
    chosen = [kinds[n % len(kinds)] for n in range(count)]
    chance.shuffle(chosen)
    return chosen
