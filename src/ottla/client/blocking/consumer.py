"""The consumers without asyncio."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator
from functools import partial
from typing import Any

from ottla.client.blocking.face import Face
from ottla.client.consumer.consumer import Consumer as AsyncConsumer
from ottla.client.consumer.listener import RebalanceListener
from ottla.client.record import Record, TopicPartition


class Consumer(Face, kind=AsyncConsumer):
    """Reads records: `for record in consumer`, or `poll`. Heartbeats go on while the application works.

    A rebalance listener is called in the thread that polls, so it may commit and seek.
    """

    def subscribe(
        self, topics: Any = (), *, pattern: Any = None, listener: RebalanceListener | None = None
    ) -> None:
        """Read topics as a member of the group; see the consumer of asyncio."""
        there = None if listener is None else _Elsewhere(listener, self)
        self._run(self._client.subscribe(topics, pattern=pattern, listener=there))

    def __iter__(self) -> Iterator[Record]:
        """Go through the records one by one, for as long as the consumer is open. Raises what `poll` raises."""
        client = self._client
        while True:
            pending = client._pending
            for record in pending:
                yield record
                if pending is not client._pending:
                    break  # somebody has sought elsewhere meanwhile
            else:
                self._run(client._fill())


class _Elsewhere(RebalanceListener):
    """A listener whose methods are called in the thread that waits for the loop."""

    def __init__(self, listener: RebalanceListener, face: Face) -> None:
        self._listener = listener
        self._face = face

    def on_assigned(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Pass it on."""
        return self._have(self._listener.on_assigned, partitions)

    def on_revoked(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Pass it on."""
        return self._have(self._listener.on_revoked, partitions)

    def on_lost(self, partitions: Collection[TopicPartition]) -> Awaitable[None] | None:
        """Pass it on."""
        return self._have(self._listener.on_lost, partitions)

    async def _have(
        self, method: Callable[[Collection[TopicPartition]], Any], partitions: Collection[TopicPartition]
    ) -> None:
        waiting = self._face._waiting
        work = partial(method, partitions)
        result = await waiting[-1].have(work) if waiting else work()
        if inspect.isawaitable(result):
            await result
