"""aiokafka."""

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.compat.clients.client import READ_SECONDS_MAX, Sample, Seen


class AioKafka:
    name = "aiokafka"
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
        async def work() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks="all" if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                max_request_size=2_000_000,
                linger_ms=5,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=sample.value,
                        key=sample.key,
                        headers=list(sample.headers),
                        partition=partition,
                        timestamp_ms=sample.timestamp_ms,
                    )
                    for sample in samples
                ]
                await asyncio.wait_for(asyncio.gather(*futures), READ_SECONDS_MAX)
            finally:
                await producer.stop()

        asyncio.run(work())

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
        async def work() -> list[Seen]:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                group_id=None,
                enable_auto_commit=False,
                isolation_level=isolation,
            )
            await consumer.start()
            seen: list[Seen] = []
            try:
                place = TopicPartition(topic, partition)
                consumer.assign([place])
                consumer.seek(place, start_offset)
                async with asyncio.timeout(READ_SECONDS_MAX):
                    while len(seen) < count:
                        record = await consumer.getone()
                        headers = tuple((name, value) for name, value in record.headers)
                        seen.append(Seen(record.offset, record.timestamp, record.key, record.value, headers))
            except TimeoutError:
                pass  # the caller compares what came with what it wanted
            finally:
                await consumer.stop()
            return seen

        return asyncio.run(work())
