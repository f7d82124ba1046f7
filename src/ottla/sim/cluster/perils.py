"""What may happen to a cluster, one function a peril. Each is given its victim, does its harm, and mends it in time.

A victim is found when the peril strikes: whoever leads a partition or the quorum then, or a node by its number.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ottla.broker.internal_topics import TRANSACTIONS
from ottla.sim.cluster.fleet import NODES, Fleet
from ottla.sim.cluster.machine import Machine, host_of
from ottla.sim.cluster.workloads.workload import LOG, PARTITIONS, Workload

CONTROLLER = 0
_PATIENCE_TURNS = 500
_LONGER_THAN_SESSIONS_S = 4.0
_ROOM_BYTES_MAX = 6_000
_JUMP_MS_MAX = 3_600_000
_SYNC_S_MAX = 1.5
_WRITE_S_MAX = 0.05
_ANSWER_BYTES = 60
LEADER = -1  # of the first partition that producers write to
COORDINATOR = -2  # of transactions


@dataclass(frozen=True, slots=True)
class Peril:
    """One thing that goes wrong, when, to whom, and for how long."""

    name: str
    kind: str
    at_s: float
    lasts_s: float
    victim: int
    chance: float  # for what the kind leaves open

    def __str__(self) -> str:
        names = {CONTROLLER: "the controller", LEADER: "a leader", COORDINATOR: "a coordinator"}
        whom = names.get(self.victim, host_of(self.victim))
        return f"{self.name}: {self.kind} of {whom} at {self.at_s:.2f} s for {self.lasts_s:.2f} s"


Strike = Callable[[Fleet, Peril, Sequence[Workload]], Awaitable[None]]


def find(fleet: Fleet, peril: Peril) -> Machine:
    """The machine that a peril strikes."""
    found: int | None = peril.victim
    if peril.victim == CONTROLLER:
        found = fleet.controller()
    elif peril.victim == LEADER:
        found = fleet.leader_of((LOG, 0))
    elif peril.victim == COORDINATOR:
        found = fleet.leader_of((TRANSACTIONS.name, 0))
    return fleet.machines[found if found in fleet.machines else 1 + int(peril.chance * len(NODES))]


def _start(machine: Machine) -> None:
    if not machine.is_up:
        machine.start()


async def kill(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Kill -9, and start again later."""
    machine = find(fleet, peril)
    machine.kill()
    await asyncio.sleep(peril.lasts_s)
    _start(machine)


async def power(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """One machine loses its power, while all others are well: that much the cluster has to bear."""
    for _ in range(_PATIENCE_TURNS):
        if fleet.is_whole(fleet.places()):
            break
        await asyncio.sleep(0.04)
    machine = find(fleet, peril)
    if machine.is_up and len(fleet.nodes()) == len(NODES):
        machine.lose_power(fleet.disk_entropy)
    await asyncio.sleep(peril.lasts_s)
    _start(machine)


async def blackout(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """All machines lose their power at once, and come back one after the other."""
    for machine in fleet.machines.values():
        if machine.is_up:
            machine.lose_power(fleet.disk_entropy)
    order = sorted(NODES, key=lambda number: (number * 7 + int(peril.chance * 997)) % 5)
    for id in order:
        await asyncio.sleep(peril.lasts_s / 3)
        _start(fleet.machines[id])


async def kill_all(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """All processes are killed at once."""
    for machine in fleet.machines.values():
        machine.kill()
    await asyncio.sleep(peril.lasts_s)
    for machine in fleet.machines.values():
        _start(machine)


async def kill_in_turn(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A leader is killed, and its successor too as soon as it leads; the first one is back by then."""
    place = (LOG, int(peril.chance * PARTITIONS))
    first = fleet.leader_of(place)
    if first is None:
        return
    fleet.machines[first].kill()
    await asyncio.sleep(peril.lasts_s * 0.1)
    _start(fleet.machines[first])
    for _ in range(_PATIENCE_TURNS):
        second = fleet.leader_of(place)
        if second not in (None, first):
            await asyncio.sleep(peril.chance * 10 % 1 * 0.02)
            fleet.machines[second].kill()
            await asyncio.sleep(peril.lasts_s)
            _start(fleet.machines[second])
            return
        await asyncio.sleep(0.003)


async def restart(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A stop in order, and a start."""
    machine = find(fleet, peril)
    if not machine.is_serving or machine.process is None or machine.process.is_paused:
        return
    process = machine.process
    stopping = machine.stop_in_order()
    while not stopping.done() and not process.is_dead:  # noqa: ASYNC110  # one that dies says nothing
        await asyncio.sleep(0.05)
    await asyncio.sleep(peril.lasts_s)
    _start(machine)


async def pause(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """SIGSTOP, and later SIGCONT."""
    machine = find(fleet, peril)
    process = machine.process
    machine.pause()
    await asyncio.sleep(peril.lasts_s)
    if machine.process is process:
        machine.go_on()


async def isolate(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A node hears nothing of the other nodes, nor they of it; clients reach all of them."""
    machine = find(fleet, peril)
    others = [host_of(id) for id in NODES if id != machine.id]
    links = [(machine.host, each) for each in others] + [(each, machine.host) for each in others]
    await _cut(fleet, peril, links)


async def cut(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Nothing passes between a node and one other."""
    machine = find(fleet, peril)
    other = _other(machine.id, peril)
    await _cut(fleet, peril, [(machine.host, other), (other, machine.host)])


async def one_way_cut(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Nothing passes from a node to the others, or to one of them, though their word reaches it; or the reverse."""
    machine = find(fleet, peril)
    share = peril.chance * 4 % 1
    targets = (
        [_other(machine.id, peril)] if share < 0.5 else [host_of(id) for id in NODES if id != machine.id]
    )
    links = [(machine.host, each) for each in targets]
    await _cut(fleet, peril, links if peril.chance < 0.5 else [(b, a) for a, b in links])


async def clients_cut(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Clients and a node hear nothing of each other, or the node nothing of them."""
    machine = find(fleet, peril)
    hosts = [client.host for client in fleet.clients.values()]
    if peril.chance < 0.5:
        await _cut(fleet, peril, [(each, machine.host) for each in hosts])
        return
    await _cut(
        fleet, peril, [(machine.host, each) for each in hosts] + [(each, machine.host) for each in hosts]
    )


async def slow(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Whatever a node says takes long."""
    machine, fabric = find(fleet, peril), fleet.fabric
    delay_s = 0.02 + peril.chance * 0.8
    fleet.note("the network", f"what {machine.host} says takes {delay_s:.3f} s longer")
    links = [(machine.host, host_of(id)) for id in NODES if id != machine.id]
    fabric.slow |= dict.fromkeys(links, delay_s)
    await asyncio.sleep(peril.lasts_s)
    for link in links:
        fabric.slow.pop(link, None)


async def resets(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """All connections of a node are broken, and once more after a while."""
    machine = find(fleet, peril)
    fleet.note("the network", f"breaks all connections of {machine.host}")
    fleet.fabric.reset(machine.host)
    await asyncio.sleep(peril.lasts_s)
    fleet.fabric.reset(machine.host)


async def client_stops(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A process of a client is stopped for so long that others take it for dead, and goes on as if nothing had been."""
    names = [(workload, name) for workload in workloads for name in workload.names]
    workload, name = names[int(peril.chance * len(names))]
    client = workload.running.get(name)
    if client is not None and not client.process.is_paused:
        client.note("is paused")
        client.process.pause()
        await asyncio.sleep(_LONGER_THAN_SESSIONS_S + peril.lasts_s)
        client.note("goes on")
        client.process.go_on()


async def client_dies(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A process of a client dies, and is started anew."""
    names = [(workload, name) for workload in workloads for name in workload.names]
    workload, name = names[int(peril.chance * len(names))]
    workload.crash(name)
    await asyncio.sleep(peril.lasts_s)
    workload.revive(name)


async def full_disk(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A disk has room for a few more bytes, and then for nothing more; later somebody makes room."""
    machine = find(fleet, peril)
    machine.disk.room_bytes = int(peril.chance * _ROOM_BYTES_MAX)
    fleet.note(machine.host, f"has a disk with room for {machine.disk.room_bytes} bytes")
    await asyncio.sleep(peril.lasts_s)
    fleet.note(machine.host, "has room again")
    machine.disk.room_bytes = None
    _start(machine)


async def clock_jump(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A machine's wall clock jumps by up to an hour, ahead or back, and later it is right again."""
    machine = find(fleet, peril)
    machine.clock.ahead_ms = int((2 * peril.chance - 1) * _JUMP_MS_MAX)
    fleet.note(machine.host, f"has a clock that is {machine.clock.ahead_ms} ms ahead")
    await asyncio.sleep(peril.lasts_s)
    fleet.note(machine.host, "has a clock that is right")
    machine.clock.ahead_ms = 0


async def slow_disk(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """A disk takes long to sync, and now and then to write, which holds up all that the process does."""
    machine = find(fleet, peril)
    before = machine.sync_s
    worst_s = 0.05 + peril.chance * _SYNC_S_MAX
    fleet.note(machine.host, f"has a slow disk: up to {worst_s:.3f} s for a sync")
    machine.slow_down((worst_s / 4, worst_s), peril.chance * 7 % 1 * _WRITE_S_MAX)
    await asyncio.sleep(peril.lasts_s)
    fleet.note(machine.host, "has a disk as before")
    machine.slow_down(before, 0.0)


async def slow_reader(fleet: Fleet, peril: Peril, workloads: Sequence[Workload]) -> None:
    """Every client reads slowly, and the buffers between it and the nodes are small; or a node does.

    Nodes have little room for answers that nobody takes.
    """
    fabric = fleet.fabric
    slow = [client.host for client in fleet.clients.values()]
    if peril.chance < 0.25:
        slow = [find(fleet, peril).host]
    share = peril.chance * 8 % 1
    fabric.window_bytes, fabric.read_bytes = 200 + int(share * 2000), 50 + int(share * 800)
    fabric.slow_readers = dict.fromkeys(slow)
    for node in fleet.nodes():
        node.connections.clients.answers.bytes_max = _ANSWER_BYTES + int(share * _ANSWER_BYTES)
    fleet.note("the network", f"{', '.join(slow)} read {fabric.read_bytes} bytes at a time, windows are small")
    await asyncio.sleep(peril.lasts_s)
    fleet.note("the network", "all read as before")
    fabric.all_read()
    for node in fleet.nodes():
        node.connections.clients.answers.bytes_max = node.values["ottla.answer.bytes.max"]
        node.connections.clients.answers._wake_soon()


def _other(id: int, peril: Peril) -> str:
    others = [each for each in NODES if each != id]
    return host_of(others[int(peril.chance * 2) % 2])


async def _cut(fleet: Fleet, peril: Peril, links: list[tuple[str, str]]) -> None:
    fleet.note("the network", "is cut: " + ", ".join(f"{a} to {b}" for a, b in links))
    for link in links:
        fleet.fabric.cut(*link)
    await asyncio.sleep(peril.lasts_s)
    fleet.note("the network", "is healed: " + ", ".join(f"{a} to {b}" for a, b in links))
    for link in links:
        fleet.fabric.heal(*link)


KINDS: dict[str, Strike] = {
    "kill": kill,
    "power loss": power,
    "blackout": blackout,
    "killing of all": kill_all,
    "killing in turn": kill_in_turn,
    "restart": restart,
    "pause": pause,
    "isolation": isolate,
    "cut": cut,
    "one-way cut": one_way_cut,
    "cut from clients": clients_cut,
    "slowness": slow,
    "resets": resets,
    "death of a client": client_dies,
    "stop of a client": client_stops,
    "full disk": full_disk,
    "clock jump": clock_jump,
    "slow disk": slow_disk,
    "slow readers": slow_reader,
}
