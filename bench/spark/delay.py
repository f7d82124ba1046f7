"""From the moment a record is sent to the moment a read-committed reader has it, with a copying query between them.

Every record's value begins with its number; when each was sent is kept here, so the clock is one and the same.
"""

import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition

SIZE = 100


class Delays:
    """A writer to the source at an even rate and a reader of the target, for as long as it takes."""

    def __init__(self, bootstrap: str, source: str, target: str, partitions: int, per_second: int) -> None:
        quiet = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = Producer(quiet | {"linger.ms": 0})
        self._consumer = Consumer(
            quiet
            | {
                "group.id": "delays",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
            }
        )
        self._consumer.assign([TopicPartition(target, number, 0) for number in range(partitions)])
        self._source, self._partitions, self._pause = source, partitions, 1 / per_second
        self._sent: list[float] = []
        self._seen: dict[int, float] = {}
        self._ended = threading.Event()

    def measure(self, warm_seconds: float, seconds: float) -> list[float]:
        """Delays in milliseconds of what was sent after a while of warming up, in ascending order."""
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        try:
            self._send_for(warm_seconds)
            self._wait_for(1)
            self._send_for(max(warm_seconds / 2, 1.0))
            first = len(self._sent)
            self._send_for(seconds)
            self._wait_for(len(self._sent))
        finally:
            self._ended.set()
            reader.join()
            self._consumer.close()
        return sorted((self._seen[each] - self._sent[each]) * 1000 for each in range(first, len(self._sent)))

    def _send_for(self, seconds: float) -> None:
        due = time.monotonic()
        deadline = due + seconds
        while due < deadline:
            number = len(self._sent)
            self._sent.append(time.monotonic())
            value = b"%d " % number
            self._producer.produce(self._source, value.ljust(SIZE, b"v"), partition=number % self._partitions)
            self._producer.poll(0)
            due += self._pause
            time.sleep(max(due - time.monotonic(), 0))
        assert self._producer.flush(60) == 0

    def _wait_for(self, count: int, seconds_max: float = 120.0) -> None:
        deadline = time.monotonic() + seconds_max
        while len(self._seen) < count:
            assert time.monotonic() < deadline, f"only {len(self._seen)} of {count} records were copied"
            time.sleep(0.05)

    def _read(self) -> None:
        while not self._ended.is_set():
            # Not consume(), which waits for more.
            message = self._consumer.poll(0.02)
            if message is not None and message.error() is None:
                self._seen.setdefault(int((message.value() or b"").split(b" ", 1)[0]), time.monotonic())
