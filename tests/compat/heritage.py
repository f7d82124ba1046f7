"""Groups, transactions and share groups worth inheriting, and what of them must outlive a change of server.

Used where one server writes and another takes over. `fill` leaves some of each kind and state behind; `Heritage.take`
asks a running server for all that a client can see of them. What their owners do next is in heirs.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from ottla.broker.coordinators import partition_of
from ottla.replicated.keyed import KeyedRecord
from ottla.transactions.records import record_of
from ottla.transactions.state import State
from ottla.transactions.transaction import Transaction
from ottla.wire.batch import build_batch
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.wire.record import Record
from tests.compat.answers import plain
from tests.compat.asking_share import ACCEPT, REJECT, RELEASE, begin_at_the_beginning
from tests.compat.asking_transactions import add, begin, producer, settle
from tests.compat.rows import Scene
from tests.compat.scenes import PATIENCE_MS, heartbeat, joining, look_for_coordinators
from tests.peers.connection import Connection, request_frame
from tests.peers.deadline import eventually

NOW_MS = 1_760_000_000_000
RECORDS = 20
PARTITIONS = 3  # of each internal topic
OVERDUE_MS = 1500
NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}

# Few coordinators, so that they are soon read, and no patience with what is overdue.
SETTINGS = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "transaction.state.log.num.partitions": str(PARTITIONS),
    "share.coordinator.state.topic.num.partitions": str(PARTITIONS),
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "300",
}


class Clan:
    """The names of one heritage; two of them can live on the same server."""

    def __init__(self, name: str) -> None:
        self.read, self.written, self.shared = f"{name}-read", f"{name}-written", f"{name}-shared"
        self.classic, self.offsets, self.consumer = f"{name}-classic", f"{name}-offsets", f"{name}-consumer"
        self.left, self.share, self.copied = f"{name}-left", f"{name}-share", f"{name}-copied"
        self.streams = f"{name}-streams"
        self.committed, self.aborted, self.open = f"{name}-committed", f"{name}-aborted", f"{name}-open"
        self.prepared, self.overdue = f"{name}-prepared", f"{name}-overdue"

    @property
    def groups(self) -> list[str]:
        with_offsets = [self.classic, self.offsets, self.consumer, self.left, self.streams, self.copied]
        return [*with_offsets, self.share]


def fill(scene: Scene, clan: Clan) -> None:
    """Leave groups, offsets, transactions and share groups behind."""
    look_for_coordinators(scene)
    scene.make_topic(clan.read, 2)
    scene.make_topic(clan.written, 2)
    scene.make_topic(clan.shared)
    begin_at_the_beginning(scene, clan.share)
    for topic in (clan.read, clan.shared):
        fill_topic(scene, topic, RECORDS)
    _classic(scene, clan)
    _consumer(scene, clan)
    _streams(scene, clan)
    _transactions(scene, clan)
    _share(scene, clan)


def fill_topic(scene: Scene, topic: str, count: int) -> None:
    records = [Record(number, NOW_MS, None, b"%d" % number, ()) for number in range(count)]
    produce(scene, topic, bytes(build_batch(records)))


def produce(scene: Scene, topic: str, batch: bytes, **more: Any) -> None:
    part = {"index": 0, "records": batch}
    scene.do(
        "Produce",
        12,
        acks=-1,
        timeout_ms=5000,
        topic_data=[{"name": topic, "partition_data": [part]}],
        **more,
    )


def commit(scene: Scene, group: str, topic: str, offset: int, note: str | None, **more: Any) -> None:
    """Commit one offset, with a leader epoch and a note."""
    place = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": 0}
    place |= {"committed_metadata": note}
    scene.do("OffsetCommit", 9, group_id=group, topics=[{"name": topic, "partitions": [place]}], **more)


def _classic(scene: Scene, clan: Clan) -> None:
    """A group with a static member in its second generation, and one that merely holds an offset."""
    who = {"group_id": clan.classic, "group_instance_id": "instance"}
    joined = scene.do(
        "JoinGroup", 9, **joining(clan.classic, topics=[clan.read], group_instance_id="instance")
    )
    joined = scene.do(
        "JoinGroup",
        9,
        **joining(clan.classic, joined.member_id, topics=[clan.read], group_instance_id="instance"),
    )
    member = {"member_id": joined.member_id}
    scene.names[f"member of {clan.classic}"] = joined.member_id
    scene.names[f"generation of {clan.classic}"] = joined.generation_id
    scene.do(
        "SyncGroup",
        5,
        **who,
        **member,
        generation_id=joined.generation_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{**member, "assignment": b"\0\0 an assignment"}],
    )
    commit(
        scene,
        clan.classic,
        clan.read,
        5,
        "a näte",
        **member,
        generation_id_or_member_epoch=joined.generation_id,
        group_instance_id="instance",
    )
    commit(scene, clan.offsets, clan.read, 3, None)


def _consumer(scene: Scene, clan: Clan) -> None:
    """A group of the new protocol with a member, and one whose member has left it."""
    for group in (clan.consumer, clan.left):
        first = {"rebalance_timeout_ms": PATIENCE_MS, "subscribed_topic_names": [clan.read]}
        beat = heartbeat(group, "one", 0, topic_partitions=[], **first, rack_id="rack")
        epoch = scene.do("ConsumerGroupHeartbeat", 1, **beat).member_epoch
        held = [{"topic_id": scene.topic_id(clan.read), "partitions": [0, 1]}]
        scene.do("ConsumerGroupHeartbeat", 1, **heartbeat(group, "one", epoch, topic_partitions=held))
        commit(scene, group, clan.read, 11, "", member_id="one", generation_id_or_member_epoch=epoch)
        scene.names[f"epoch of {group}"] = epoch
    scene.do("ConsumerGroupHeartbeat", 1, **heartbeat(clan.left, "one", -1))


def _streams(scene: Scene, clan: Clan) -> None:
    """A streams group with a member that runs a task for each partition."""
    parts = [{"subtopology_id": "only", "source_topics": [clan.read]}]
    first = {"topology": {"epoch": 0, "subtopologies": parts}, "process_id": "process"}
    first |= {"rebalance_timeout_ms": PATIENCE_MS} | NO_TASKS
    joined = scene.do("StreamsGroupHeartbeat", 0, **heartbeat(clan.streams, "one", 0, **first))
    epoch = scene.names[f"epoch of {clan.streams}"] = joined.member_epoch
    runs = {"active_tasks": [{"subtopology_id": "only", "partitions": [0, 1]}]}
    scene.do("StreamsGroupHeartbeat", 0, **heartbeat(clan.streams, "one", epoch, **(NO_TASKS | runs)))
    commit(scene, clan.streams, clan.read, 6, "", member_id="one", generation_id_or_member_epoch=epoch)


def _transactions(scene: Scene, clan: Clan) -> None:
    """Transactions that were committed and aborted, one that is open, and one whose end is decided."""
    commit(scene, clan.copied, clan.read, 2, "before")
    for name in (clan.committed, clan.aborted, clan.open, clan.prepared):
        begin(scene, name)
        write(scene, clan, name)
    consumed(scene, clan, clan.committed, 8)
    for name, committed in ((clan.committed, True), (clan.aborted, False)):
        scene.do("EndTxn", 5, **producer(scene, name), committed=committed)
        settle(scene, name)
    for offset in (4, 9):
        consumed(scene, clan, clan.open, offset)
    decide(scene, clan)


def write(scene: Scene, clan: Clan, name: str, sequence: int = 0) -> None:
    """Write a record in a transaction."""
    who = producer(scene, name)
    batch = build_batch(
        [Record(0, NOW_MS, None, name.encode(), ())],
        producer_id=who["producer_id"],
        producer_epoch=who["producer_epoch"],
        base_sequence=sequence,
        transactional=True,
    )
    produce(scene, clan.written, bytes(batch), transactional_id=name)


def consumed(scene: Scene, clan: Clan, name: str, offset: int) -> None:
    """Commit an offset in a transaction."""
    place = {"partition_index": 0, "committed_offset": offset, "committed_metadata": f"by {name}"}
    topics = [{"name": clan.read, "partitions": [place]}]
    scene.do("TxnOffsetCommit", 5, **producer(scene, name), group_id=clan.copied, topics=topics)


def decide(scene: Scene, clan: Clan) -> None:
    """Write down that a transaction is to be committed, behind its coordinator's back: the next will find it so."""
    asked = scene.do("DescribeTransactions", 0, transactional_ids=[clan.prepared]).transaction_states[0]
    step = Transaction(
        asked.producer_id,
        asked.producer_epoch,
        asked.transaction_timeout_ms,
        State.ONGOING,
        frozenset((topic.topic, index) for topic in asked.topics for index in topic.partitions),
        asked.transaction_start_time_ms,
    ).prepared(
        committed=True,
        epoch=asked.producer_epoch + 1,
        next_producer_id=-1,
        client_version=2,
        now=asked.transaction_start_time_ms,
    )
    _write_internal(scene, "__transaction_state", clan.prepared, record_of(clan.prepared, step, 1))


def _write_internal(scene: Scene, topic: str, name: str, record: KeyedRecord) -> None:
    key, value = record.encode()
    part = ProduceRequest.TopicProduceData.PartitionProduceData(
        index=partition_of(name, PARTITIONS),
        records=bytes(build_batch([Record(0, NOW_MS, key, value, ())])),
    )
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[part])]
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)
    with Connection(scene.side.server.port) as line:
        line.send_bytes(request_frame(request, 12, 1, "__admin_client"))
        answer = line.receive(ProduceResponse, 12)
    assert answer.responses[0].partition_responses[0].error_code == 0


def _share(scene: Scene, clan: Clan) -> None:
    """A share group that has accepted, rejected and given back records."""
    epoch = 0

    def assigned() -> bool:
        nonlocal epoch
        who = {"group_id": clan.share, "member_id": "one", "member_epoch": epoch}
        beat = scene.do("ShareGroupHeartbeat", 1, **who, subscribed_topic_names=[clan.shared])
        epoch = scene.names[f"epoch of {clan.share}"] = beat.member_epoch
        return beat.assignment is not None and bool(beat.assignment.topic_partitions)

    eventually(assigned)
    assert acquire(scene, clan, "one") == [(0, 19, 1)]
    acknowledge(scene, clan, "one", 1, (0, 4, ACCEPT), (5, 6, REJECT), (7, 9, RELEASE), (12, 12, ACCEPT))
    assert acquire(scene, clan, "one", 2) == [(7, 9, 2)]
    acknowledge(scene, clan, "one", -1)  # what is still held is given back
    eventually(lambda: start_offset(scene, clan) == 7)


def acquire(scene: Scene, clan: Clan, member: str, epoch: int = 0) -> list[tuple[int, int, int]]:
    """Begin a session or go on with it; return what is handed out: first and last offset, and how often."""
    topics = [{"topic_id": scene.topic_id(clan.shared), "partitions": [{"partition_index": 0}]}]
    limits = {"max_wait_ms": 5000, "min_bytes": 1, "max_records": 500, "batch_size": 500}
    who = {"group_id": clan.share, "member_id": member, "share_session_epoch": epoch}
    answer = scene.do("ShareFetch", 2, **who, **limits, topics=topics)
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for part in topic.partitions
        for each in part.acquired_records
    ]


def acknowledge(scene: Scene, clan: Clan, member: str, epoch: int, *batches: tuple[int, int, int]) -> None:
    """Say what became of records; with the epoch -1 the session ends."""
    said = [
        {"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}
        for first, last, kind in batches
    ]
    part = {"partition_index": 0, "acknowledgement_batches": said}
    topics = [{"topic_id": scene.topic_id(clan.shared), "partitions": [part]}] if batches else []
    who = {"group_id": clan.share, "member_id": member, "share_session_epoch": epoch}
    scene.do("ShareAcknowledge", 2, **who, topics=topics)


def start_offset(scene: Scene, clan: Clan) -> int:
    """Where the share group begins in its topic."""
    asked = [{"group_id": clan.share, "topics": [{"topic_name": clan.shared, "partitions": [0]}]}]
    answer = scene.do("DescribeShareGroupOffsets", 1, groups=asked)
    found: int = answer.groups[0].topics[0].partitions[0].start_offset
    return found


def be_late(scene: Scene, clan: Clan) -> None:
    """The last thing before a server stops: open a transaction that will be overdue when the next has started."""
    begin(scene, clan.overdue, OVERDUE_MS)
    add(scene, clan.overdue, 1, topic=clan.written)


@dataclass(frozen=True)
class Heritage:
    """All that a client can see of the groups and transactions of a clan."""

    listed: Any
    classic: Any
    consumer: Any
    share: Any
    streams: Any
    offsets: Any
    transactions: Any
    transactions_listed: Any
    share_offsets: Any
    share_state: Any
    producers: Any

    @classmethod
    def take(cls, scene: Scene, clan: Clan) -> Self:
        state = {
            "topic_id": scene.topic_id(clan.shared),
            "partitions": [{"partition": 0, "leader_epoch": -1}],
        }
        ids = [clan.committed, clan.aborted, clan.open]
        wanted = [{"group_id": group, "topics": None} for group in clan.groups if group != clan.share]
        return cls(
            listed=_listed(scene, clan),
            classic=_all(
                scene, scene.do("DescribeGroups", 5, groups=[clan.classic, clan.offsets, clan.copied]).groups
            ),
            consumer=_all(
                scene, scene.do("ConsumerGroupDescribe", 1, group_ids=[clan.consumer, clan.left]).groups
            ),
            streams=_all(scene, scene.do("StreamsGroupDescribe", 0, group_ids=[clan.streams]).groups),
            share=_all(scene, scene.do("ShareGroupDescribe", 1, group_ids=[clan.share]).groups),
            offsets=_all(scene, scene.do("OffsetFetch", 8, groups=wanted).groups),
            transactions=_all(
                scene, scene.do("DescribeTransactions", 0, transactional_ids=ids).transaction_states
            ),
            transactions_listed=_all(
                scene,
                scene.do(
                    "ListTransactions", 2, producer_id_filters=[scene[f"producer of {name}"] for name in ids]
                ).transaction_states,
            ),
            share_offsets=_all(
                scene,
                scene.do(
                    "DescribeShareGroupOffsets", 1, groups=[{"group_id": clan.share, "topics": None}]
                ).groups,
            ),
            share_state=plain(scene.do("ReadShareGroupState", 0, group_id=clan.share, topics=[state])),
            producers=_producers(scene, clan),
        )

    def differences(self, other: Heritage) -> list[str]:
        """What is not the same in another."""
        return [
            f"{name}: {getattr(self, name)}\n became {getattr(other, name)}"
            for name in self.__dataclass_fields__
            if getattr(self, name) != getattr(other, name)
        ]


def _all(scene: Scene, answers: Iterable[Any]) -> list[Any]:
    return sorted((scene.called(plain(each)) for each in answers), key=str)


def _listed(scene: Scene, clan: Clan) -> Any:
    """The groups of the clan among all that are listed; coordinators that are being loaded list none."""
    found: list[Any] = []

    def complete() -> bool:
        found[:] = [each for each in scene.do("ListGroups", 5).groups if each.group_id in clan.groups]
        return len(found) == len(clan.groups)

    eventually(complete)
    return _all(scene, found)


def _producers(scene: Scene, clan: Clan) -> Any:
    """Who has written, and what is open; without the transaction that the next server ends by itself."""
    topics = [{"name": clan.written, "partition_indexes": [0]}]
    answer = scene.do("DescribeProducers", 0, topics=topics)
    ended = scene[f"producer of {clan.prepared}"]
    active = answer.topics[0].partitions[0].active_producers
    return _all(scene, (each for each in active if each.producer_id != ended))
