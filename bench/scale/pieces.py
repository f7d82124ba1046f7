"""The pieces of a decision, one by one: what a broker's loss takes of the controller, and of everybody who follows.

Nothing here is simulated: the controller, its journal's steps and the fold are called as `Host` and `Quorum` call them.
"""

import gc
import time
from collections.abc import Iterable, Iterator
from typing import Any

from ottla.controller.controller import Controller
from ottla.metadata.content import feature_records
from ottla.metadata.delta import Delta
from ottla.metadata.feature import default_levels
from ottla.metadata.fold import Fold
from ottla.metadata.frame import decode
from ottla.metadata.image import Image
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.topics import Topics
from ottla.quorum.decided import check_foldable, frame_decision
from ottla.wire.batch import read_records, scan
from ottla.wire.message import Message
from ottla.wire.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from ottla.world.entropy import SeededEntropy

_NODE = 1001
_AGAIN = 5
_START_MS = 1_000_000
_PULSE_MS = 100
Figures = dict[str, float]


def cluster(brokers: int, partitions: int, topic_partitions: int) -> Image:
    """An image with replicas spread evenly, each partition led by its first."""
    fold = Fold()
    for offset, record in enumerate(_records(brokers, partitions, topic_partitions)):
        fold.apply(offset, record)
    fold.settle()
    return fold.image


def _records(brokers: int, partitions: int, topic_partitions: int) -> Iterator[Message]:
    yield from feature_records(default_levels())
    for id in range(1, brokers + 1):
        yield RegisterBrokerRecord(
            broker_id=id,
            incarnation_id=id.to_bytes(16),
            broker_epoch=id,
            fenced=False,
            log_dirs=[_directory(id)],
        )
    for number in range(partitions):
        topic, index = divmod(number, topic_partitions)
        topic_id = (topic + 1).to_bytes(16)
        if index == 0:
            yield TopicRecord(name=f"topic-{topic:05}", topic_id=topic_id)
        replicas = [(number * 7 + step) % brokers + 1 for step in range(3)]
        yield PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[_directory(id) for id in replicas],
        )


def _directory(broker: int) -> bytes:
    return (broker << 64).to_bytes(16)


def controller(image: Image) -> tuple[Controller, float]:
    """A controller that takes over, and the CPU seconds that this takes."""
    began = time.thread_time()
    made = Controller(
        Fold(image),
        node_id=_NODE,
        cluster_id="cluster",
        values=BrokerValues({"node.id": str(_NODE), "process.roles": "controller"}),
        entropy=SeededEntropy(1),
        kraft_version=0,
        now=_START_MS,
    )
    return made, time.thread_time() - began


def loss(image: Image, broker: int) -> Figures:
    """One broker is gone: the decisions that follow, each with all that holds the controller's loop."""
    gc.collect()
    gc.disable()
    made, taking_over = controller(image)
    others = [id for id in image.brokers if id != broker]
    made.broker_disconnected(broker, image.brokers[broker].epoch, _START_MS, refused=True)
    totals = dict.fromkeys(("decide", "check", "frame", "apply"), 0.0)
    held: list[float] = []
    written: list[bytes] = []
    records, offset, now = 0, image.offset + 1, _START_MS
    while not made.image.brokers[broker].fenced:
        now += _PULSE_MS
        assert now < _START_MS + 60_000, "a broker that refuses connections is to be fenced at once"
        for id in others:
            made._sessions.touch(id, now)
        before = made.image
        marks = [time.thread_time()]
        decision = made.expire(now)
        marks.append(time.thread_time())
        if not decision.records:
            continue
        wanted: Any = decision.records
        check_foldable(before, None, offset, wanted)
        marks.append(time.thread_time())
        data, first = frame_decision(wanted, before.features.metadata_version, offset, 1, now)
        marks.append(time.thread_time())
        for number, record in enumerate(wanted, first):
            made.apply(number, record)
        offset = first + len(wanted)
        made.advance(offset, 1, now)
        made.settle()
        marks.append(time.thread_time())
        for name, begin, end in zip(totals, marks, marks[1:], strict=False):
            totals[name] += end - begin
        held.append(marks[-1] - marks[0])
        written.append(bytes(data))
        records += len(wanted)
    figures = {f"{name}_ms": seconds * 1e3 for name, seconds in totals.items()}
    figures |= {
        "taking_over_ms": taking_over * 1e3,
        "replicas": len(made._view.census.on(broker)),
        "records": records,
        "decisions": len(held),
        "held_ms": max(held) * 1e3,
        "total_ms": sum(held) * 1e3,
        "bytes": sum(map(len, written)),
        "follow_ms": _follow(image, written) * 1e3,
    }
    gc.enable()
    return figures


def _follow(image: Image, written: list[bytes]) -> float:
    """CPU seconds in which a follower reads what was written, and makes images of it."""
    fold = Fold(image)
    began = time.thread_time()
    for data in written:
        for position, batch in scan(data):
            for record in read_records(data, position):
                fold.apply(record.offset, decode(record.value or b""))
            fold.advance(batch.end_offset, batch.partition_leader_epoch, batch.max_timestamp)
        fold.settle()
    return time.thread_time() - began


def growth(image: Image, changed: int, sizes: Iterable[int]) -> dict[int, float]:
    """Microseconds to apply changes to as many partitions in clusters of different sizes: each in the first topics."""
    found = {}
    topics = list(image.topics.by_id.values())
    each = len(topics[0].partitions)
    for size in sizes:
        kept = topics[: size // each]
        part = _with(image, kept)
        per_topic = max(1, changed // len(topics[: min(sizes) // each]))
        changes = _changes(kept, changed, per_topic)
        found[size] = _fastest(part, changes)
    return found


def apply_cost(image: Image, counts: Iterable[int]) -> dict[int, float]:
    """Microseconds to apply changes to ever more partitions of one cluster, spread over its topics."""
    topics = list(image.topics.by_id.values())
    return {count: _fastest(image, _changes(topics, count, -(-count // len(topics)))) for count in counts}


def _with(image: Image, topics: list[Any]) -> Image:
    by_name, by_id = {topic.name: topic for topic in topics}, {topic.id: topic for topic in topics}
    return Image(image.features, image.brokers, topics=Topics(by_name, by_id), offset=image.offset)


def _changes(topics: list[Any], count: int, per_topic: int) -> list[PartitionChangeRecord]:
    places = [(topic.id, index) for topic in topics for index in range(per_topic)]
    return [
        PartitionChangeRecord(topic_id=topic_id, partition_id=index, leader=1)
        for topic_id, index in places[:count]
    ]


def _fastest(image: Image, changes: list[PartitionChangeRecord]) -> float:
    best = float("inf")
    for _ in range(_AGAIN):
        began = time.thread_time()
        delta = Delta(image)
        for change in changes:
            delta.apply(change)
        delta.image()
        best = min(best, time.thread_time() - began)
    return best * 1e6
