"""A coordinator's log loads, whatever is missing from it, and however its records contradict each other.

Compaction takes away earlier records, and whoever may write to an internal topic writes any record that can be decoded.
A log that did not load would take every group of its partition down.
"""

import random

import pytest

from ottla.broker.transaction_coordination import HostedTransactions
from ottla.groups import offset_records
from ottla.groups.offset_records import Place, commit_record
from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.keyed import KeyedRecord, decode
from ottla.share import record as share_record
from ottla.transactions import records as transaction_records
from ottla.wire.errors import ProtocolError
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.primitive import Primitive
from tests.unit.groups import consumer_stage, share_stage, test_streams_stage
from tests.unit.groups.consumer_stage import CLIENT, GROUP
from tests.unit.replicated.journal import NOW, _take
from tests.unit.share import test_state as share_state
from tests.unit.transactions import stage as transactions
from tests.unit.wire.samples import Sampler

EXPIRING = {"node.id": "1", "offsets.retention.minutes": "1"}


def groups():
    return consumer_stage.make_machine(consumer_stage.Topics(foo=3, bar=2), EXPIRING)


def hosted_transactions():
    return HostedTransactions(BrokerValues({"node.id": "1"}), coordinator_epoch=1, version=lambda: 2)


class HostedState(share_state.ShareState):
    def lead(self, now):
        self.loaded(now)

    def tidy(self):
        return self.forget_gone()

    def apply_pending(self, producer_id, offset, record):
        self.apply(offset, record)

    def end_transaction(self, producer_id, committed):
        pass


def hosted_state():
    values = BrokerValues({"node.id": "1", share_state.SNAPSHOT_EVERY: "3"})
    return HostedState(share_state.TOPICS.get, values)


MACHINES = {
    "groups": (groups, groups().kinds),
    "transactions": (hosted_transactions, transaction_records.KINDS),
    "share state": (hosted_state, share_record.KINDS),
}


class Small(Sampler):
    """Fills records with few values, so that many are about the same."""

    def value(self, field, version):
        name = field.kind.name if isinstance(field.kind, Primitive) else None
        if name == "uuid":
            return self.random.choice((bytes(16), bytes(15) + b"\1", share_state.TOPIC))
        if name == "string":
            return self.random.choice(("", "a", "b", "foo", "bar"))
        if name == "bytes":
            return self.random.choice((b"", b"\0", b"\0\0\0\0\0\1\0\3foo\0\0\0\0"))
        if name is not None and name.startswith("int"):
            bits = int(name[3:])
            return self.random.choice((-1, 0, 0, 1, 2, 3, -2, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))))
        return super().value(field, version)


def any_record(kinds, sampler):
    """Return a record that a client could have written: one that can be decoded."""
    chance = sampler.random
    while True:
        key, value = kinds[chance.choice(list(kinds))]
        record = KeyedRecord(sampler.message(key, 0), None)
        if chance.random() < 0.75:
            version = chance.choice(list(value.versions))
            record = KeyedRecord(record.key, sampler.message(value, version), version)
        try:
            found = decode(kinds, *record.encode())
            if kinds is transaction_records.KINDS and found.value is not None:
                transaction_records.transaction_of(found.value)
        except ProtocolError:
            continue
        return found


def load(machine, log, *, time_passes):
    """Read a log as a coordinator does, and begin to lead."""
    offset = 0

    def write(decision):
        nonlocal offset
        for record in decision.records if decision is not None else ():
            machine.apply(offset, record)
            offset += 1

    for offset, entry in enumerate(log):
        _take(machine, offset, entry)
    for step in machine.tidy():
        write(step)
    write(machine.lead(NOW))
    now = NOW
    for _ in range(5 * time_passes):
        if machine.deadline is not None:
            now = max(now, min(machine.deadline, NOW + 10**9))
            write(machine.expire(now))
    return machine


@pytest.mark.parametrize("kind", list(MACHINES))
def test_a_log_of_any_records_loads(kind):
    fresh, kinds = MACHINES[kind]
    for seed in range(600):
        sampler = Small(seed)
        chance = sampler.random
        log = []
        for _ in range(chance.randrange(1, 30)):
            match chance.randrange(8):
                case 0:
                    log.append(("end", chance.randrange(2), chance.random() < 0.7))
                case 1 | 2:
                    log.append(("pending", chance.randrange(2), any_record(kinds, sampler)))
                case _:
                    log.append(("record", any_record(kinds, sampler)))
        try:
            load(fresh(), log, time_passes=False)
        except Exception as error:
            error.add_note(f"seed {seed}: {log}")
            raise


# Real logs


def log_of_classic_group():
    stage = consumer_stage.Stage()
    machine = stage.machine
    protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\3foo\0\0\0\0")]
    for member in ("", ""):
        request = JoinGroupRequest(
            group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=1_000, member_id=member,
            protocol_type="consumer", protocols=protocols,
        )  # fmt: skip
        stage.ask(machine.join, request, 3, CLIENT, len(stage.answers))
        stage.pass_time(4_000)
    answer = stage.answers[max(stage.answers)]
    sync = SyncGroupRequest(
        group_id=GROUP, generation_id=answer.generation_id, member_id=answer.leader,
        assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=answer.leader, assignment=b"x")],
    )  # fmt: skip
    stage.ask(machine.sync, sync, 3, 99)
    stage.ask(machine.leave, LeaveGroupRequest(group_id=GROUP, member_id=answer.leader), 2)
    stage.pass_time(60_000)
    return stage.log


def log_of_offsets():
    stage = consumer_stage.Stage()

    def commit(partition, offset):
        return commit_record(Place(GROUP, "foo", partition), offset, -1, "", NOW)

    log = [("record", commit(0, 1)), ("pending", 7, commit(0, 2)), ("pending", 8, commit(1, 3))]
    log += [("end", 7, True), ("record", offset_records.tombstone(Place(GROUP, "foo", 0)))]
    log += [("pending", 7, commit(2, 2)), ("end", 8, True), ("end", 7, False), ("record", commit(0, 3))]
    for entry in log:
        stage.log.append(entry)
        _take(stage.machine, len(stage.log) - 1, entry)
    return stage.log


def log_of_consumer_group():
    stage = consumer_stage.Stage()
    consumers = [
        stage.consumer("a"),
        stage.consumer("b", instance_id="i"),
        stage.consumer("c", subscribed_topic_regex="f.*"),
    ]
    consumer_stage.settle(consumers)
    stage.beat(member_id="b", member_epoch=-2, instance_id="i")
    stage.beat(member_id="a", member_epoch=-1)
    stage.pass_time(100_000)
    return stage.log + [("record", record) for record in stage.group.tombstones()]


def log_of_share_group():
    stage = share_stage.Stage(t=2, u=1)
    for member in ("a", "b"):
        stage.settle(member, ["t", "u"])
    stage.beat("a", -1)
    stage.pass_time(100_000)
    return stage.log + [("record", record) for record in stage.group.tombstones()]


def log_of_streams_group():
    stage = test_streams_stage.Stage()
    threads = [stage.thread("a"), stage.thread("b")]
    for _ in range(6):
        for thread in threads:
            thread.step()
    stage.beat(member_id="a", member_epoch=-1)
    stage.pass_time(100_000)
    return stage.log + [("record", record) for record in stage.group.tombstones()]


def log_of_transactions():
    stage = transactions.Stage()
    for id in ("x", "y"):
        for committed in (True, False):
            producer_id, epoch = stage.open(transactions.P0, transactions.P1, id=id)
            stage.end(producer_id, epoch, committed=committed, id=id)
            stage.settle()
    stage.open(transactions.P2, id="y")
    stage.bench.pass_time(10**10)
    return stage.bench.log


def log_of_share_state():
    bench = share_state.Bench(share_state.fresh())
    for epoch in range(2):
        share_state.initialize(bench, epoch, start_offset=0)
        for number in range(5):
            share_state.write(bench, (number, number + 2, 0, 1), start=number, leader=epoch, epoch=epoch)
        share_state.read(bench, leader=epoch + 1)
    bench.ask(bench.machine.delete, "group", share_state.TOPIC, 0)
    share_state.initialize(bench, 3)
    return bench.log


LOGS = {
    "groups": (
        log_of_classic_group,
        log_of_offsets,
        log_of_consumer_group,
        log_of_share_group,
        log_of_streams_group,
    ),
    "transactions": (log_of_transactions,),
    "share state": (log_of_share_state,),
}


@pytest.mark.parametrize("kind", list(MACHINES))
def test_a_log_loads_whatever_is_missing_from_it(kind):
    fresh, _ = MACHINES[kind]
    parts = [part() for part in LOGS[kind]]
    assert all(len(part) >= 3 for part in parts), [len(part) for part in parts]
    for seed in range(400):
        chance = random.Random(seed)
        # Groups of all kinds have the same name here, one after the other.
        log = [entry for part in chance.sample(parts, len(parts)) for entry in part]
        kept = chance.choice((0.1, 0.5, 0.9, 1.0))
        log = [entry for entry in log if chance.random() < kept]
        try:
            load(fresh(), log, time_passes=True)
        except Exception as error:
            error.add_note(f"seed {seed}: {log}")
            raise
