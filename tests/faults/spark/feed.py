"""What the queries read: numbered records with keys, written all the while, whatever happens to the broker.

A slow query is waited for: no more than some batches' worth is ever ahead of it.
"""

import random
import threading
from collections.abc import Callable
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

KEYS = 17
AHEAD_MAX = 500
LOOK_EVERY = 25


class Feed:
    """Writes `partition number` to partitions chosen by chance, each record under one of a few keys."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        per_second: int,
        chance: random.Random,
        done: Callable[[], int],
    ) -> None:
        """`done` says how many records the slowest query has had."""
        self.keys: list[list[str]] = [[] for _ in range(partitions)]  # by partition and number
        self._topic, self._pause, self._chance = topic, 1 / per_second, chance
        self._done = done
        self._failed: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "message.timeout.ms": 0,
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Write no more, and have everything acknowledged."""
        self._ended.set()
        self._thread.join(60)
        assert self._producer.flush(60) == 0, "the source cannot be written"
        assert not self._failed, self._failed

    @property
    def counts(self) -> list[int]:
        return [len(each) for each in self.keys]

    def _run(self) -> None:
        written = 0
        while not self._ended.wait(self._pause):
            if written % LOOK_EVERY == 0 and written - self._done() > AHEAD_MAX:
                self._producer.poll(0)
                continue
            written += 1
            partition = self._chance.randrange(len(self.keys))
            key = f"key-{self._chance.randrange(KEYS)}"
            value = f"{partition} {len(self.keys[partition])}"
            self._producer.produce(self._topic, value, key, partition, on_delivery=self._delivered)
            self.keys[partition].append(key)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(str(error))
