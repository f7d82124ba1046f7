"""The workload's client on librdkafka: idempotent, or in transactions; it reads what is committed.

A delivery that failed is in doubt, whatever the error says, unless librdkafka has never sent it. A transaction has
failed when it was called off and the coordinator said yes.

Two faults of librdkafka would show here as the broker's (`tests/compat/test_librdkafka_quirks.py` plays both on Apache
Kafka, too), so its ways into them are closed, and no finding is explained away:

Q1  A producer whose abort has dropped a message from its queue is replaced: it would give the number of a message that
    may be written to the next one. The new one begins with a new epoch.
Q2  A consumer is assigned at an offset, never at "the end": it may look that up again later, and skip what is between.
"""

import itertools
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ottla.sim.history.op import Poll, Send, Step
from ottla.sim.history.workload import Doubtful, Refused

SECONDS_MAX = 20.0
POLLED_MAX = 500
SETTINGS: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "socket.timeout.ms": 5_000,
}
_names = itertools.count(1)


def place(key: str) -> tuple[str, int]:
    """A key is a partition: `topic-3`."""
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


class RdkafkaClient:
    """A producer and a consumer; transactional if it has a name for that."""

    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        common = {"bootstrap.servers": bootstrap, **SETTINGS}
        settings = common | {
            "enable.idempotence": True,
            "linger.ms": 1,
            "message.timeout.ms": int(SECONDS_MAX * 1000),
        }
        if transactional_id is not None:
            settings |= {"transactional.id": transactional_id, "transaction.timeout.ms": 30_000}
        self._transacts = transactional_id is not None
        self._ready = False
        self._has_purged = False
        self._settings = settings
        self._producer = Producer(settings)
        self._consumer = Consumer(
            common
            | {
                "group.id": f"reader-{next(_names)}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                # What was acknowledged and is gone shows as a step back.
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )

    def assign(self, keys: Sequence[str], *, from_start: bool) -> None:
        places = [TopicPartition(*place(key)) for key in keys]
        for each in places:
            each.offset = 0 if from_start else self._end_of(each)
        self._consumer.assign(places)

    def _end_of(self, partition: TopicPartition) -> int:
        """Where a partition ends now; its beginning if nobody says, which is as good a place to read from."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                _, end = self._consumer.get_watermark_offsets(partition, timeout=2)
            except KafkaException:
                continue
            return end
        return 0

    def poll(self) -> Poll:
        # One by one: a batch may hold what was fetched before a change of leaders, and the same again from after it.
        seen = []
        message = self._consumer.poll(0.1)
        while message is not None:
            if message.error() is None:
                key = f"{message.topic()}-{message.partition()}"
                seen.append((key, message.offset() or 0, (message.value() or b"").decode()))
            message = self._consumer.poll(0) if len(seen) < POLLED_MAX else None
        return Poll(tuple(seen))

    def send(self, sends: Sequence[Send]) -> Sequence[Send]:
        done, errors = self._produce(sends)
        self._flush()
        if all(at in done for at in range(len(sends))):
            return [done[at] for at in range(len(sends))]
        raise Doubtful(
            "; ".join(sorted(errors)) or "no answer", [done.get(at, send) for at, send in enumerate(sends)]
        )

    def transact(self, steps: Sequence[Step], *, abort: bool) -> Sequence[Step]:
        results: list[Step] = list(steps)
        try:
            if not self._ready:
                self._producer.init_transactions(SECONDS_MAX)
                self._ready = True
            self._producer.begin_transaction()
        except KafkaException as error:
            self._check_fatal(error, [])
            raise Refused(f"did not begin: {error}", results) from error
        places = []
        for at, step in enumerate(steps):
            if isinstance(step, Send):
                places.append((at, self._produce([step])[0]))
            else:
                results[at] = self.poll()
        try:
            if not abort:
                self._end(self._producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise Doubtful(f"commit: {error}", results) from error
            abort = True
        if abort:
            try:
                self._end(self._producer.abort_transaction)
            except KafkaException as error:
                raise Doubtful(f"abort: {error}", results) from error
            self._producer.poll(0)
            if self._has_purged:
                self._producer = Producer(self._settings)
                self._ready = self._has_purged = False
            raise Refused("called off", results)
        for at, done in places:
            results[at] = done.get(0, results[at])
        return results

    def close(self) -> None:
        self._producer.purge()
        self._consumer.close()

    def _produce(self, sends: Sequence[Send]) -> tuple[dict[int, Send], set[str]]:
        done: dict[int, Send] = {}
        errors: set[str] = set()
        for at, send in enumerate(sends):

            def delivered(error: KafkaError | None, message: Any, at: int = at, send: Send = send) -> None:
                if error is not None:
                    errors.add(str(error))
                    self._has_purged |= error.code() == KafkaError._PURGE_QUEUE
                else:
                    offset = message.offset()
                    done[at] = Send(send.key, send.value, offset if offset >= 0 else None)

            topic, partition = place(send.key)
            try:
                self._producer.produce(topic, send.value.encode(), partition=partition, on_delivery=delivered)
            except (BufferError, KafkaException) as error:
                errors.add(str(error))
        return done, errors

    def _flush(self) -> None:
        self._producer.flush(SECONDS_MAX + 5)

    def _end(self, how: Any) -> None:
        """Commit or abort, for as long as it makes sense to try."""
        deadline = time.monotonic() + 2 * SECONDS_MAX
        while True:
            try:
                how(SECONDS_MAX)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def _check_fatal(self, error: KafkaException, steps: Sequence[Step]) -> None:
        if error.args[0].fatal():
            raise Doubtful(f"fatal: {error}", steps) from error
