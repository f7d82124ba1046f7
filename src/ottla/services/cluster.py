"""Whether the cluster answers, and what it is: asked of the brokers, at most once a second."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.world.clock import Clock

if TYPE_CHECKING:
    from ottla.client import Admin
    from ottla.client.admin import ClusterDescription

_KEPT_S = 1.0
_ANSWER_MS = 1000


@dataclass(frozen=True, slots=True)
class ClusterAnswer:
    """What is known of the cluster: a description, or why there is none."""

    description: "ClusterDescription | None"
    problem: str | None


class ClusterStatus:
    """Asks the cluster, for whoever wants to know. Nothing is connected before somebody asks."""

    def __init__(self, bootstrap: str, clock: Clock) -> None:
        self._bootstrap = bootstrap
        self._clock = clock
        self._admin: Admin | None = None
        self._answer: ClusterAnswer | None = None
        self._asked_at = 0.0
        self._asking = asyncio.Lock()

    async def ask(self) -> ClusterAnswer:
        """Return what the cluster says, or said within the last second."""
        async with self._asking:
            now = self._clock.monotonic()
            if self._answer is None or now - self._asked_at >= _KEPT_S:
                self._answer = await self._describe()
                self._asked_at = self._clock.monotonic()
            return self._answer

    async def problem(self) -> str | None:
        """Return why the cluster is of no use now, or None."""
        return (await self.ask()).problem

    async def close(self) -> None:
        """Hang up."""
        if self._admin is not None:
            await self._admin.close()
            self._admin = None

    async def _describe(self) -> ClusterAnswer:
        from ottla.client import Admin
        from ottla.client.errors import ClientError

        try:
            if self._admin is None:
                timeouts = {"request.timeout.ms": _ANSWER_MS, "default.api.timeout.ms": _ANSWER_MS}
                admin = Admin(self._bootstrap, {"client.id": "ottla-services", **timeouts})
                self._admin = await admin.__aenter__()
            return ClusterAnswer(await self._admin.cluster.describe(), None)
        except (ClientError, OSError) as error:
            return ClusterAnswer(
                None, f"{self._bootstrap} does not answer: {error.args[0] if error.args else error}"
            )
