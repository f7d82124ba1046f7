"""confluent-kafka, which is librdkafka."""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.compat.clients.client import READ_SECONDS_MAX, Sample, Seen


class Confluent:
    name = "confluent-kafka"
    text_only = False

    def absent(self) -> str | None:
        return None

    def produce(
        self,
        bootstrap: str,
        topic: str,
        samples: Sequence[Sample],
        *,
        partition: int = 0,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "compression.codec": codec,
            "acks": acks,
            "enable.idempotence": idempotent,
            "message.max.bytes": 2_000_000,
            "linger.ms": 5,
        }
        producer = Producer(settings)
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)

        for sample in samples:
            optional: dict[str, Any] = {}
            if sample.timestamp_ms is not None:
                optional["timestamp"] = sample.timestamp_ms
            producer.produce(
                topic,
                key=sample.key,
                value=sample.value,
                headers=list(sample.headers),
                partition=partition,
                on_delivery=delivered,
                **optional,
            )
        unsent = producer.flush(READ_SECONDS_MAX)
        if failures:
            raise KafkaException(failures[0])
        assert unsent == 0, f"{unsent} records were not answered"

    def read(
        self,
        bootstrap: str,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        start_offset: int = 0,
        isolation: str = "read_uncommitted",
    ) -> list[Seen]:
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "assigned-by-hand",  # librdkafka wants a name even where no group is joined
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
        }
        consumer = Consumer(settings)
        try:
            consumer.assign([TopicPartition(topic, partition, start_offset)])
            seen: list[Seen] = []
            deadline = time.monotonic() + READ_SECONDS_MAX
            while len(seen) < count and time.monotonic() < deadline:
                for message in consumer.consume(count - len(seen), timeout=0.5):
                    error = message.error()
                    if error is not None:
                        raise KafkaException(error)
                    seen.append(_seen(message))
            return seen
        finally:
            consumer.close()


def _seen(message: Message) -> Seen:
    offset, headers = message.offset(), message.headers() or []
    assert offset is not None
    pairs = tuple((str(each[0]), _bytes(each[1])) for each in headers)
    return Seen(offset, message.timestamp()[1], _bytes(message.key()), _bytes(message.value()), pairs)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
