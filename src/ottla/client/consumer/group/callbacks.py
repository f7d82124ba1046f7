"""Calls the rebalance listener of the application.

An error of the listener does not stop the rebalance. It is raised to the application when the rebalance is complete.
A rebalance continues when its poll is cancelled. The next poll waits for it first.
"""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any

from ottla.client.consumer.subscription import Subscription
from ottla.client.record import TopicPartition


class RebalanceCallbacks:
    """Calls the listener, and runs the step of a rebalance that does."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._step: asyncio.Task[Exception | None] | None = None

    # Calls

    async def assigned(self, partitions: Collection[TopicPartition]) -> Exception | None:
        """Call the listener with added partitions, even if there are none. Return its error."""
        return await self._call_listener("on_partitions_assigned", partitions)

    async def revoked(self, partitions: Collection[TopicPartition]) -> Exception | None:
        """Call the listener with partitions to revoke."""
        return await self._call_listener("on_partitions_revoked", partitions) if partitions else None

    async def lost(self, partitions: Collection[TopicPartition]) -> Exception | None:
        """Call the listener with lost partitions."""
        return await self._call_listener("on_partitions_lost", partitions) if partitions else None

    async def _call_listener(self, name: str, partitions: Collection[TopicPartition]) -> Exception | None:
        listener = self._subscription.listener
        if listener is None:
            return None
        try:
            outcome = getattr(listener, name)(sorted(partitions))
            if outcome is not None:
                await outcome
        except Exception as error:  # noqa: BLE001  # every error is raised to the application later
            return error
        return None

    # Steps

    @property
    def is_busy(self) -> bool:
        """Whether a step of a cancelled poll is still running."""
        return self._step is not None

    async def run(self, step: Coroutine[Any, Any, Exception | None]) -> None:
        """Run a step to its end, even if the caller is cancelled. Raise the error that it returns."""
        assert self._step is None
        self._step = asyncio.create_task(step)
        await self.finish()

    async def finish(self) -> None:
        """Wait for the running step, if there is one. Raise the error that it returns."""
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
        """Cancel the running step."""
        if self._step is not None:
            self._step.cancel()
            await asyncio.gather(self._step, return_exceptions=True)
            self._step = None
