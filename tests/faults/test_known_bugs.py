"""Bugs of other brokers that need a disk, a restart or a seam between files to show, replayed here by name."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.log.log import Log
from ottla.log.replay import read_marker
from ottla.wire.batch import read_records, scan
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from tests.faults.by_hand import Hand, batch, hand, headers
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import DATA, NodeThread
from tests.faults.seeds import seeded
from tests.faults.test_sync_failure import Breakage
from tests.peers.deadline import eventually
from tests.unit.log.workbench import NOW, Workbench, end_transaction, put_from

SETTINGS = {"ottla.flush": "ack", "offsets.topic.num.partitions": "1"}


@pytest.fixture
def node() -> Iterator[NodeThread]:
    made = NodeThread(ForgetfulDisk(), SETTINGS).format()
    try:
        yield made
    finally:
        made.abandon()


def lose_power(node: NodeThread, chance: random.Random) -> None:
    """End a node without a word; its next start finds what the disk has kept."""
    assert isinstance(node.disk, ForgetfulDisk)
    left = node.disk.power_loss(chance)
    node.abandon()
    node.disk = left


# Leader epochs


def leader_epoch(client: Hand) -> int:
    return client.metadata("t").topics[0].partitions[0].leader_epoch


class EpochReader:
    """Asks for leader epochs as followers and consumers do."""

    def __init__(self, client: Hand) -> None:
        self._ask = client.connection.ask

    def end_of(self, epoch: int, current: int = -1) -> tuple[ErrorCode, int, int]:
        """Where an epoch ends: code, the epoch that is meant, its end offset."""
        topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        part = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic(topic="t", partitions=[part])])
        found = self._ask(request, OffsetForLeaderEpochResponse, 4).topics[0].partitions[0]
        return ErrorCode(found.error_code), found.leader_epoch, found.end_offset

    def fetch(
        self, offset: int, current: int = -1, last_fetched: int = -1
    ) -> FetchResponse.FetchableTopicResponse.PartitionData:
        topic = FetchRequest.FetchTopic
        part = topic.FetchPartition(
            partition=0,
            current_leader_epoch=current,
            fetch_offset=offset,
            last_fetched_epoch=last_fetched,
            partition_max_bytes=1 << 20,
        )
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic(topic="t", partitions=[part])])
        return self._ask(request, FetchResponse, 12).responses[0].partitions[0]

    def list_offsets(self, current: int) -> ErrorCode:
        topic = ListOffsetsRequest.ListOffsetsTopic
        part = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=current, timestamp=-1)
        request = ListOffsetsRequest(replica_id=-1, topics=[topic(name="t", partitions=[part])])
        return ErrorCode(self._ask(request, ListOffsetsResponse, 7).topics[0].partitions[0].error_code)


def test_kip_320_who_speaks_of_an_older_leader_is_fenced_everywhere(node: NodeThread) -> None:
    chance = seeded(__file__)
    with node, hand(node.port) as client:
        client.create_topic("t")
        client.produce("t", batch(b"one"))
        assert EpochReader(client).end_of(0, current=0)[0] is ErrorCode.NONE
        lose_power(node, chance)
    with node, hand(node.port) as client:
        reader, epoch = EpochReader(client), leader_epoch(client)
        assert epoch > 0, "whoever lost power may have lost records: its next term is another"
        for current, code in (
            (epoch - 1, ErrorCode.FENCED_LEADER_EPOCH),
            (epoch, ErrorCode.NONE),
            (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            assert reader.fetch(0, current).error_code == code
            assert reader.list_offsets(current) is code
            assert reader.end_of(0, current)[0] is code


def test_kip_101_and_279_a_reader_finds_where_its_log_and_ours_part(node: NodeThread) -> None:
    """By epoch and end offset, step by step, also across terms in which nothing was written."""
    chance = seeded(__file__)
    ends: dict[int, int] = {}  # of each epoch that has records
    node.start()
    for written in (2, 0, 3, 0, 0, 1):
        with hand(node.port) as client:
            if not ends:
                client.create_topic("t")
            for number in range(written):
                assert client.produce("t", batch(b"%d" % number))[0] is ErrorCode.NONE
            if written:
                epoch = leader_epoch(client)
                assert epoch not in ends, "each term has an epoch of its own"
                ends[epoch] = client.end_offset("t")
        lose_power(node, chance)
        node.start()
    assert list(ends.values()) == [2, 5, 6]
    assert list(ends) == sorted(ends)
    with hand(node.port) as client:
        reader = EpochReader(client)
        for asked in range(max(ends) + 1):
            meant = max(epoch for epoch in ends if epoch <= asked)
            assert reader.end_of(asked) == (ErrorCode.NONE, meant, ends[meant])
            # One that has read further under that epoch is told where to go back to, and is given no records.
            found = reader.fetch(6, last_fetched=asked)
            if ends[meant] < 6:
                assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (meant, ends[meant])
                assert not found.records
    node.stop()


# What is served before it is whole


def test_redpanda_5090_a_coordinator_says_nothing_of_a_group_before_it_has_read_all_of_its_log(
    node: NodeThread,
) -> None:
    """Its log takes several turns of the loop to read; whoever asks meanwhile is asked to come back."""
    partitions = 200
    with node, hand(node.port) as client:
        client.create_topic("t", partitions)
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        assert client.connection.ask(find, FindCoordinatorResponse, 4).coordinators[0].error_code == 0
        for offset in range(1, 9):
            commit_all(client, partitions, offset)
    waits = 0
    with node, hand(node.port) as client:

        def complete() -> bool:
            nonlocal waits
            group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
            answer = client.connection.ask(OffsetFetchRequest(groups=[group]), OffsetFetchResponse, 8).groups[
                0
            ]
            if answer.error_code:
                assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                waits += 1
                return False
            [topic] = answer.topics
            assert [each.committed_offset for each in topic.partitions] == [8] * partitions
            return True

        eventually(complete)
        assert waits, "the log was read in one go, and the test shows nothing"


def commit_all(client: Hand, partitions: int, offset: int) -> None:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    parts = [
        topic.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata="n" * 4000
        )
        for index in range(partitions)
    ]
    request = OffsetCommitRequest(group_id="g", topics=[topic(name="t", partitions=parts)])
    answer = client.connection.ask(request, OffsetCommitResponse, 8)
    assert {each.error_code for each in answer.topics[0].partitions} == {0}


# What an error means


@pytest.mark.parametrize("fate", ["kept", "perhaps"])
def test_kafka_13574_a_write_whose_answer_was_an_error_is_there_once_after_its_retry(
    node: NodeThread, fate: str
) -> None:
    """The sync fails after the write: the record may be there or not. An idempotent producer just asks again."""
    chance = seeded(__file__)
    assert isinstance(node.disk, ForgetfulDisk)
    node.start()
    with hand(node.port) as client:
        client.create_topic("t")
        producer_id, epoch = client.init_producer()

        def sent(sequence: int) -> bytes:
            return batch(b"value %d" % sequence, producer_id=producer_id, epoch=epoch, sequence=sequence)

        assert client.produce("t", sent(0)) == (ErrorCode.NONE, 0)
        breakage = node.disk.before = Breakage(f"{DATA}/t-0", "sync")
        breakage.broken = True
        code, _ = client.produce("t", sent(1))
        assert code is ErrorCode.KAFKA_STORAGE_ERROR
        assert code.retriable, "nobody may take it for proof that nothing was written"
    node.disk.before = None
    if fate == "kept":
        node.abandon()
    else:
        lose_power(node, chance)
    node.start()
    with hand(node.port) as client:
        assert client.produce("t", sent(1)) == (ErrorCode.NONE, 1)
        assert client.produce("t", sent(2)) == (ErrorCode.NONE, 2)
        assert [each[0] for each in headers(client.read_all("t"))] == [0, 1, 2]
        assert client.produce("t", sent(1)) == (ErrorCode.NONE, 1), "and once more"
    node.stop()


# The seam between files


def seen_by_a_reader(log: Log, offset: int, size_bytes: int) -> list[int]:
    """The offsets that a read_committed consumer hands out of one fetch, as clients do it."""
    stable_offset = log.end_offset if log.first_unstable_offset is None else log.first_unstable_offset
    data = log.read(offset, size_bytes, stable_offset)
    batches = list(scan(data))
    if not batches:
        return []
    waiting = sorted(log.aborted_transactions(offset, batches[-1][1].end_offset), key=lambda each: each[1])
    aborted: set[int] = set()
    seen = []
    for position, found in batches:
        while waiting and waiting[0][1] < found.end_offset:
            aborted.add(waiting.pop(0)[0])
        if found.is_control:
            marker = read_marker(data, position)
            if marker is not None and marker.aborted:
                aborted.discard(found.producer_id)
        elif not (found.is_transactional and found.producer_id in aborted):
            seen += [record.offset for record in read_records(data, position) if record.offset >= offset]
    return seen


def test_redpanda_7043_and_7819_no_fetch_shows_an_aborted_record_at_any_seam(tmp_path: Path) -> None:
    """Transactions of several producers lie across many segments; reads begin anywhere and end anywhere.

    Before and after a restart, and after the older segments were deleted, which are seams of the same kind.
    """
    chance = seeded(__file__)
    bench = Workbench(tmp_path, segment_bytes=900, index_interval_bytes=100)
    log = bench.log
    committed: list[int] = []
    pending: dict[int, list[int]] = {}
    sequences = dict.fromkeys((1, 2, 3), 0)
    for _ in range(150):
        producer_id = chance.choice(list(sequences))
        if producer_id in pending and chance.random() < 0.3:
            commit = chance.random() < 0.5
            end_transaction(log, producer_id, commit=commit)
            written = pending.pop(producer_id)
            committed += written if commit else []
        else:
            appended = put_from(log, producer_id, sequences[producer_id], 1, 2, transactional=True)
            sequences[producer_id] += 2
            pending.setdefault(producer_id, []).extend(range(appended.base_offset, appended.end_offset))
    for producer_id in pending:
        end_transaction(log, producer_id, commit=False)
    committed.sort()
    assert len(log.segments) > 10

    def check(log: Log) -> None:
        for offset in range(log.start_offset, log.end_offset):
            size_bytes = chance.choice((1, 300, 1000, 5000))
            seen = seen_by_a_reader(log, offset, size_bytes)
            data = log.read(offset, size_bytes, log.end_offset)
            end_offset = list(scan(data))[-1][1].end_offset
            assert seen == [each for each in committed if offset <= each < end_offset]

    check(log)
    check(bench.restart(clean=False))
    log = bench.restart()
    log.raise_start_offset(log.segments[4].base_offset + 1)
    assert log.delete_old_segments(NOW, log.end_offset) == 4
    check(log)
