"""Exactly-once copying: read, transform, write and commit the offsets in one transaction; now and then abort it."""

import asyncio
from contextlib import suppress

from ottla.client.consumer.consumer import Consumer
from ottla.client.errors import ClientError, TimedOut
from ottla.client.producer.producer import Producer
from ottla.client.record import OffsetAndMetadata, Record, TopicPartition
from ottla.sim.cluster.fleet import Client, Fleet
from ottla.sim.cluster.history import DONE, UNDONE, Place, Transacted
from ottla.sim.cluster.workloads.workload import LOG, OUT, PARTITIONS, Workload

GROUP = "copiers"
_ABORTS = 0.15
_SIZE_MAX = 6


class Copying(Workload):
    """Copiers of one group, each with a transactional id of its own."""

    name = "copy"

    def __init__(self, fleet: Fleet, count: int) -> None:
        super().__init__(fleet, tuple(f"copier-{number}" for number in range(1, count + 1)))
        self._numbers = 0
        self._copied: dict[Place, int] = {}

    async def live(self, client: Client) -> None:
        """Copy, as long as it lives; whatever goes wrong, begin anew."""
        while not self.is_enough:
            try:
                async with (
                    client.producer(transactional_id=client.name, transaction_timeout_ms=5_000) as producer,
                    client.consumer(
                        group_id=GROUP,
                        isolation_level="read_committed",
                        session_timeout_ms=6_000,
                        heartbeat_interval_ms=1_000,
                    ) as consumer,
                ):
                    await producer.init_transactions()
                    await consumer.subscribe([LOG])
                    while not self.is_enough:
                        records = await consumer.poll(timeout=0.5, max_records=_SIZE_MAX)
                        if records:
                            await self._copy(client, producer, consumer, records)
            except ClientError as error:
                client.note(f"a copier is given up: {type(error).__name__} {error}")
            await asyncio.sleep(0.2 + client.entropy.random())

    async def _copy(
        self, client: Client, producer: Producer, consumer: Consumer, records: list[Record]
    ) -> None:
        """Copy some records; where that fails, go back to the first of them."""
        self._numbers += 1
        number = self._numbers
        transaction = Transacted(client.process.name)
        self.fleet.history.transactions.append(transaction)
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        try:
            producer.begin_transaction()
            for record in records:
                value = b"%d|%s" % (number, record.value)
                place = (OUT, client.entropy.below(PARTITIONS))
                transaction.values.append((place, value))
                await producer.send(*place[:1], value, partition=place[1])
                offsets[record.topic_partition] = OffsetAndMetadata(
                    record.offset + 1, leader_epoch=record.leader_epoch
                )
            await producer.send_offsets_to_transaction(offsets, consumer.group_metadata)
            if client.entropy.random() < _ABORTS:
                await producer.abort_transaction()
                transaction.outcome = UNDONE
            else:
                await producer.commit_transaction()
                transaction.outcome = DONE
        except TimedOut:
            raise  # nobody knows how it ends; the next producer will see to it that it does
        except ClientError as error:
            client.note(f"transaction {number} failed: {error}")
            await producer.abort_transaction()
            transaction.outcome = UNDONE
        if transaction.outcome == UNDONE:
            for record in reversed(records):
                with suppress(ClientError):
                    consumer.seek(record.topic_partition, record.offset)
        else:
            for (topic, index), copied in offsets.items():
                self._copied[topic, index] = copied.offset

    @property
    def is_over(self) -> bool:
        """Whether all that there is to copy is copied."""
        for index in range(PARTITIONS):
            ends = [each.log.end_offset for each in self.fleet.replicas((LOG, index)).values()]
            if not ends or self._copied.get((LOG, index), 0) < max(ends):
                return False
        return True
