"""kafka-python."""

import time
from collections.abc import Sequence

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.compat.clients.client import READ_SECONDS_MAX, Sample, Seen


class KafkaPython:
    name = "kafka-python"
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
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=2_000_000,
            linger_ms=5,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=sample.value,
                    key=sample.key,
                    headers=list(sample.headers),
                    partition=partition,
                    timestamp_ms=sample.timestamp_ms,
                )
                for sample in samples
            ]
            for future in futures:
                future.get(timeout=READ_SECONDS_MAX)
        finally:
            producer.close(timeout=10)

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
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, isolation_level=isolation
        )
        try:
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek(place, start_offset)
            seen: list[Seen] = []
            deadline = time.monotonic() + READ_SECONDS_MAX
            while len(seen) < count and time.monotonic() < deadline:
                for records in consumer.poll(500, max_records=count - len(seen)).values():
                    for record in records:
                        headers = tuple((name, value) for name, value in record.headers)
                        seen.append(Seen(record.offset, record.timestamp, record.key, record.value, headers))
            return seen
        finally:
            consumer.close()
