"""Reads partitions with a client that is not ours."""

import time
from typing import NamedTuple

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

READ_SECONDS_MAX = 30.0


class Read(NamedTuple):
    """A record as another client sees it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read(bootstrap: str, topic: str, partition: int = 0, *, committed: bool = False) -> list[Read]:
    """Every record of a partition, to its end as of now; or those that count, if only these are asked for."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "readback",
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Read] = []
        deadline = time.monotonic() + READ_SECONDS_MAX
        while True:
            assert time.monotonic() < deadline, f"{topic}-{partition} could not be read to its end"
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                return found
            found.append(
                Read(
                    message.offset(),
                    message.timestamp()[1],
                    message.key(),
                    message.value(),
                    tuple(message.headers() or ()),
                )
            )
    finally:
        consumer.close()


def values(bootstrap: str, topic: str, partition: int = 0, *, committed: bool = False) -> list[bytes | None]:
    """The values of `read`."""
    return [each.value for each in read(bootstrap, topic, partition, committed=committed)]


def end_offset(bootstrap: str, topic: str, partition: int = 0) -> int:
    """Where the next record will go."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readback", "log_level": 0})
    try:
        return int(
            consumer.get_watermark_offsets(TopicPartition(topic, partition, OFFSET_END), timeout=20)[1]
        )
    finally:
        consumer.close()
