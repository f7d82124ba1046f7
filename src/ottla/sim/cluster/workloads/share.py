"""A share group: members take records, deal with them or not, say so or not, come, leave and die."""

import asyncio
from typing import Any, TypeVar

from ottla.client.admin.configs import Resource
from ottla.client.connections import ClientConnections
from ottla.client.consumer.share.consumer import AcknowledgeType, ShareConsumer
from ottla.client.errors import ClientError, WrongState
from ottla.client.record import Record
from ottla.share.session import FINAL_EPOCH, INITIAL_EPOCH
from ottla.sim.cluster.fleet import LOCK_MS, Client, Fleet
from ottla.sim.cluster.history import Handed, Read, Word
from ottla.sim.cluster.workloads.workload import LOG, PARTITIONS, Workload
from ottla.wire.message import Message
from ottla.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.share_fetch import ShareFetchRequest

GROUP = "sharers"
_LEAVES_OPEN, _DAWDLES = 0.05, 0.12
# How often a record is dealt with, of no use, to be tried again, or taking long.
_SHARES = (
    (0.80, AcknowledgeType.ACCEPT),
    (0.84, AcknowledgeType.REJECT),
    (0.93, AcknowledgeType.RELEASE),
    (1.00, AcknowledgeType.RENEW),
)

M = TypeVar("M", bound=Message)


class _Tap:
    """Links that note every share fetch and every acknowledgement, and what was answered."""

    def __init__(self, links: ClientConnections, fleet: Fleet, client: Client) -> None:
        self._links = links
        self._fleet = fleet
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._links, name)

    async def ask(self, node_id: int, request: Message, response: type[M]) -> M:
        """Ask, and note what is said by whom, and when."""
        if not isinstance(request, ShareFetchRequest | ShareAcknowledgeRequest):
            return await self._links.ask(node_id, request, response)
        asked_s = self._fleet.timeline.now
        eras = {index: self._era(node_id, index) for index in range(PARTITIONS)}
        words = self._said(node_id, request, eras)
        epoch = request.share_session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._fleet.history.sharing.sessions_ended.append((asked_s, request.member_id or "", node_id))
        answer: Any = await self._links.ask(node_id, request, response)
        parts = {part.partition_index: part for topic in answer.responses for part in topic.partitions}
        for word in words:
            part = parts.get(word.place[1])
            word.heard_s = self._fleet.timeline.now
            is_fetch = isinstance(request, ShareFetchRequest)
            code = None if part is None else part.acknowledge_error_code if is_fetch else part.error_code
            word.taken = not answer.error_code and code == 0
            if self._era(node_id, word.place[1]) is not word.era:
                word.era = None
        if isinstance(request, ShareFetchRequest):
            for index, part in parts.items():
                self._handed(node_id, request.member_id or "", index, part, asked_s, eras[index])
        return answer  # type: ignore[no-any-return]

    def _era(self, node_id: int, index: int) -> Any:
        """The share partition that a node has of a partition, which is another one after each election."""
        machine = self._fleet.machines[node_id]
        found = self._fleet.replicas((LOG, index)).get(node_id)
        if machine.node is None or found is None:
            return None
        seats = machine.node.broker.share.partitions.seats
        return next((seat for seat in seats if seat.partition is found and seat.key.group_id == GROUP), None)

    def _said(
        self, node_id: int, request: ShareFetchRequest | ShareAcknowledgeRequest, eras: dict[int, Any]
    ) -> list[Word]:
        sharing, now = self._fleet.history.sharing, self._fleet.timeline.now
        words: list[Word] = []
        for topic in request.topics:
            for part in topic.partitions:
                era = eras[part.partition_index]
                for batch in part.acknowledgement_batches:
                    for offset in range(batch.first_offset, batch.last_offset + 1):
                        kinds = batch.acknowledge_types
                        kind = kinds[0] if len(kinds) == 1 else kinds[offset - batch.first_offset]
                        words.append(
                            Word(
                                request.member_id or "",
                                self._client.host,
                                node_id,
                                era,
                                -1 if era is None else era.share.leader_epoch,
                                (LOG, part.partition_index),
                                offset,
                                kind,
                                now,
                            )
                        )
        sharing.words += words
        return words

    def _handed(
        self, node_id: int, member: str, index: int, part: Any, asked_s: float, era_before: Any
    ) -> None:
        era = self._era(node_id, index)
        era = era if era is era_before else None
        for run in part.acquired_records:
            for offset in range(run.first_offset, run.last_offset + 1):
                self._fleet.history.sharing.handed.append(
                    Handed(
                        member,
                        self._client.host,
                        node_id,
                        era,
                        -1 if era is None else era.share.leader_epoch,
                        (LOG, index),
                        offset,
                        run.delivery_count,
                        asked_s,
                        self._fleet.timeline.now,
                    )
                )


class Sharing(Workload):
    """Members of one share group."""

    name = "share"

    def __init__(self, fleet: Fleet, count: int) -> None:
        super().__init__(fleet, tuple(f"sharer-{number}" for number in range(1, count + 1)))

    async def live(self, client: Client) -> None:
        """Take records until it is enough; now and then leave, and come back."""
        while not self.is_enough:
            try:
                async with client.admin() as admin:
                    await admin.configs.alter(
                        {Resource.group(GROUP): {"share.auto.offset.reset": "earliest"}}
                    )
                async with client.share_consumer(group_id=GROUP) as consumer:
                    consumer._fetcher._connections = _Tap(consumer._connections, self.fleet, client)  # type: ignore[assignment]
                    await consumer.subscribe([LOG])
                    client.note("joins")
                    for _ in range(10 + client.entropy.below(40)):
                        if not self.is_enough:
                            await self._turn(client, consumer)
                    client.note("leaves")
            except (ClientError, WrongState) as error:
                client.note(f"a share consumer is given up: {error}")
            await asyncio.sleep(0.3 + client.entropy.random())

    async def _turn(self, client: Client, consumer: ShareConsumer) -> None:
        records = await consumer.poll(timeout=0.5)
        draw = client.entropy.random
        for record in records:
            place = (record.topic, record.partition)
            self.fleet.history.sharing.values.append(
                Read(client.process.name, place, record.offset, record.value)
            )
        if records and draw() < _DAWDLES and not self.is_enough:
            await asyncio.sleep(2 * draw() * LOCK_MS / 1000)
        for record in records:
            self._judge(consumer, record, draw())
        if records and draw() < 0.5:
            await consumer.commit()

    def _judge(self, consumer: ShareConsumer, record: Record, chance: float) -> None:
        consumer.acknowledge(record, next(kind for share, kind in _SHARES if chance <= share))

    @property
    def is_over(self) -> bool:
        """Whether the group is done with all that is in the log."""
        for index in range(PARTITIONS):
            replicas = self.fleet.replicas((LOG, index))
            leader = self.fleet.leader_of((LOG, index))
            if leader is None or leader not in replicas:
                return False
            node = self.fleet.machines[leader].node
            assert node is not None
            starts = [
                seat.share.start_offset
                for seat in node.broker.share.partitions.seats
                if seat.key.group_id == GROUP and seat.partition is replicas[leader]
            ]
            if not starts or starts[0] < max(each.log.end_offset for each in replicas.values()):
                return False
        return True
