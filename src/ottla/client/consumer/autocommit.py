"""Commits the offsets of returned records at intervals, and before partitions are revoked.

Only `poll` starts a commit: its caller has processed the records of the poll before. So no offset is committed before
its record was processed.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from ottla.client.consumer.commits import OffsetCommits, Offsets
from ottla.client.errors import ClientError

LOGGER = logging.getLogger("ottla.client")
_REPEAT_S = 1.0
_LEAST_S = 0.01


class AutoCommit:
    """The clock of enable.auto.commit."""

    def __init__(
        self, settings: Mapping[str, Any], commits: OffsetCommits, consumed: Callable[[], Offsets]
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

    def commit_if_due(self, now: float) -> None:
        """Commit if the interval is over."""
        if self._due_at is None:
            self.reset(now)
        elif now >= self._due_at and not self._under_way:
            self.reset(now)
            offsets = self._consumed()
            # Committing the same offsets again keeps them from expiring, but it need not happen often.
            if offsets and (offsets != self._last or now >= self._last_at + _REPEAT_S):
                self._under_way = True
                self._last, self._last_at = offsets, now
                self._commits.commit_nowait(offsets, self._done)

    def due_in_s(self, now: float) -> float:
        """Return the time until the next commit."""
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

    async def commit_before_revocation(self, timeout_ms: float) -> None:
        """Commit before partitions are revoked. An error is only logged."""
        try:
            await self._commits.commit(self._consumed(), timeout_ms, retry_stale_epoch=True)
        except ClientError as error:
            LOGGER.warning("offsets were not committed before partitions were given up: %s", error)
