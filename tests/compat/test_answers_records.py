"""Records: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords and producers, as Kafka answers them."""

import struct
import time
from typing import Any

import pytest

from ottla.wire.batch import build_batch, restamp_crc
from ottla.wire.compression import Codec
from ottla.wire.record import Record
from tests.compat.answers import Fields, Pair, Side, agreement
from tests.peers.deadline import eventually

NOW_MS = int(time.time() * 1000) - 60_000
UNKNOWN_ID = bytes(range(16))


def batch(count: int = 3, *, timestamp_ms: int = NOW_MS, key: bytes | None = b"k", **more: Any) -> bytearray:
    records = [Record(n, timestamp_ms + n, key, b"value %d" % n, (("h", b"1"),)) for n in range(count)]
    return build_batch(records, **more)


def corrupt(data: bytearray, position: int = -1) -> bytes:
    data[position] ^= 0xFF
    return bytes(data)


def with_header(data: bytearray, position: int, form: str, value: int) -> bytes:
    """A batch with one field of its header changed, and its CRC right again."""
    struct.pack_into(form, data, position, value)
    restamp_crc(data, 0, len(data))
    return bytes(data)


def produce(topic: str, records: Any, *, partition: int = 0, acks: int = -1, **more: Any) -> Fields:
    data = [{"index": partition, "records": None if records is None else bytes(records)}]
    return {"acks": acks, "timeout_ms": 5000, "topic_data": [{"name": topic, "partition_data": data}], **more}


def fill(pair: Pair, topic: str, *batches: Any, partition: int = 0) -> None:
    for each in batches:
        pair.both("Produce", 9, produce(topic, each, partition=partition))


@pytest.mark.parametrize("acks", [1, -1])
def test_produce_at_every_version(pair: Pair, acks: int) -> None:
    topic = pair.make_topic(f"produce-acks{acks}", 2)
    with agreement(pair) as both:
        for codec in Codec:
            data = batch(codec=codec)
            # Zstandard has been allowed since version 7.
            both.same("Produce", range(3, 13), produce(topic, data, acks=acks), drop=no_words)
            both.same("Produce", 13, by_id(topic, data, acks=acks))
        both.same("Fetch", range(4, 13), fetch(topic, 0))


def by_id(topic: str, data: Any, **more: Any) -> Any:
    def fields(side: Side) -> Fields:
        asked = produce("", data, **more)
        asked["topic_data"][0] = {**asked["topic_data"][0], "topic_id": side.topic_id(topic)}
        return asked

    return fields


REFUSED: dict[str, Fields] = {
    "unknown topic": produce("never-was", batch()),
    "unknown partition": produce("refuses", batch(), partition=7),
    "negative partition": produce("refuses", batch(), partition=-1),
    "bad name": produce("bad/name", batch()),
    "metadata topic": produce("__cluster_metadata", batch()),
    "bad acks": produce("refuses", batch(), acks=2),
    "corrupt": produce("refuses", corrupt(batch())),
    "too large": produce("refuses", batch(100)),
    "empty": produce("refuses", b""),
    "two batches": produce("refuses", bytes(batch()) + bytes(batch())),
    "half a batch": produce("refuses", bytes(batch())[:40]),
    "magic 1": produce("refuses", corrupt(batch(), 16)),
    "garbage": produce("refuses", b"\x01" * 100),
    "no records": produce("refuses", with_header(batch(), 57, ">i", 0)),
    "count too high": produce("refuses", with_header(batch(), 57, ">i", 4)),
    "offset delta wrong": produce("refuses", with_header(batch(), 23, ">i", 5)),
    "control batch": produce(
        "refuses", batch(1, control=True, producer_id=5, producer_epoch=0, base_sequence=0)
    ),
    "transactional batch": produce(
        "refuses", batch(1, transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)
    ),
    "far future": produce("refuses", batch(timestamp_ms=NOW_MS + 10**10)),
    "transactional id": produce("refuses", batch(), transactional_id="nobody"),
    "nothing": {"acks": -1, "timeout_ms": 1000, "topic_data": []},
}


@pytest.mark.parametrize("case", REFUSED)
def test_produce_refused(pair: Pair, case: str) -> None:
    pair.make_topic("refuses", max_message_bytes=1000)
    with agreement(pair) as both:
        both.same("Produce", (3, 7, 9, 12), REFUSED[case], drop=no_words)
        both.same("ListOffsets", 7, list_offsets("refuses", -1))


def test_produce_to_an_unknown_id(pair: Pair) -> None:
    with agreement(pair) as both:
        both.same("Produce", 13, by_unknown_id(), drop=no_words)


@pytest.mark.parametrize("odd", ["log append time", "no timestamp", "batch and a half"])
def test_produce_odd_but_taken(pair: Pair, odd: str) -> None:
    topic = pair.make_topic(f"takes-{odd.replace(' ', '-')}")
    two = bytes(batch()) + bytes(batch())
    records = {
        "log append time": batch(log_append_time_ms=5),
        "no timestamp": batch(timestamp_ms=-1),
        "batch and a half": two[: len(two) * 3 // 4],
    }[odd]
    with agreement(pair) as both:
        both.same("Produce", (3, 7, 9, 12), produce(topic, records), drop=no_words)
        both.same("Fetch", 11, fetch(topic, 0))


def no_words(answer: Any) -> Any:
    """Ottla says what is wrong with a batch where Kafka gives the code alone."""
    for topic in answer["responses"]:
        for partition in topic["partition_responses"]:
            del partition["error_message"]
    return answer


def by_unknown_id() -> Fields:
    asked = produce("", batch())
    asked["topic_data"][0] = {**asked["topic_data"][0], "topic_id": UNKNOWN_ID}
    return asked


def test_produce_several_partitions(pair: Pair) -> None:
    topic = pair.make_topic("several", 3)
    data = [
        {"index": index, "records": bytes(records)}
        for index, records in ((2, batch()), (0, batch(5)), (9, batch()))
    ]
    broken = [{"index": 1, "records": corrupt(batch())}]
    fields = {
        "acks": -1,
        "timeout_ms": 5000,
        "topic_data": [
            {"name": topic, "partition_data": data + broken},
            {"name": "never-was", "partition_data": [{"index": 0, "records": bytes(batch())}]},
        ],
    }

    def sort(answer: Any) -> Any:
        answer["responses"].sort(key=lambda each: str(each["name"]))
        for each in answer["responses"]:
            each["partition_responses"].sort(key=lambda partition: str(partition["index"]))
        return answer

    with agreement(pair) as both:
        both.same("Produce", range(3, 13), fields, drop=lambda answer: sort(no_words(answer)))


def test_compacted_topic_wants_keys(pair: Pair) -> None:
    topic = pair.make_topic("wants-keys", cleanup_policy="compact")
    mixed = build_batch(
        [Record(0, NOW_MS, b"k", b"v"), Record(1, NOW_MS, None, b"v"), Record(2, NOW_MS, None, b"v")]
    )
    with agreement(pair) as both:
        both.same("Produce", range(3, 13), produce(topic, mixed), drop=no_words)
        both.same("Produce", range(3, 13), produce(topic, batch(key=None, codec=Codec.GZIP)), drop=no_words)
        both.same("Produce", 9, produce(topic, batch()))


def test_timestamps_are_checked(pair: Pair) -> None:
    settings = {"message_timestamp_before_max_ms": 1000, "message_timestamp_after_max_ms": 1000}
    topic = pair.make_topic("punctual", **settings)
    now_ms = int(time.time() * 1000)
    with agreement(pair) as both:
        for moment in (now_ms - 10**7, now_ms + 10**7):
            for codec in (Codec.NONE, Codec.LZ4):
                both.same(
                    "Produce",
                    range(3, 13),
                    produce(topic, batch(timestamp_ms=moment, codec=codec)),
                    drop=no_words,
                )


def test_idempotence(pair: Pair) -> None:
    topic = pair.make_topic("idempotent")

    def written(sequence: int, *, epoch: int = 3, producer: int = 777, count: int = 3) -> Fields:
        return produce(
            topic, batch(count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        )

    with agreement(pair) as both:
        for sequence in (0, 3, 6, 9, 12, 15):
            both.same("Produce", 9, written(sequence), drop=no_words)
        for again in (3, 6, 9, 12, 15, 0):  # the first is forgotten: five batches are remembered
            both.same("Produce", 9, written(again), drop=no_words)
        both.same("Produce", 9, written(16), drop=no_words)  # overlaps
        both.same("Produce", 9, written(21), drop=no_words)  # leaves a gap
        both.same("Produce", 9, written(15, count=2), drop=no_words)  # a duplicate of another length
        both.same("Produce", 9, written(18, epoch=2), drop=no_words)  # an old epoch
        both.same("Produce", 9, written(18, epoch=4), drop=no_words)  # a new epoch has to start at 0
        both.same("Produce", 9, written(0, epoch=4), drop=no_words)
        both.same("Produce", 9, written(18), drop=no_words)  # the epoch before
        both.same("Produce", 9, written(5, producer=888), drop=no_words)  # a producer not seen before
        both.same("Produce", 9, written(8, producer=888), drop=no_words)
        both.same("Produce", 9, written(2**31 - 3, producer=999), drop=no_words)
        both.same("Produce", 9, written(0, producer=999), drop=no_words)  # sequences wrap round
        both.same("Produce", 9, written(-1, producer=111), drop=no_words)
        both.same(
            "DescribeProducers", 0, {"topics": [{"name": topic, "partition_indexes": [0, 5]}]}, drop=no_times
        )
        both.same("DescribeProducers", 0, {"topics": [{"name": "never-was", "partition_indexes": [0]}]})


def no_times(answer: Any) -> Any:
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            del partition[
                "error_message"
            ]  # Kafka has words for an unknown topic and none for an unknown partition
            partition["active_producers"].sort(key=lambda each: int(each["producer_id"]))
            for producer in partition["active_producers"]:
                producer["last_timestamp"] = producer["last_timestamp"] > 0
    return answer


def fetch(
    topic: str, offset: int, *, partition: int = 0, size_bytes_max: int = 1 << 20, **more: Any
) -> Fields:
    epoch = more.pop("current_leader_epoch", -1)
    place = {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": size_bytes_max,
        "current_leader_epoch": epoch,
    }
    return {"max_wait_ms": 0, "min_bytes": 0, "topics": [{"topic": topic, "partitions": [place]}], **more}


def test_fetch(pair: Pair) -> None:
    topic = pair.make_topic("fetched", 2)
    fill(pair, topic, batch(3), batch(5, codec=Codec.ZSTD), batch(1), batch(10, codec=Codec.SNAPPY))
    with agreement(pair) as both:
        for offset in (0, 1, 2, 3, 6, 18, 19, 20, -1, -5):
            both.same("Fetch", range(4, 13), fetch(topic, offset))
        for size in (1, 0, 100, 200, 300, 1000):
            both.same("Fetch", range(4, 13), fetch(topic, 0, size_bytes_max=size))
            both.same("Fetch", range(4, 13), fetch(topic, 0, max_bytes=size))
        both.same("Fetch", range(4, 13), fetch(topic, 0, isolation_level=1))
        both.same("Fetch", range(4, 13), fetch(topic, 0, partition=1))
        both.same("Fetch", range(4, 13), fetch(topic, 0, partition=7))
        both.same("Fetch", range(4, 13), fetch("never-was", 0))
        for epoch in (0, 1, 5):
            both.same("Fetch", range(9, 13), fetch(topic, 0, current_leader_epoch=epoch))


def test_fetch_by_id(pair: Pair) -> None:
    topic = pair.make_topic("fetched-by-id")
    fill(pair, topic, batch(3))

    def fields(side: Side) -> Fields:
        asked = fetch("", 0)
        asked["topics"][0] = {**asked["topics"][0], "topic_id": side.topic_id(topic)}
        return asked

    unknown = fetch("", 0)
    unknown["topics"][0] = {**unknown["topics"][0], "topic_id": UNKNOWN_ID}
    with agreement(pair) as both:
        both.same("Fetch", range(13, 19), fields)
        both.same("Fetch", range(13, 19), unknown)


def test_fetch_sessions_refused(pair: Pair) -> None:
    topic = pair.make_topic("sessions")
    with agreement(pair) as both:
        both.same("Fetch", range(7, 13), fetch(topic, 0, session_id=12345, session_epoch=1))
        both.same(
            "Fetch", range(7, 13), fetch(topic, 0, session_id=12345, session_epoch=0), drop=no_session_id
        )
        both.same("Fetch", range(7, 13), fetch(topic, 0, session_id=12345, session_epoch=-1))
        both.same("Fetch", range(7, 13), fetch(topic, 0, session_id=0, session_epoch=3))


def no_session_id(answer: Any) -> Any:
    answer["session_id"] = bool(answer["session_id"])
    return answer


def test_fetch_sessions(pair: Pair) -> None:
    topic = pair.make_topic("session", 3)
    numbers: dict[int, int] = {}

    def open_session(side: Side) -> None:
        answer: Any = side.ask("Fetch", 12, session_fields(range(3), 0, 0))
        numbers[id(side)] = answer.session_id

    def session_fields(partitions: Any, session: int, epoch: int, **more: Any) -> Fields:
        places = [{"partition": n, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for n in partitions]
        topics = [{"topic": topic, "partitions": places}] if places else []
        return {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "session_id": session,
            "session_epoch": epoch,
            "topics": topics,
            **more,
        }

    def step(partitions: Any, epoch: int, **more: Any) -> Any:
        return lambda side: session_fields(partitions, numbers[id(side)], epoch, **more)

    open_session(pair.kafka)
    open_session(pair.other)
    with agreement(pair) as both:
        both.same("Fetch", 12, step([], 1), drop=no_session_id)  # nothing new
        fill(pair, topic, batch(), partition=1)
        both.same("Fetch", 12, step([], 2), drop=no_session_id)  # one of three has something
        both.same("Fetch", 12, step([1], 3), drop=no_session_id)
        both.same("Fetch", 12, step([], 9), drop=no_session_id)  # a wrong epoch
        forgotten = [{"topic": topic, "partitions": [1]}]
        both.same("Fetch", 12, step([], 4, forgotten_topics_data=forgotten), drop=no_session_id)
        fill(pair, topic, batch(), partition=2)
        both.same("Fetch", 12, step([], 5), drop=no_session_id)
        both.same("Fetch", 12, step([7], 6), drop=no_session_id)  # an unknown partition joins
        both.same("Fetch", 12, step([0, 1], -1), drop=no_session_id)  # ends the session, and asks in full


def list_offsets(topic: str, moment: int, *, partition: int = 0, epoch: int = -1, **more: Any) -> Fields:
    place = {"partition_index": partition, "timestamp": moment, "current_leader_epoch": epoch}
    return {"replica_id": -1, "topics": [{"name": topic, "partitions": [place]}], **more}


def test_list_offsets(pair: Pair) -> None:
    topic = pair.make_topic("listed", 2)
    fill(
        pair,
        topic,
        batch(3),
        batch(5, codec=Codec.GZIP, timestamp_ms=NOW_MS + 100),
        batch(2, timestamp_ms=NOW_MS + 50),
    )
    moments = (
        -1,
        -2,
        -3,
        -4,
        -5,
        -6,
        -7,
        0,
        NOW_MS,
        NOW_MS + 1,
        NOW_MS + 3,
        NOW_MS + 102,
        NOW_MS + 104,
        NOW_MS + 105,
    )
    with agreement(pair) as both:
        for moment in moments:
            both.same("ListOffsets", range(1, 12), list_offsets(topic, moment))
            both.same("ListOffsets", range(2, 12), list_offsets(topic, moment, isolation_level=1))
            both.same("ListOffsets", range(1, 12), list_offsets(topic, moment, partition=1))
        both.same("ListOffsets", range(1, 12), list_offsets(topic, -1, partition=9))
        both.same("ListOffsets", range(1, 12), list_offsets("never-was", -1))
        for epoch in (0, 1):
            both.same("ListOffsets", range(4, 12), list_offsets(topic, -1, epoch=epoch))
        both.same("ListOffsets", range(1, 12), {**list_offsets(topic, -1), "replica_id": -2})
        twice = [{"partition_index": 0, "timestamp": -1}, {"partition_index": 0, "timestamp": -2}]
        both.same(
            "ListOffsets", (1, 7, 11), {"replica_id": -1, "topics": [{"name": topic, "partitions": twice}]}
        )


def test_offset_for_leader_epoch(pair: Pair) -> None:
    topic = pair.make_topic("epochs", 2)
    fill(pair, topic, batch(3))
    with agreement(pair) as both:
        for leader_epoch in (-1, 0, 1, 5):
            for current in (-1, 0, 1):
                for partition in (0, 1, 7):
                    place = {
                        "partition": partition,
                        "leader_epoch": leader_epoch,
                        "current_leader_epoch": current,
                    }
                    fields = {"replica_id": -1, "topics": [{"topic": topic, "partitions": [place]}]}
                    both.same("OffsetForLeaderEpoch", range(2, 5), fields)
        place = {"partition": 0, "leader_epoch": 0}
        both.same(
            "OffsetForLeaderEpoch", range(2, 5), {"topics": [{"topic": "never-was", "partitions": [place]}]}
        )


def test_delete_records(pair: Pair) -> None:
    topic = pair.make_topic("trimmed", 2)
    compacted = pair.make_topic("trimmed-compacted", cleanup_policy="compact")
    fill(pair, topic, batch(10))
    fill(pair, compacted, batch(10))

    def wish(offset: int, name: str = topic, partition: int = 0) -> Fields:
        places = [{"partition_index": partition, "offset": offset}]
        return {"timeout_ms": 5000, "topics": [{"name": name, "partitions": places}]}

    with agreement(pair) as both:
        for offset in (0, 2, 1, 4, 11, -2, -1, 3):
            both.same("DeleteRecords", range(3), wish(offset))
        both.same("DeleteRecords", range(3), wish(0, "never-was"))
        both.same("DeleteRecords", range(3), wish(0, partition=5))
        both.same("DeleteRecords", range(3), wish(1, compacted))
        both.same("ListOffsets", 7, list_offsets(topic, -2))
        both.same("Fetch", 11, fetch(topic, 0))


def test_init_producer_id(pair: Pair) -> None:
    def no_id(answer: Any) -> Any:
        answer["producer_id"] = "an id" if answer["producer_id"] >= 0 else "none"
        return answer

    def ready() -> bool:
        asked = {"transactional_id": None, "transaction_timeout_ms": 1000}
        answers: list[Any] = [side.ask("InitProducerId", 4, asked) for side in (pair.kafka, pair.other)]
        return all(each.error_code == 0 for each in answers)

    eventually(ready)  # the first block of ids has to come from the controller
    with agreement(pair) as both:
        fields = {"transactional_id": None, "transaction_timeout_ms": 60000}
        both.same("InitProducerId", range(6), fields, drop=no_id)
        both.same("InitProducerId", range(6), {**fields, "transactional_id": ""}, drop=no_id)
        both.same("InitProducerId", range(3, 6), {**fields, "producer_id": 5}, drop=no_id)
        both.same(
            "InitProducerId", range(3, 6), {**fields, "producer_id": 5, "producer_epoch": 1}, drop=no_id
        )
