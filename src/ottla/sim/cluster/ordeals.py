"""Perils of several steps, each of which waits for what it needs: the ways by which records were once lost elsewhere.

What chance would bring about in one run of a thousand happens here in every run, or in most. An ordeal whose
conditions do not come about does nothing more, and leaves nothing behind that healing does not end.
"""

import asyncio
from collections.abc import Callable, Sequence

from ottla.broker.internal_topics import OFFSETS, TRANSACTIONS
from ottla.client.errors import ClientError
from ottla.sim.cluster.fleet import Client, Fleet
from ottla.sim.cluster.history import DONE, UNDONE, Place, Transacted
from ottla.sim.cluster.machine import Machine, host_of
from ottla.sim.cluster.perils import Peril, Strike
from ottla.sim.cluster.workloads.copy import Copying
from ottla.sim.cluster.workloads.workload import LOG, OUT, PARTITIONS, Workload

_TURN_S = 0.004
_PATIENCE_S = 20.0
_LEAD_S_MAX = 2.0
_AHEAD_RECORDS = 2
_SLOW_S = 1.0
_BEHIND_S = 0.3
_MARKERS_S = 0.8
_STALE_S = 4.0
_LATE_S = 10.0  # no client is as patient
_SENT_S = 0.2

Link = tuple[str, str]


async def _until(condition: Callable[[], bool], seconds_max: float = _PATIENCE_S) -> bool:
    """Wait until something is so; say whether it is."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds_max
    while not condition():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(_TURN_S)
    return True


def _start(machine: Machine) -> None:
    if not machine.is_up:
        machine.start()


def _succession(fleet: Fleet, place: Place) -> tuple[int, ...]:
    """Who leads a partition, and who leads it next; nobody when nobody does."""
    leader = fleet.leader_of(place)
    leadership = None if leader is None else fleet.replicas(place)[leader].leadership
    if leader is None or leadership is None:
        return ()
    return (leader, *(id for id in leadership.replicas if id != leader))


async def heir_behind(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Two quick elections, and who leads between them has less of the first leader's records than the third (KIP-279).

    So the third leads with records that the heir never had, and the heir comes back with records of its own epoch in
    their place. Where the two logs branched, neither's last epoch tells.
    """
    await _two_elections(fleet, peril, heir_is_behind=True)


async def third_behind(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Two quick elections, and who leads last never gets what the heir had, and could not know to be committed."""
    await _two_elections(fleet, peril, heir_is_behind=False)


async def _two_elections(fleet: Fleet, peril: Peril, *, heir_is_behind: bool) -> None:
    """A leader dies, and its heir as soon as it has written something."""
    fabric = fleet.fabric
    await _until(lambda: fleet.is_whole(fleet.places()))
    orders = {place: _succession(fleet, place) for place in ((LOG, index) for index in range(PARTITIONS))}
    # Best is that the third has the controller: else clients hear of the heir late, if they do.
    place = max(orders, key=lambda place: fleet.controller() in orders[place][2:])
    if not orders[place]:
        return
    first, heir, third = orders[place]
    behind, ahead = (heir, third) if heir_is_behind else (third, heir)

    def end_of(id: int) -> int:
        found = fleet.replicas(place).get(id)
        return -1 if found is None else found.log.end_offset

    def has_written(id: int) -> bool:
        leading = fleet.replicas(place).get(id)
        known = None if leading is None else leading.leadership
        return leading is not None and known is not None and leading.log.end_offset > known.epoch_start_offset

    fabric.cut(host_of(first), host_of(behind))
    if not await _until(lambda: end_of(ahead) >= end_of(behind) + _AHEAD_RECORDS):
        return
    fabric.slow[host_of(heir), host_of(third)] = _SLOW_S
    fleet.machines[first].kill()
    if not await _until(lambda: fleet.leader_of(place) == heir):
        return
    for id in (first, third):
        fabric.cut(host_of(heir), host_of(id))  # before it can say where the logs branch
    fabric.heal(host_of(first), host_of(behind))
    _start(fleet.machines[first])
    await _until(lambda: has_written(heir), _LEAD_S_MAX)
    fabric.reset(host_of(heir))
    fleet.machines[heir].kill()
    fabric.slow.pop((host_of(heir), host_of(third)), None)
    for id in (first, third):
        fabric.heal(host_of(heir), host_of(id))
    if await _until(lambda: fleet.leader_of(place) == third):
        await _until(lambda: has_written(third))
    await asyncio.sleep(peril.lasts_s)
    _start(fleet.machines[heir])


async def last_standing(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """The followers stop in order, and the leader, alone by then, loses power and what it had not synced (KIP-966).

    It comes back first; the second of the followers, which left when it was one of two, has all that was acknowledged.
    """
    await _until(lambda: fleet.is_whole(fleet.places()))
    leader = fleet.leader_of((LOG, 0))
    if leader is None:
        return
    others = [id for id in fleet.machines if id != leader]
    if peril.chance < 0.5:
        others.reverse()
    link = (host_of(leader), host_of(others[-1]))

    def is_ahead() -> bool:
        """Whether the leader is alone in sync, and has what nobody else has."""
        found = fleet.replicas((LOG, 0))
        led = found[leader].leadership if leader in found else None
        return (
            led is not None
            and len(led.isr) == 1
            and (others[-1] not in found or found[leader].log.end_offset > found[others[-1]].log.end_offset)
        )

    for id in others:
        machine = fleet.machines[id]
        if id == others[-1]:
            fleet.fabric.slow[link] = _BEHIND_S
            await asyncio.sleep(2 * _BEHIND_S)
        machine.stop_in_order()
        await _until(lambda machine=machine: not machine.is_up or is_ahead())  # type: ignore[misc]
    fleet.fabric.cut(*link)
    await _until(lambda: not fleet.machines[others[-1]].is_up)
    await asyncio.sleep(peril.chance)
    fleet.machines[leader].lose_power(fleet.disk_entropy)
    fleet.fabric.heal_all()
    await asyncio.sleep(peril.lasts_s)
    for id in (leader, others[0]):
        _start(fleet.machines[id])
    await asyncio.sleep(2.0 + peril.lasts_s)
    _start(fleet.machines[others[-1]])


async def controller_missed(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A leader and the controller hear nothing of each other, so long that the controller's own replica leads next.

    It has nothing of what the leader and the other follower have written meanwhile (KIP-497).
    """
    controller = fleet.controller()
    orders = [_succession(fleet, (LOG, index)) for index in range(PARTITIONS)]
    leader = next((order[0] for order in orders if order[1:2] == (controller,)), None)
    if leader is None or controller is None:
        return
    fleet.fabric.cut(host_of(leader), host_of(controller))
    fleet.fabric.cut(host_of(controller), host_of(leader))
    await asyncio.sleep(peril.lasts_s)
    fleet.fabric.heal(host_of(leader), host_of(controller))
    fleet.fabric.heal(host_of(controller), host_of(leader))


async def newcomers(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Copiers join while the word that a transaction is over takes long to reach their group's coordinator."""
    teller, hearer = fleet.leader_of((TRANSACTIONS.name, 0)), fleet.leader_of((OFFSETS.name, 0))
    copying = [each for each in workloads if isinstance(each, Copying)]
    if teller is None or hearer is None or teller == hearer or not copying:
        return
    fleet.fabric.slow[host_of(teller), host_of(hearer)] = _MARKERS_S
    for number in range(7, 10):
        copying[0].revive(f"copier-{number}")
        await asyncio.sleep(peril.lasts_s)
    fleet.fabric.slow.pop((host_of(teller), host_of(hearer)), None)


async def late_marker(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """The marker of an aborted transaction comes twice, and once so late that the next one is open (redpanda#3232)."""
    coordinator = fleet.leader_of((TRANSACTIONS.name, 0))
    places = [(OUT, index) for index in range(PARTITIONS)]
    place = next((each for each in places if fleet.leader_of(each) not in (None, coordinator)), None)
    leader = None if place is None else fleet.leader_of(place)
    if coordinator is None or place is None or leader is None:
        return
    link = (host_of(coordinator), host_of(leader))
    client = fleet.client("scribe")
    await _ended(client.begin(_write(fleet, client, place, link, _STALE_S, (True, False, True))))


async def late_end(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """The word that commits a transaction comes twice, and once so late that the next one is open (KAFKA-17754)."""
    coordinator = fleet.leader_of((TRANSACTIONS.name, 0))
    if coordinator is None:
        return
    client = fleet.client("scribe")
    link = (client.host, host_of(coordinator))
    await _ended(client.begin(_write(fleet, client, (OUT, 0), link, _LATE_S, (True, True, False))))


async def _ended(task: "asyncio.Task[None]") -> None:
    while not task.done():  # noqa: ASYNC110  # it is of another process
        await asyncio.sleep(_TURN_S)


async def _write(
    fleet: Fleet, client: Client, place: Place, link: Link, late_s: float, ends: tuple[bool, bool, bool]
) -> None:
    """Write three transactions, and end each as `ends` says; what ends the second comes late, when the third is open.

    Whoever sent it loses patience and sends it again, over a link that is well by then.
    """
    try:
        async with client.producer(transactional_id="scribe", transaction_timeout_ms=40_000) as producer:
            await producer.init_transactions()
            for number, is_committed in enumerate(ends):
                transaction = Transacted(client.process.name)
                fleet.history.transactions.append(transaction)
                producer.begin_transaction()
                for word in (b"one", b"two"):
                    value = b"%d|scribe %d %s" % (number, number, word)
                    transaction.values.append((place, value))
                    await producer.send(place[0], value, partition=place[1])
                await producer.flush()
                if number == 1:
                    fleet.fabric.slow[link] = late_s
                    fleet.fabric.at(fleet.timeline.now + _SENT_S, fleet.fabric.slow.pop, link, None)
                elif number == 2:
                    await asyncio.sleep(late_s)
                if is_committed:
                    await producer.commit_transaction()
                    transaction.outcome = DONE
                else:
                    transaction.outcome = UNDONE  # whatever is said to it: nobody has asked for anything else
                    await producer.abort_transaction()
    except ClientError as error:
        client.note(f"the scribe gives up: {error}")


ORDEALS: dict[str, Strike] = {
    "two elections, the heir behind": heir_behind,
    "two elections, the third behind": third_behind,
    "last replica standing": last_standing,
    "missing of the controller": controller_missed,
    "newcomers": newcomers,
    "late marker": late_marker,
    "late end": late_end,
}
