"""Connections to clusters that outlive a task: Spark's Python processes are used again, and so is what they hold.

C1  A process has one event loop, in a thread of its own, and one open cluster for each set of settings.
C2  What belongs to the loop is touched on the loop alone. `run` brings work there and waits for it.
C3  A process that was forked begins anew: the loop's thread stayed behind in its parent.
C4  A cluster that could not be opened is forgotten, so whoever asks next tries again.

Nothing is closed: idle connections hang up by themselves (`connections.max.idle.ms`), the rest ends with the process.
"""

from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop

from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.errors import ClientError, Closed
from ottla.client.settings.resolve import ClientSettings
from ottla.client.shared_task import start_shared, wait_shared
from ottla.spark.settling import settle
from ottla.world.loop_thread import LoopThread

if TYPE_CHECKING:
    import asyncio

    from ottla.client.admin.request_router import RequestRouter

R = TypeVar("R")

PLANNING_MS = 15_000
_FOR_EVER = (1 << 31) - 1


class Connection:
    """An open cluster, and the loop it lives on."""

    def __init__(self, settings: ClientSettings, cluster: Cluster, thread: LoopThread) -> None:
        self.settings = settings
        self.cluster = cluster
        self.links = cluster.connections
        self._thread = thread

    @cached_property
    def desk(self) -> "RequestRouter":
        """Where questions are asked that are an administrator's, whatever kind of client the settings are for."""
        # Tasks do without, and start sooner for it.
        from ottla.client.admin.request_router import RequestRouter

        timeouts = {
            "default.api.timeout.ms": self.settings.get("default.api.timeout.ms", 60_000),
            "request.timeout.ms": self.settings["request.timeout.ms"],
        }
        return RequestRouter(self.cluster, {**timeouts, "retries": _FOR_EVER})

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the loop, and wait for what it returns or raises."""
        return self._thread.run(work)

    def call(self, work: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop, soon; nobody waits for it."""
        self._thread.call(work, *arguments)


class Pool:
    """The open clusters of one process."""

    def __init__(self, thread: LoopThread) -> None:
        self.thread = thread
        self._opening: dict[tuple[object, ...], asyncio.Task[Connection]] = {}
        # Those that are open, for whoever asks from another thread: it need not wait for the loop.
        self.made: dict[tuple[object, ...], Connection] = {}

    async def connection(self, settings: ClientSettings, open_ms: float | None = None) -> Connection:
        """Return the connection with these settings; called on the loop."""
        key = _key(settings)
        task = self._opening.get(key)
        if task is None:
            task = self._opening[key] = start_shared(self._open(settings, open_ms))
        try:
            return await wait_shared(task, lambda: Closed("the connection was closed while it was made"))
        except ClientError:
            if self._opening.get(key) is task:
                del self._opening[key]
            raise

    async def _open(self, settings: ClientSettings, open_ms: float | None) -> Connection:
        cluster = Cluster(settings, ClientConnections(settings))
        try:
            await cluster.open(settings.get("max.block.ms", open_ms))
        except BaseException:
            await cluster.close()
            raise
        made = self.made[_key(settings)] = Connection(settings, cluster, self.thread)
        return made


_pool: Pool | None = None


def planning(settings: ClientSettings) -> Connection:
    """Return an open connection for whoever plans a read. A wrong address is said soon, as by the command line.

    A task has more patience: it has brokers that answered when it was planned.
    """
    open_ms = None if "default.api.timeout.ms" in settings.given else PLANNING_MS
    return connected(settings, open_ms)


def connected(settings: ClientSettings, open_ms: float | None = None) -> Connection:
    """Return an open connection for these settings of a consumer, a producer or an admin client.

    NoBroker when none answers within `open_ms`, or else `default.api.timeout.ms`, or `max.block.ms` of a producer.
    """
    global _pool
    pool = _pool
    if pool is None or not pool.thread.is_alive:
        pool = _pool = Pool(LoopThread.borrow(uvloop.new_event_loop))
        settle()
    return pool.made.get(_key(settings)) or pool.thread.run(pool.connection(settings, open_ms))


def known(settings: ClientSettings) -> Connection | None:
    """Return the connection for these settings if this process has one; nothing is waited for."""
    pool = _pool
    return pool.made.get(_key(settings)) if pool is not None and pool.thread.is_alive else None


def _key(settings: ClientSettings) -> tuple[object, ...]:
    return (settings.kind, *sorted((name, repr(settings[name])) for name in settings.given))
