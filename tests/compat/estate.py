"""A directory worth inheriting: topics of every kind, and the facts about them that must outlive a change of server.

Used where one server writes and another takes over. `Estate.take` asks a running server for everything a
client can see; two estates of the same directory must be equal.
"""

import time
from dataclasses import dataclass
from typing import Any, Self

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient

from tests.compat.clients import CODECS, Confluent, Sample, Seen
from tests.peers.deadline import eventually
from tests.peers.server import Server

MOMENT_MS = int(time.time() * 1000) - 3_600_000
SEGMENT_BYTES = 1 << 20  # the smallest that Kafka allows
READ_SECONDS_MAX = 30.0

# Settings of the server that fills the estate: neither the cleaner nor the checkpoints are to keep us waiting.
SETTINGS = {"log.cleaner.backoff.ms": "200", "log.flush.start.offset.checkpoint.interval.ms": "500"}

TOPICS: dict[str, dict[str, Any]] = {
    "plain": {"configs": {"segment.bytes": str(SEGMENT_BYTES), "index.interval.bytes": "512"}},
    "keyed": {"num_partitions": 3, "configs": {"retention.ms": "86400000"}},
    "compacted": {
        "configs": {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.0"}
    },
    "idempotent": {"configs": {}},
    "trimmed": {"configs": {}},
    "stamped": {"configs": {"message.timestamp.type": "LogAppendTime"}},
    "empty": {"num_partitions": 2, "configs": {"max.message.bytes": "54321"}},
    **{codec: {"configs": {"index.interval.bytes": "512"}} for codec in CODECS[1:]},
}
COMPACTED_KEYS, COMPACTED_ROUNDS = 10, 30


def fill(server: Server) -> None:
    """Make and fill every topic, and wait until the background work that this calls for is done."""
    bootstrap, client = server.bootstrap, Confluent()
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics(TOPICS)
        admin.wait_for_topics(list(TOPICS))
        _fill_all(bootstrap, client)
        admin.delete_records({TopicPartition("trimmed", 0): 123})
    finally:
        admin.close()
    # The last round is in the active segment, which is never cleaned; before it one record a key remains.
    eventually(lambda: len(read_all(bootstrap, "compacted", 0)) == 2 * COMPACTED_KEYS, seconds_max=60)
    checkpoint = server.log_dir / "log-start-offset-checkpoint"
    eventually(lambda: checkpoint.exists() and "trimmed 0 123\n" in checkpoint.read_text(), seconds_max=70)


def _fill_all(bootstrap: str, client: Confluent) -> None:
    # Values that do not compress well, so that segments are really filled.
    values = [b"%08d " % n + bytes((n * 7 + i * i) % 251 for i in range(1000)) for n in range(50)]
    plain = [Sample(value=values[n % 50], timestamp_ms=MOMENT_MS + n) for n in range(3000)]
    for start in range(0, 3000, 100):
        client.produce(bootstrap, "plain", plain[start : start + 100])
    for codec in CODECS[1:]:
        samples = [
            Sample(key=b"%d" % n, value=b"%d " % n * 50, timestamp_ms=MOMENT_MS + n) for n in range(2000)
        ]
        for start in range(0, 2000, 500):
            client.produce(bootstrap, codec, samples[start : start + 500], codec=codec)
    for partition in range(3):
        keyed = [
            Sample(
                b"key-%d" % n,
                None if n % 10 == 9 else b"value-%d" % n,
                (("trace", b"%d" % n), ("empty", b"")),
            )
            for n in range(partition * 100, partition * 100 + 100)
        ]
        client.produce(bootstrap, "keyed", keyed, partition=partition)
    for turn in range(COMPACTED_ROUNDS):
        # Each round is two seconds younger than the one before, and so begins a new segment.
        samples = [
            Sample(b"k%d" % key, b"round %d" % turn, timestamp_ms=MOMENT_MS + 2000 * turn)
            for key in range(COMPACTED_KEYS)
        ]
        client.produce(bootstrap, "compacted", samples)
    for _ in range(3):
        client.produce(
            bootstrap, "idempotent", [Sample(value=b"%d" % n) for n in range(200)], idempotent=True
        )
    client.produce(bootstrap, "trimmed", [Sample(value=b"%d" % n) for n in range(300)])
    client.produce(bootstrap, "stamped", [Sample(value=b"%d" % n, timestamp_ms=MOMENT_MS) for n in range(20)])


def read_all(bootstrap: str, topic: str, partition: int) -> list[Seen]:
    """Every record that a partition has, from its first to its end as of now."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    try:
        place = TopicPartition(topic, partition)
        consumer.assign([place])
        end_offset = consumer.end_offsets([place])[place]
        consumer.seek(place, consumer.beginning_offsets([place])[place])
        seen: list[Seen] = []
        deadline = time.monotonic() + READ_SECONDS_MAX
        while consumer.position(place) < end_offset:
            assert time.monotonic() < deadline, (
                f"{topic}-{partition} could not be read to its end at {end_offset}"
            )
            for records in consumer.poll(500).values():
                for record in records:
                    headers = tuple((name, value) for name, value in record.headers)
                    seen.append(Seen(record.offset, record.timestamp, record.key, record.value, headers))
        return seen
    finally:
        consumer.close()


@dataclass(frozen=True)
class Estate:
    """All that a client can see of a server's topics."""

    cluster_id: str
    topics: dict[str, tuple[str, int]]  # id and number of partitions
    configs: dict[str, dict[str, str]]  # those set on the topic
    records: dict[tuple[str, int], list[Seen]]
    bounds: dict[tuple[str, int], tuple[int, int]]  # first offset, end offset
    by_time: dict[tuple[str, int], int | None]  # the offset found for a moment in the middle
    producers: dict[tuple[str, int], list[tuple[int, int, int]]]  # id, epoch, last sequence

    @classmethod
    def take(cls, server: Server) -> Self:
        bootstrap = server.bootstrap
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        try:
            described = [each for each in admin.describe_topics() if not each["is_internal"]]
            topics = {each["name"]: (each["topic_id"], len(each["partitions"])) for each in described}
            wanted = [ConfigResource("topic", name) for name in topics]
            configs = admin.describe_configs(wanted)["topic"]
            places = [TopicPartition(name, n) for name, (_, count) in topics.items() for n in range(count)]
            starts, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
            found = consumer.offsets_for_times(dict.fromkeys(places, MOMENT_MS + 900))
            producers = admin.describe_producers(places)
            return cls(
                cluster_id=admin.describe_cluster()["cluster_id"],
                topics=topics,
                configs={
                    name: {key: entry["value"] for key, entry in sorted(configs.get(name, {}).items())}
                    for name in topics
                },
                records={(place.topic, place.partition): read_all(bootstrap, *place) for place in places},
                bounds={(place.topic, place.partition): (starts[place], ends[place]) for place in places},
                by_time={(p.topic, p.partition): found[p].offset if found[p] else None for p in places},
                producers={
                    (place.topic, place.partition): sorted(
                        (each.producer_id, each.producer_epoch, each.last_sequence)
                        for each in producers[place].active_producers
                    )
                    for place in places
                },
            )
        finally:
            consumer.close()
            admin.close()

    def differences(self, other: Self) -> list[str]:
        """What is not the same in another, in words short enough to read."""
        found = []
        if self.cluster_id != other.cluster_id:
            found.append(f"cluster id: {self.cluster_id} became {other.cluster_id}")
        for name in ("topics", "configs", "bounds", "by_time", "producers"):
            before, after = getattr(self, name), getattr(other, name)
            changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
            found += [f"{name} of {key}: {before.get(key)} became {after.get(key)}" for key in changed]
        for place in sorted(self.records.keys() | other.records.keys()):
            old, new = self.records.get(place, []), other.records.get(place, [])
            if old != new:
                first = next(
                    (n for n, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None
                )
                example = (
                    "" if first is None else f", first at {str(old[first])[:200]} and {str(new[first])[:200]}"
                )
                found.append(f"records of {place}: {len(old)} became {len(new)}{example}")
        return found
