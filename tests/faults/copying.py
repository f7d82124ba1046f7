"""A client that copies a topic exactly once, as a process of its own, so that it can be killed at any moment.

    python -m tests.faults.copying BOOTSTRAP SOURCE TARGET NAME SEED BATCH_MAX

Each transaction takes up to BATCH_MAX records from the source, writes `transformed` of each to the same partition
of the target, and sends the offsets along. It never ends by itself; an error that a transactional client may not
survive ends it with status 3, and whoever started it starts another with the same name.
"""

import os
import random
import sys
import threading
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

GROUP = "copiers"
BEYOND_REPAIR = 3
SECONDS_MAX = 60.0
# librdkafka 2.16 can stand still for good in send_offsets_to_transaction, deaf to its timeout, when the broker dies
# meanwhile: AddOffsetsToTxn is answered after the retry, and TxnOffsetCommit is never sent. A copier that stands still
# ends, as by one more kill: its transaction is aborted when its successor comes.
TURN_SECONDS_MAX = 3.0
# Give nothing up while the broker is away, come back at once, and say nothing of it.
PATIENT: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "socket.timeout.ms": 10_000,
    "topic.metadata.refresh.fast.interval.ms": 50,
}


def transformed(value: bytes) -> bytes:
    """What becomes of a record on its way."""
    return b"copy of " + value


class Copier:
    """A group member and a transactional producer that belong together."""

    def __init__(self, bootstrap: str, source: str, target: str, name: str) -> None:
        self._target = target
        place = {"bootstrap.servers": bootstrap}
        self._consumer = Consumer(
            PATIENT
            | place
            | {
                "group.id": GROUP,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                # A member that was killed is missed soon, so that the others get its partitions.
                "session.timeout.ms": 2000,
                "heartbeat.interval.ms": 200,
                "fetch.wait.max.ms": 50,
            }
        )
        self._producer = Producer(
            PATIENT | place | {"transactional.id": name, "transaction.timeout.ms": 60_000, "linger.ms": 1}
        )
        self._producer.init_transactions(SECONDS_MAX)
        self._consumer.subscribe([source])

    def turn(self, batch_max: int) -> None:
        """One transaction, if there is anything to copy; all of it or nothing."""
        messages = [each for each in self._consumer.consume(batch_max, 0.2) if each.error() is None]
        if not messages:
            return
        watch = threading.Timer(TURN_SECONDS_MAX, _end_at_once)
        watch.daemon = True
        watch.start()
        try:
            self._copy(messages)
        except KafkaException as failure:
            error = failure.args[0]
            if error.fatal() or not error.txn_requires_abort():
                raise
            self._give_up()
        finally:
            watch.cancel()

    def _copy(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        for message in messages:
            partition = message.partition()
            assert partition is not None
            self._producer.produce(self._target, transformed(message.value() or b""), partition=partition)
        # The positions of what is in hand, and not of partitions that have come or gone meanwhile.
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            ends[message.topic(), message.partition()] = message.offset() + 1  # type: ignore[index, operator]
        self._retried(
            self._producer.send_offsets_to_transaction,
            [TopicPartition(topic, partition, offset) for (topic, partition), offset in ends.items()],
            self._consumer.consumer_group_metadata(),
        )
        self._retried(self._producer.commit_transaction)

    def _give_up(self) -> None:
        """Abort, and go back to what is committed."""
        self._retried(self._producer.abort_transaction)
        assigned = self._consumer.assignment()
        for place in self._retried(self._consumer.committed, assigned) if assigned else []:
            place.offset = max(place.offset, 0)
            self._consumer.seek(place)

    @staticmethod
    def _retried(step: Any, *arguments: Any) -> Any:
        """Do a step again for as long as the client itself says that this is right."""
        while True:
            try:
                return step(*arguments, SECONDS_MAX)
            except KafkaException as failure:
                error = failure.args[0]
                if error.code() == KafkaError._TIMED_OUT or not error.retriable():
                    raise


def _end_at_once() -> None:
    os._exit(BEYOND_REPAIR)


def main() -> int:
    bootstrap, source, target, name, seed, batch_max = sys.argv[1:]
    chance = random.Random(int(seed))
    try:
        copier = Copier(bootstrap, source, target, name)
        while True:
            copier.turn(chance.randint(1, int(batch_max)))
    except KafkaException as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        return BEYOND_REPAIR


if __name__ == "__main__":
    sys.exit(main())
