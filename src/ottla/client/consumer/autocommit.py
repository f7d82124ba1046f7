"""Commits what was handed out, from time to time, and before partitions go away.

Only `poll` starts a commit: whoever calls it is through with what the poll before returned, so nothing is committed
that the application has not seen, and lost to it if it dies.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ottla.client.consumer.commits import Commits, Offsets
from ottla.client.errors import ClientError

LOGGER = logging.getLogger("ottla.client")
_REPEAT_S = 1.0
_LEAST_S = 0.01


class AutoCommit:
    """The clock of enable.auto.commit."""

    def __init__(
        self, settings: Mapping[str, Any], commits: Commits, consumed: Callable[[], Offsets]
    ) -> None:
        self._commits = commits
        self._consumed = consumed
        self._interval_s: float = settings["auto.commit.interval.ms"] / 1000
        self._backoff_s: float = settings["retry.backoff.ms"] / 1000
        self._due_at: float | None = None
        self._under_way = False
        self._last: Offsets | None = None
        self._last_at = 0.0

    def reset(self, now: float) -> None:
        """Begin an interval."""
        self._due_at = now + self._interval_s

    def tick(self, now: float) -> None:
        """Commit, if it is time to."""
        if self._due_at is None:
            self.reset(now)
        elif now >= self._due_at and not self._under_way:
            self.reset(now)
            offsets = self._consumed()
            # The same again keeps offsets from expiring, but no oftener than that takes.
            if offsets and (offsets != self._last or now >= self._last_at + _REPEAT_S):
                self._under_way = True
                self._last, self._last_at = offsets, now
                self._commits.commit_nowait(offsets, self._done)

    def due_in_s(self, now: float) -> float:
        """Return how long there is nothing to do."""
        return max(_LEAST_S, self._interval_s if self._due_at is None else self._due_at - now)

    def _done(self, offsets: Offsets, error: ClientError | None) -> None:
        self._under_way = False
        if error is None:
            return
        self._last = None
        if error.retriable:
            self._due_at = asyncio.get_running_loop().time() + self._backoff_s
        else:
            LOGGER.warning("offsets were not committed: %s", error)

    async def finally_commit(self, timeout_ms: float) -> None:
        """Commit before partitions go away; failing that, say so in the log, since nothing can be done about it."""
        try:
            await self._commits.commit(self._consumed(), timeout_ms, stubborn=True)
        except ClientError as error:
            LOGGER.warning("offsets were not committed before partitions were given up: %s", error)
