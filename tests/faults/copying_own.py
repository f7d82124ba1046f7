"""The copier of `copying`, built on Ottla's own client: transactions v2, and both group protocols.

python -m tests.faults.copying_own BOOTSTRAP SOURCE TARGET NAME SEED BATCH_MAX
"""

import asyncio
import random
import sys

from ottla.client import Consumer, Producer, Record, TopicPartition
from ottla.client.errors import ClientError, MustAbort
from tests.faults.copying import BEYOND_REPAIR, GROUP, transformed

PATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "request.timeout.ms": 10_000,
}


async def copy(
    bootstrap: str, source: str, target: str, name: str, chance: random.Random, batch_max: int
) -> None:
    reading = PATIENT | {
        "group.id": GROUP,
        "client.id": name,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "session.timeout.ms": 2000,
        "heartbeat.interval.ms": 200,
        "fetch.max.wait.ms": 50,
    }
    writing = PATIENT | {"transactional.id": name, "linger.ms": 1}
    async with Producer(bootstrap, writing) as producer, Consumer(bootstrap, reading) as consumer:
        await producer.init_transactions()
        await consumer.subscribe([source])
        while True:
            records = await consumer.poll(timeout=0.2, max_records=chance.randint(1, batch_max))
            if records:
                await _turn(producer, consumer, target, records)


async def _turn(producer: Producer, consumer: Consumer, target: str, records: list[Record]) -> None:
    """One transaction; all of it or nothing, and then back to what is committed."""
    ends: dict[TopicPartition, int] = {}
    for record in records:
        ends[record.topic_partition] = record.offset + 1
    try:
        async with producer.transaction():
            for record in records:
                await producer.send(target, transformed(record.value), partition=record.partition)
            await producer.send_offsets_to_transaction(ends, consumer.group_metadata)
    except MustAbort:
        committed = await consumer.committed(ends)
        for place, found in committed.items():
            if place in consumer.assignment:
                consumer.seek(place, 0 if found is None else found.offset)


def main() -> int:
    bootstrap, source, target, name, seed, batch_max = sys.argv[1:]
    try:
        asyncio.run(copy(bootstrap, source, target, name, random.Random(int(seed)), int(batch_max)))
    except ClientError as error:
        print(f"{name}: {error!r}", file=sys.stderr)
        return BEYOND_REPAIR
    return 0


if __name__ == "__main__":
    sys.exit(main())
