"""What is done to the cluster, and what is measured: each scene returns its figures by name.

Virtual seconds (`_s`) are those of the simulated clock, on which charged processes take as long as they compute. CPU
seconds (`cpu_s`) are those of one process alone. `held_ms` is the longest time in which a process did nothing else.
"""

import gc
import time
from statistics import median
from typing import Any

from bench.scale.estate import Estate, metadata_files
from bench.scale.stand_in import StandIn, beats
from bench.scale.weight import weigh
from ottla.metadata.delta import TopicChange
from ottla.metadata.fold import Change
from ottla.metadata.topics import PartitionState
from ottla.sim.cluster.machine import Machine
from ottla.wire.message import Message
from ottla.wire.messages.alter_partition import AlterPartitionResponse
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ottla.world.entropy import SeededEntropy

Figures = dict[str, float]
RECORDS_A_REQUEST = 5_000
SETTLE_S = 10.0


def build(estate: Estate) -> Figures:
    """Start everybody, and make the topics."""
    began_wall, began_cpu = time.perf_counter(), time.process_time()
    for machine in estate.controllers.values():
        estate.start(machine)
    estate.run(lambda: estate.active() is not None, "a controller leads")
    for machine in estate.whole.values():
        estate.start(machine)
    for stand_in in estate.stand_ins.values():
        stand_in.start()
    figures = {"join_s": estate.run(lambda: all_serve(estate), "all brokers serve")}
    estate.rest(SETTLE_S)
    active, standby = _active(estate), estate.standby()
    watched = {"active": active, "standby": standby, "broker": next(iter(estate.whole.values()))}
    before = {name: estate.spent(machine).seconds for name, machine in watched.items()}
    estate.reset_longest()
    names = [f"topic-{number:05}" for number in range(estate.sizes.topics)]
    at_once = max(1, RECORDS_A_REQUEST // estate.sizes.topic_partitions)
    began_s = estate.timeline.now
    for first in range(0, len(names), at_once):
        estate.create(names[first : first + at_once])
    end_offset = estate.node(active).quorum.end_offset
    estate.run(lambda: estate.all_have(end_offset), "all have heard of all topics")
    figures["made_s"] = estate.timeline.now - began_s
    for name, machine in watched.items():
        spent = estate.spent(machine)
        figures[f"{name}_cpu_s"] = spent.seconds - before[name]
        figures[f"{name}_held_ms"] = spent.longest_s * 1e3
    figures["records"] = estate.library.records
    figures["log_bytes"] = sum(metadata_files(active, ".log").values())
    figures["wall_s"] = time.perf_counter() - began_wall
    figures["harness_cpu_s"] = time.process_time() - began_cpu
    gc.collect()
    image = estate.node(active).quorum.image
    figures["image_bytes"] = weigh(image)
    figures["census_bytes"] = weigh(estate.node(active).quorum.machine._view.census, without=[image])
    broker = estate.node(next(iter(estate.whole.values())))
    figures["broker_image_bytes"] = weigh(broker.quorum.image)
    return figures


def all_serve(estate: Estate) -> bool:
    return all(machine.is_serving for machine in estate.whole.values()) and all(
        stand_in.serves for stand_in in estate.stand_ins.values()
    )


def failover(estate: Estate) -> Figures:
    """The active controller is killed: who leads next, and when are brokers answered?"""
    active = _active(estate)
    others = [each for each in estate.controllers.values() if each is not active]
    before = {each.id: estate.spent(each).seconds for each in others}
    estate.reset_longest()
    heard: dict[str, float] = {}
    beaten: dict[int, float] = {}
    changed: list[float] = []

    def answered(stand_in: StandIn, answer: Message, now: float) -> None:
        if beats(answer):
            beaten.setdefault(stand_in.id, now)
        elif isinstance(answer, AlterPartitionResponse):
            changed.append(now)

    died_s = estate.timeline.now
    active.kill()
    estate.answered.append(answered)
    proposer, place, state = _led_by_a_stand_in(estate)
    change = Change(Any, estate.library.image)  # type: ignore[arg-type]
    proposer.process.call_soon(lambda: proposer.propose([(place, state, state.isr[:-1])], change))
    estate.run(lambda: estate.active() is not None, "another controller leads")
    heard["leads_s"] = estate.done_at(_active(estate)) - died_s
    estate.run(
        lambda: bool(changed) and len(beaten) == len(estate.stand_ins),
        "every broker was heard, and one answered",
    )
    successor = _active(estate)
    spent = estate.spent(successor)
    heard |= {
        "first_heartbeat_s": min(beaten.values()) - died_s,
        "all_heartbeats_s": max(beaten.values()) - died_s,
        "alter_partition_s": changed[0] - died_s,
        "cpu_s": spent.seconds - before[successor.id],
        "held_ms": spent.longest_s * 1e3,
    }
    # In sync again, and nobody is to be missed by mistake.
    settled = estate.library.image.topics.by_id[place[0]].partitions[place[1]]
    whole = Change(Any, estate.library.image)  # type: ignore[arg-type]
    proposer.process.call_soon(lambda: proposer.propose([(place, settled, state.isr)], whole))
    estate.rest(SETTLE_S)
    estate.answered.remove(answered)
    heard["fenced"] = sum(each.fenced for each in estate.library.image.brokers.values())
    return heard


def restart(estate: Estate, *, snapshot: bool) -> Figures:
    """A controller starts: on its log alone, where it was killed, or on the snapshot that an orderly stop left."""
    if snapshot:
        machine = estate.standby()
        spent = estate.spent(machine)
        before = spent.seconds
        machine.stop_in_order()
        estate.run(lambda: not machine.is_up, "a controller has stopped")
        figures = {
            "stop_cpu_s": spent.seconds - before,
            "snapshot_bytes": sum(metadata_files(machine, ".checkpoint").values()),
        }
    else:
        machine = next(each for each in estate.controllers.values() if not each.is_up)
        figures = {}
    end_offset = estate.node(_active(estate)).quorum.committed_offset
    began_s = estate.timeline.now
    estate.start(machine)
    estate.run(
        lambda: machine.is_serving and estate.node(machine).quorum.committed_offset >= end_offset,
        "a controller has caught up",
    )
    spent = estate.spent(machine)
    figures |= {
        "caught_up_s": estate.done_at(machine) - began_s,
        "cpu_s": spent.seconds,
        "held_ms": spent.longest_s * 1e3,
    }
    return figures


def loss(estate: Estate, broker: Machine, *, power: bool) -> Figures:
    """A whole broker dies, or its machine loses power: until when does everybody know who leads instead?"""
    image = estate.library.image
    states = [state for topic in image.topics.by_id.values() for state in topic.partitions.values()]
    figures: Figures = {
        "replicas": sum(broker.id in state.replicas for state in states),
        "led": sum(broker.id == state.leader for state in states),
    }
    active = _active(estate)
    survivor = next(each for each in estate.whole.values() if each is not broker)
    estate.listen(survivor)
    spent, survivors = estate.spent(active), estate.spent(survivor)
    cpu, survivors_cpu = spent.seconds, survivors.seconds
    records, log_bytes = estate.library.records, sum(metadata_files(active, ".log").values())
    estate.reset_longest()
    first: dict[int, float] = {}
    known: dict[int, float] = {}

    def learned(id: int, change: Change, now: float) -> None:
        if any(_takes_from(each, broker.id) for each in change.delta.topics.values()):
            first.setdefault(id, now)
        gone = change.delta.brokers.get(broker.id)
        if gone is not None and gone.fenced:
            known.setdefault(id, now)

    estate.learned.append(learned)
    died_s = estate.timeline.now
    if power:
        broker.lose_power(SeededEntropy(broker.id))
    else:
        broker.kill()
    brokers = len(estate.stand_ins) + 1
    estate.run(lambda: len(known) == brokers, "every broker knows who leads instead")
    estate.learned.remove(learned)
    figures |= {
        "first_leaders_s": min(first.values()) - died_s,
        "known_median_s": median(known.values()) - died_s,
        "known_last_s": max(known.values()) - died_s,
        "whole_broker_s": known[survivor.id] - died_s,
        "cpu_s": spent.seconds - cpu,
        "held_ms": spent.longest_s * 1e3,
        "records": estate.library.records - records,
        "log_bytes": sum(metadata_files(active, ".log").values()) - log_bytes,
        "apply_cpu_s": survivors.seconds - survivors_cpu,
        "apply_held_ms": survivors.longest_s * 1e3,
    }
    left = sum(
        state.leader in {broker.id, -1} or broker.id in state.isr
        for topic in estate.library.image.topics.by_id.values()
        for state in topic.partitions.values()
    )
    assert not left, f"{left} partitions still count on the broker that is gone"
    return figures


def back(estate: Estate, broker: Machine) -> Figures:
    """The broker starts again on its disk: until when does it serve, and is all in sync again?"""
    active = _active(estate)
    spent = estate.spent(active)
    cpu, records = spent.seconds, estate.library.records
    estate.reset_longest()
    behind = {
        (topic.id, index)
        for topic in estate.library.image.topics.by_id.values()
        for index, state in topic.partitions.items()
        if broker.id in state.replicas and broker.id not in state.isr
    }
    level: dict[int, set[tuple[bytes, int]]] = {}

    def learned(id: int, change: Change, now: float) -> None:
        found = level.setdefault(id, set())
        for topic in change.delta.topics.values():
            found.update(
                (topic.id, index) for index, state in topic.partitions.items() if broker.id in state.isr
            )

    estate.learned.append(learned)
    began_s = estate.timeline.now
    estate.start(broker)
    estate.run(lambda: broker.is_serving, "the broker serves again")
    figures = {"serves_s": estate.done_at(broker) - began_s}
    figures["start_cpu_s"] = estate.spent(broker).seconds
    figures["start_held_ms"] = estate.spent(broker).longest_s * 1e3
    watcher = next(iter(estate.stand_ins))
    estate.run(lambda: behind <= level.get(watcher, set()), "all replicas are in sync again")
    estate.learned.remove(learned)
    figures |= {
        "in_sync_s": estate.timeline.now - began_s,
        "cpu_s": spent.seconds - cpu,
        "held_ms": spent.longest_s * 1e3,
        "records": estate.library.records - records,
    }
    return figures | _preferred(estate, broker)


def _preferred(estate: Estate, broker: Machine) -> Figures:
    """Everybody leads what it prefers to lead, by an operator's word; Kafka and Ottla look themselves every 300 s."""
    spent = estate.spent(_active(estate))
    estate.reset_longest()
    began_s = estate.timeline.now
    estate.ask(
        ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=60_000), ElectLeadersResponse
    )
    took_s = estate.timeline.now - began_s
    led = sum(
        state.leader == broker.id
        for topic in estate.library.image.topics.by_id.values()
        for state in topic.partitions.values()
    )
    return {"led": led, "leads_s": took_s, "leads_held_ms": spent.longest_s * 1e3}


def _takes_from(change: TopicChange, broker: int) -> bool:
    """Whether a change gives what a broker led to another."""
    before = {} if change.before is None else change.before.partitions
    return any(
        before[index].leader == broker != state.leader
        for index, state in change.partitions.items()
        if index in before
    )


def _active(estate: Estate) -> Machine:
    active = estate.active()
    assert active is not None
    return active


def _led_by_a_stand_in(estate: Estate) -> tuple[StandIn, tuple[bytes, int], PartitionState]:
    for topic in estate.library.image.topics.by_id.values():
        for index, state in topic.partitions.items():
            if state.leader in estate.stand_ins and len(state.isr) > 2:
                return estate.stand_ins[state.leader], (topic.id, index), state
    raise AssertionError("no stand-in leads anything")
