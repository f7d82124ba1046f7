"""Tells the application's listener of partitions that come and go.

What a listener raises does not stop the rebalance: it is kept, and raised to the application when that is through.
A rebalance that is under way when a poll is cancelled goes on; the next poll waits for it first.
"""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any

from ottla.client.consumer.subscription import Subscription
from ottla.client.record import TopicPartition


class Callbacks:
    """The way to the listener, and the step of a rebalance that calls it."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._step: asyncio.Task[Exception | None] | None = None

    # Telling

    async def assigned(self, partitions: Collection[TopicPartition]) -> Exception | None:
        """Tell of partitions that were added, be there any or not; return what the listener raised."""
        return await self._tell("on_partitions_assigned", partitions)

    async def revoked(self, partitions: Collection[TopicPartition]) -> Exception | None:
        """Tell of partitions that are about to go."""
        return await self._tell("on_partitions_revoked", partitions) if partitions else None

    async def lost(self, partitions: Collection[TopicPartition]) -> Exception | None:
        """Tell of partitions that are gone."""
        return await self._tell("on_partitions_lost", partitions) if partitions else None

    async def _tell(self, name: str, partitions: Collection[TopicPartition]) -> Exception | None:
        listener = self._subscription.listener
        if listener is None:
            return None
        try:
            outcome = getattr(listener, name)(sorted(partitions))
            if outcome is not None:
                await outcome
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the application's to hear of
            return error
        return None

    # Steps

    @property
    def is_busy(self) -> bool:
        """Whether a step was left behind by a poll that was cancelled."""
        return self._step is not None

    async def run(self, step: Coroutine[Any, Any, Exception | None]) -> None:
        """Run a step to its end, even if whoever waits for it gives up; raise what it returns."""
        assert self._step is None
        self._step = asyncio.create_task(step)
        await self.finish()

    async def finish(self) -> None:
        """Wait for the step that is under way, if there is any; raise what it returns."""
        step = self._step
        if step is None:
            return
        try:
            error = await asyncio.shield(step)
        finally:
            if step.done():
                self._step = None
        if error is not None:
            raise error

    async def close(self) -> None:
        """Leave no step behind."""
        if self._step is not None:
            self._step.cancel()
            await asyncio.gather(self._step, return_exceptions=True)
            self._step = None
