"""What lies in a target: its committed rows by the bytes of its log, and what a reader of those sees meanwhile."""

import threading
import time
from collections import defaultdict
from typing import Self

from confluent_kafka import Consumer, TopicPartition

from ottla.wire.batch import CONTROL, read_records, scan
from ottla.wire.control import ControlType, control_type
from tests.faults.by_hand import hand
from tests.faults.spark.history import Row, Sight


def text_of(value: bytes | None) -> tuple[int, str, int]:
    """Batch, line and place in it, of a row that a query wrote."""
    batch, line, number = (value or b"").decode().split()
    return int(batch), line, int(number)


def committed_rows(port: int, topic: str, partitions: int) -> list[Row]:
    """The rows of committed transactions; which they are is told by the markers in the log and by nobody else."""
    rows: list[Row] = []
    with hand(port) as client:
        for partition in range(partitions):
            data = client.read_all(topic, partition=partition)
            open_rows: dict[int, list[Row]] = defaultdict(list)
            for position, batch in scan(data):
                records = read_records(data, position)
                if batch.attributes & CONTROL:
                    kind = control_type(records[0].key)
                    ended = open_rows.pop(batch.producer_id, [])
                    if kind is ControlType.COMMIT:
                        rows += ended
                    continue
                transaction = batch.producer_id, batch.producer_epoch
                open_rows[batch.producer_id] += [
                    Row(partition, record.offset, *text_of(record.value), transaction) for record in records
                ]
            assert not any(open_rows.values()), f"{topic}-{partition} ends within a transaction"
    return rows


class Watch:
    """A read-committed reader that polls all the time, and keeps what it saw and when."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.sights: list[Sight] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "watch",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{topic}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)
        self._consumer.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            for message in self._consumer.consume(1000, 0.02):
                partition, offset = message.partition(), message.offset()
                if message.error() is None and partition is not None and offset is not None:
                    self.sights.append(Sight(time.monotonic(), partition, offset, *text_of(message.value())))
