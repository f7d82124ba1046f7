"""The share coordinator keeps the state of share partitions."""

import pytest

from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.host import Host
from ottla.replicated.keyed import decode
from ottla.replicated.steps import STEP_BYTES
from ottla.share.batches import StateBatch, combine
from ottla.share.key import ShareKey, state_partition
from ottla.share.record import KINDS, PartitionState, snapshot_record
from ottla.share.state import COLD_MS, Initialize, ShareState, Write
from ottla.wire.errors import ErrorCode
from ottla.wire.java_hash import known_hash
from ottla.wire.records.share_state import ShareSnapshotValue, ShareUpdateValue
from tests.unit.replicated.journal import NOW, Bench, Limited, run_out

TOPIC, OTHER = bytes(range(16)), bytes(range(1, 17))
KEY = ShareKey("group", TOPIC, 0)
TOPICS = {TOPIC: 2, OTHER: 1}
SNAPSHOT_EVERY = "share.coordinator.snapshot.update.records.per.snapshot"


def fresh(every: int = 3) -> ShareState:
    return ShareState(TOPICS.get, BrokerValues({"node.id": "1", SNAPSHOT_EVERY: str(every)}))


@pytest.fixture
def bench() -> Bench:
    bench = Bench(fresh())
    initialize(bench, 0, start_offset=0)
    return bench


def initialize(
    bench: Bench, state_epoch: int, start_offset: int = -1, partition: int = 0, topic: bytes = TOPIC
) -> int:
    wish = Initialize(partition=partition, state_epoch=state_epoch, start_offset=start_offset)
    return bench.ask(bench.machine.initialize, "group", topic, wish).error_code


def write(bench: Bench, *batches, start=-1, complete=0, leader=-1, epoch=-1, partition=0, topic=TOPIC) -> int:
    parts = [Write.StateBatch(first_offset=a, last_offset=b, delivery_state=c, delivery_count=d)
             for a, b, c, d in batches]  # fmt: skip
    wish = Write(
        partition=partition, state_epoch=epoch, leader_epoch=leader, start_offset=start,
        delivery_complete_count=complete, state_batches=parts,
    )  # fmt: skip
    return bench.ask(bench.machine.write, "group", topic, wish).error_code


def read(bench: Bench, leader: int = -1, partition: int = 0):
    return bench.ask(bench.machine.read, "group", TOPIC, partition, leader)


def batches(reply) -> list:
    return [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in reply.state_batches]


def test_state_begins_where_it_is_told_to() -> None:
    bench = Bench(fresh())
    assert read(bench).error_code == ErrorCode.INVALID_REQUEST
    assert write(bench, (0, 1, 2, 1)) == ErrorCode.INVALID_REQUEST
    assert initialize(bench, 4) == ErrorCode.NONE
    (record,) = bench.records
    value = record.value
    assert isinstance(value, ShareSnapshotValue)
    assert (value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start_offset) == (0, 4, 0, -1)
    assert (value.delivery_complete_count, value.create_timestamp, value.write_timestamp) == (-1, NOW, NOW)
    assert decode(KINDS, *record.encode()) == record
    reply = read(bench)
    assert (reply.state_epoch, reply.start_offset, reply.state_batches) == (4, -1, [])
    # Begun anew at an offset.
    assert initialize(bench, 5, 100) == ErrorCode.NONE
    value = bench.records[-1].value
    assert (value.snapshot_epoch, value.delivery_complete_count) == (1, 0)
    assert initialize(bench, 4) == ErrorCode.FENCED_STATE_EPOCH
    assert initialize(bench, -1) == ErrorCode.NONE


def test_changes_are_updates_and_now_and_then_a_snapshot(bench: Bench) -> None:
    for number in range(8):
        assert write(bench, (number, number, 2, 1), start=0, complete=number + 1) == ErrorCode.NONE
    kinds = [type(record.value) for record in bench.records[1:]]
    assert kinds == [
        *[ShareUpdateValue] * 3, ShareSnapshotValue, *[ShareUpdateValue] * 3, ShareSnapshotValue,
    ]  # fmt: skip
    assert [record.value.snapshot_epoch for record in bench.records[1:]] == [0, 0, 0, 1, 1, 1, 1, 2]
    last = bench.records[-1].value
    assert batches(last) == [(0, 7, 2, 1)]
    assert last.delivery_complete_count == 8
    for record in bench.records:
        assert decode(KINDS, *record.encode()) == record
    assert batches(read(bench)) == [(0, 7, 2, 1)]
    replayed = bench.replayed(fresh())
    assert replayed.states == bench.machine.states
    assert replayed.redundant_offset == bench.machine.redundant_offset == 8


def test_updates_alone_are_read_as_well(bench: Bench) -> None:
    write(bench, (0, 9, 0, 2), (5, 9, 2, 1), start=0)
    assert batches(read(bench)) == [(0, 9, 0, 2)]
    write(bench, (0, 4, 2, 2), start=3, complete=2)
    assert batches(read(bench)) == [(3, 4, 2, 2), (5, 9, 0, 2)]
    assert read(bench).start_offset == 3
    write(bench, (5, 5, 2, 3), start=-1, complete=3)
    assert read(bench).start_offset == 3
    assert bench.replayed(fresh()).states == bench.machine.states


def test_no_snapshot_interval_means_snapshots_only() -> None:
    bench = Bench(fresh(0))
    initialize(bench, 0)
    write(bench, (0, 0, 2, 1))
    assert isinstance(bench.records[-1].value, ShareSnapshotValue)


def test_leaders_of_the_past_are_fenced(bench: Bench) -> None:
    assert read(bench, leader=5).error_code == ErrorCode.NONE
    assert isinstance(bench.records[-1].value, ShareUpdateValue)
    assert bench.records[-1].value.leader_epoch == 5
    count = len(bench.records)
    assert read(bench, leader=5).error_code == ErrorCode.NONE
    assert read(bench, leader=-1).error_code == ErrorCode.NONE
    assert len(bench.records) == count
    assert read(bench, leader=4).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert write(bench, (0, 1, 2, 1), leader=4) == ErrorCode.FENCED_LEADER_EPOCH
    assert write(bench, (0, 1, 2, 1), leader=5) == ErrorCode.NONE
    # Begun anew, the fence stays.
    assert initialize(bench, 1) == ErrorCode.NONE
    assert read(bench, leader=4).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert write(bench, (0, 1, 2, 1), leader=5, epoch=0) == ErrorCode.FENCED_STATE_EPOCH
    assert write(bench, (0, 1, 2, 1), leader=5, epoch=1) == ErrorCode.NONE


def test_a_summary_is_cheap_and_never_an_error(bench: Bench) -> None:
    write(bench, (2, 3, 2, 1), start=2, complete=1)
    reply = bench.ask(bench.machine.summarize, "group", TOPIC, 0)
    assert (reply.error_code, reply.start_offset, reply.delivery_complete_count) == (0, 2, 1)
    reply = bench.ask(bench.machine.summarize, "group", TOPIC, 1)
    assert (reply.error_code, reply.start_offset, reply.delivery_complete_count) == (0, -1, -1)
    assert (reply.state_epoch, reply.leader_epoch) == (0, 0)


def test_state_is_deleted(bench: Bench) -> None:
    write(bench, (0, 1, 2, 1), leader=-1)
    assert bench.ask(bench.machine.delete, "group", TOPIC, 0).error_code == ErrorCode.NONE
    assert bench.records[-1].value is None
    count = len(bench.records)
    assert bench.ask(bench.machine.delete, "group", TOPIC, 0).error_code == ErrorCode.NONE
    assert len(bench.records) == count
    assert read(bench).error_code == ErrorCode.INVALID_REQUEST
    assert bench.replayed(fresh()).states == {}
    assert bench.machine.redundant_offset == count - 1


@pytest.mark.parametrize(("topic", "partition", "code"), [
    (TOPIC, -1, ErrorCode.INVALID_REQUEST),
    (TOPIC, 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (bytes(16), 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
])  # fmt: skip
def test_there_must_be_such_a_partition(bench: Bench, topic: bytes, partition: int, code: ErrorCode) -> None:
    assert initialize(bench, 0, partition=partition, topic=topic) == code
    assert bench.ask(bench.machine.summarize, "group", topic, partition).error_code == code
    assert bench.ask(bench.machine.delete, "group", topic, partition).error_code == code


def test_topics_that_are_gone_take_their_state_along(bench: Bench) -> None:
    initialize(bench, 0, topic=OTHER)
    assert bench.take_steps(bench.machine.topics_deleted({TOPIC})) == 1
    assert set(bench.machine.states) == {ShareKey("group", OTHER, 0)}


def test_cold_partitions_get_a_snapshot_while_others_are_busy(bench: Bench) -> None:
    initialize(bench, 0, topic=OTHER)
    write(bench, (0, 1, 2, 1), start=0)
    bench.machine.loaded(bench.now)
    bench.pass_time(COLD_MS)
    snapshots = [record.value for record in bench.records[-2:]]
    assert all(isinstance(value, ShareSnapshotValue) for value in snapshots)
    assert {(value.create_timestamp, value.write_timestamp) for value in snapshots} == {(NOW, NOW + COLD_MS)}
    assert bench.machine.redundant_offset == 3
    count = len(bench.records)
    # All is quiet now.
    bench.pass_time(10 * COLD_MS)
    assert len(bench.records) == count
    assert bench.replayed(fresh()).states == bench.machine.states


def test_merging_keeps_the_higher_word() -> None:
    def merged(old, new, start=-1):
        found = combine([StateBatch(*each) for each in old], [StateBatch(*each) for each in new], start)
        return [tuple(each) for each in found]

    # (first, last, count, state)
    assert merged([(0, 9, 1, 0)], [(3, 5, 1, 2)]) == [(0, 2, 1, 0), (3, 5, 1, 2), (6, 9, 1, 0)]
    assert merged([(0, 9, 2, 0)], [(3, 5, 1, 2)]) == [(0, 9, 2, 0)]
    assert merged([(0, 9, 1, 0)], [(5, 14, 1, 0)]) == [(0, 14, 1, 0)]
    assert merged([(0, 4, 1, 2)], [(5, 9, 1, 2)]) == [(0, 9, 1, 2)]
    assert merged([(0, 4, 1, 2)], [(6, 9, 1, 2)]) == [(0, 4, 1, 2), (6, 9, 1, 2)]
    assert merged([(0, 9, 1, 2)], [(5, 14, 2, 0)]) == [(0, 4, 1, 2), (5, 14, 2, 0)]
    assert merged([(0, 9, 3, 2)], [(5, 14, 2, 0)]) == [(0, 9, 3, 2), (10, 14, 2, 0)]
    assert merged([(0, 9, 1, 0)], [], start=4) == [(4, 9, 1, 0)]
    assert merged([(0, 9, 1, 0)], [], start=10) == []
    # Kafka leaves these two apart, for it has put the first aside when the second comes about.
    assert merged([(0, 4, 2, 2), (5, 9, 1, 0)], [(5, 9, 2, 2)]) == [(0, 4, 2, 2), (5, 9, 2, 2)]


def test_keys_find_the_partition_kafka_finds() -> None:
    # "a:AAAAAAAAAAAAAAAAAAAAAA:0".hashCode() as Java computes it.
    text = "a:AAAAAAAAAAAAAAAAAAAAAA:0"
    assert str(ShareKey("a", bytes(16), 0)) == text
    number = 0
    for character in text:
        number = number * 31 + ord(character)
    number = (number + 2**31) % 2**32 - 2**31
    assert state_partition(ShareKey("a", bytes(16), 0), 50) == abs(number) % 50


def test_a_long_name_of_a_group_is_gone_through_once_for_all_its_partitions() -> None:
    before = known_hash.cache_info().misses
    found = {state_partition(ShareKey("g" * 32_000, bytes(16), number), 50) for number in range(5_000)}
    assert len(found) == 50
    assert known_hash.cache_info().misses == before + 1


def test_many_cold_partitions_get_their_snapshots_in_several_steps() -> None:
    bench = Bench(ShareState(lambda topic_id: 1_000, BrokerValues({"node.id": "1"})))
    for partition in range(450):
        initialize(bench, 0, partition=partition)
    write(bench, (0, 1, 2, 1), start=0, partition=449)
    bench.machine.loaded(bench.now)
    begin = len(bench.records)
    bench.pass_time(COLD_MS)
    assert len(bench.records) - begin == 200
    bench.pass_time(1_000)
    assert len(bench.records) - begin == 450
    bench.pass_time(10 * COLD_MS)
    assert len(bench.records) - begin == 450


def test_snapshots_of_long_names_are_written_a_few_at_a_time() -> None:
    """Together they would be longer than a batch of the log may be, again and again."""
    bench = Bench(ShareState(lambda topic_id: 1_000, BrokerValues({"node.id": "1"})))
    for partition in range(60):
        wish = Initialize(partition=partition, state_epoch=0, start_offset=-1)
        assert not bench.ask(bench.machine.initialize, "g" * 30_000, TOPIC, wish).error_code
    machine = bench.machine
    machine.loaded(bench.now)
    journal = Limited()
    host = Host(machine, journal)
    for second in range(10):
        run_out(host, bench.now + COLD_MS + 1_000 * second)
    assert not [length for length in journal.lengths if length < 0]
    assert max(journal.lengths) < STEP_BYTES + 31_000
    assert {state.snapshot_epoch for state in machine.states.values()} == {1}


def test_an_update_without_its_snapshot_is_not_cut_off() -> None:
    """The snapshot may be missing from the log; the update is then all that it holds of the share partition."""
    bench = Bench(fresh())
    initialize(bench, 0, start_offset=0)
    write(bench, (0, 2, 0, 1))
    update = bench.records[-1]
    machine = fresh()
    machine.apply(4, update)
    machine.apply(9, snapshot_record(ShareKey("group", OTHER, 0), PartitionState(0, 0, 0, 0, 0)))
    assert machine.redundant_offset == 4


@pytest.mark.parametrize(
    "said",
    [
        [(0, 9, 7, 1)],  # no such state
        [(0, 9, 1, 1)],  # held by somebody, which is not kept
        [(0, 9, 2, -1)],
        [(-5, 9, 2, 1)],
        [(n, n + 2**40, 0, 30_000 - n) for n in range(2_000)],  # many things of each offset
        [(2 * n, 2 * n, 0, 1) for n in range(10_001)],
    ],
)
def test_a_change_that_makes_no_sense_is_refused(bench, said) -> None:
    assert write(bench, *said) == ErrorCode.INVALID_REQUEST
    assert batches(read(bench)) == []
    assert write(bench, (5, 9, 2, 1), (0, 4, 0, 1), (20, 10, 9, 9)) == ErrorCode.NONE, "an order is not asked for"


def test_a_state_does_not_grow_without_bound(bench) -> None:
    for first in (0, 100_000):
        parts = [(first + 2 * n, first + 2 * n, 2, 1) for n in range(10_000)]
        assert write(bench, *parts, start=0) == ErrorCode.NONE
    assert write(bench, (900_000, 900_000, 2, 1), start=0) == ErrorCode.INVALID_REQUEST
    assert write(bench, start=200_000) == ErrorCode.NONE, "the start moves on, and there is room"
    assert write(bench, (900_000, 900_000, 2, 1), start=200_000) == ErrorCode.NONE
