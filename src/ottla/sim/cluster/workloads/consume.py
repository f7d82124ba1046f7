"""A group that reads and commits; its members come, leave and die."""

import asyncio
from collections.abc import Collection

from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.listener import RebalanceListener
from ottla.client.errors import ClientError
from ottla.client.record import OffsetAndMetadata, Record, TopicPartition
from ottla.sim.cluster.fleet import Client, Fleet
from ottla.sim.cluster.history import Begun, Jumped, Owned, Place, Read
from ottla.sim.cluster.workloads.workload import LOG, OUT, PARTITIONS, Workload

GROUP = "readers"


class _Notes(RebalanceListener):
    """What was confirmed when a member was given its partitions."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.fresh: dict[Place, int] = {}
        self.next: dict[Place, int] = {}
        self.epochs: dict[Place, int] = {}  # of the last record

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        for place in partitions:
            self.fresh[place] = self._fleet.history.floor(GROUP, place)
            self.next.pop(place, None)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        for place in partitions:
            self.fresh.pop(place, None)
            self.next.pop(place, None)


class Consuming(Workload):
    """Members of one group, which see only what is committed."""

    name = "consume"

    def __init__(self, fleet: Fleet, count: int, protocol: str) -> None:
        super().__init__(fleet, tuple(f"reader-{number}" for number in range(1, count + 1)))
        self._protocol = protocol
        self._turns = 0

    def _settings(self) -> dict[str, object]:
        own: dict[str, object] = {"group.id": GROUP, "isolation.level": "read_committed"}
        own |= {"group.protocol": self._protocol}
        if self._protocol == "classic":
            own |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000}
        return own

    async def live(self, client: Client) -> None:
        """Read until it is enough; now and then leave, and come back."""
        while not self.is_enough:
            notes = _Notes(self.fleet)
            try:
                async with client.consumer(**self._settings()) as consumer:
                    await consumer.subscribe([LOG, OUT], listener=notes)
                    client.note("joins")
                    for _ in range(8 + client.entropy.below(40)):
                        if not self.is_enough:
                            await self._turn(client, consumer, notes)
                    client.note("leaves")
            except ClientError as error:
                client.note(f"a consumer is given up: {error}")
            await asyncio.sleep(0.3 + client.entropy.random())

    async def _turn(self, client: Client, consumer: Consumer, notes: _Notes) -> None:
        history = self.fleet.history
        records = await consumer.poll(timeout=0.5)
        generation = consumer.group_metadata.generation_id
        places: frozenset[Place] = consumer.assignment
        if generation > 0 and places:
            member = consumer.group_metadata.member_id
            history.owned.append(Owned(GROUP, member, generation, places, client.process.name))
        for record in records:
            self._take(client, record, notes)
        if records and client.entropy.random() < 0.5:
            await self._commit(client, consumer, notes)

    def _take(self, client: Client, record: Record, notes: _Notes) -> None:
        history, place = self.fleet.history, (record.topic, record.partition)
        history.reads.append(Read(client.process.name, place, record.offset, record.value))
        expected = notes.next.get(place, record.offset)
        # Where transactions are, so are markers, which nobody is handed.
        if record.offset < expected or (place[0] == LOG and record.offset > expected):
            history.jumps.append(Jumped(client.process.name, place, expected, record.offset))
        if place in notes.fresh:
            floor = notes.fresh.pop(place)
            attempted = history.attempted.get((GROUP, place), 0)
            history.begun.append(Begun(GROUP, client.process.name, place, record.offset, floor, attempted))
        notes.next[place] = record.offset + 1
        notes.epochs[place] = record.leader_epoch

    async def _commit(self, client: Client, consumer: Consumer, notes: _Notes) -> None:
        offsets = {
            TopicPartition(*place): OffsetAndMetadata(offset, leader_epoch=notes.epochs[place])
            for place, offset in notes.next.items()
        }
        if not offsets:
            return
        for place, committed in offsets.items():
            self.fleet.history.attempt(GROUP, place, committed.offset)
        try:
            await consumer.commit(offsets)
        except BaseException as error:
            for place, committed in offsets.items():
                self.fleet.history.doubt(GROUP, place, committed.offset)
            if not isinstance(error, ClientError):
                raise
            client.note(f"a commit failed: {error}")
        else:
            for place, committed in offsets.items():
                self.fleet.history.confirm(GROUP, place, committed.offset)

    @property
    def is_over(self) -> bool:
        """Whether somebody of the group has read all that there is to read in the log."""
        seen: dict[Place, int] = {}
        for read in self.fleet.history.reads:
            seen[read.place] = max(seen.get(read.place, 0), read.offset + 1)
        for index in range(PARTITIONS):
            ends = [each.log.end_offset for each in self.fleet.replicas((LOG, index)).values()]
            if not ends or seen.get((LOG, index), 0) < max(ends):
                return False
        return True
