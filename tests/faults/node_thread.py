"""A node inside the test's own process, on a disk of the test's choice, on a loop in a thread of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import uvloop

from ottla.cli.storage import own_addresses
from ottla.node.node import Node
from ottla.node.settings import Settings
from ottla.node.world import World
from ottla.quorum.storage import Format, format_storage
from ottla.wire.uuid import uuid_text
from ottla.world.clock import RealClock
from ottla.world.disk import Disk
from ottla.world.entropy import RealEntropy
from ottla.world.network import RealNetwork
from ottla.world.worker import ThreadWorker
from tests.peers.server import HOST, free_ports

SECONDS_MAX = 10.0
DATA = "/data"


class Hung(Exception):
    """Something that should have come to an end has not."""


class NodeThread:
    """One node, its loop and its thread. `port` stays the same from start to start."""

    def __init__(self, disk: Disk, settings: Mapping[str, str] | None = None) -> None:
        self.disk = disk
        self.port, self.controller_port = free_ports(2)
        self.reports: list[str] = []
        self.gave_up: list[str] = []
        self.errors: list[str] = []  # what reached the loop because nobody caught it
        self._overrides = dict(settings or {})
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._node: Node | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def node(self) -> Node:
        assert self._node is not None, "the node is not running"
        return self._node

    @property
    def settings(self) -> Settings:
        return Settings.from_properties(
            {
                "node.id": "1",
                "process.roles": "broker,controller",
                "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": f"{HOST}:{self.controller_port}",
                "log.dirs": DATA,
            }
            | self._overrides
        )

    def format(self) -> Self:
        """Make the disk that of a new cluster."""
        settings, entropy = self.settings, RealEntropy()
        wish = Format(
            cluster_id=uuid_text(entropy.uuid()),
            node_id=settings.node_id,
            directories=settings.directories,
            metadata_directory=settings.metadata_log_dir,
            standalone=own_addresses(settings),
        )
        for directory in settings.directories:
            self.disk.make_dirs(directory)
            self.disk.sync_dir(directory.rpartition("/")[0])
        format_storage(self.disk, RealClock(), entropy, wish)
        return self

    def start(self) -> Self:
        """Start, and return once the node serves; whatever keeps it from starting is raised here."""
        loop = self._loop = uvloop.new_event_loop()
        loop.set_exception_handler(lambda _, context: self.errors.append(_words(context)))
        self._thread = threading.Thread(target=loop.run_forever, name="node", daemon=True)
        self._thread.start()
        world = World(
            RealClock(),
            self.disk,
            RealNetwork(),
            RealEntropy(),
            loop,
            lambda name: ThreadWorker(loop, name),
            self.reports.append,
        )

        async def begin() -> None:
            self._node = Node(self.settings, world, self.gave_up.append)
            await self._node.start()

        try:
            try:
                self._wait(begin())
            except TimeoutError:
                raise Hung(f"the node neither starts nor fails; it gave up: {self.gave_up}") from None
        except BaseException:
            with contextlib.suppress(Exception):
                self._wait(self.node.stop())
            self._end()
            raise
        return self

    def stop(self) -> None:
        """Stop as on SIGTERM."""
        if self._node is not None:
            try:
                self._wait(self._node.stop())
            finally:
                self._end()

    def abandon(self) -> None:
        """Stop whatever way the node can on a disk that has died under it."""
        with contextlib.suppress(OSError):
            self.stop()

    def call(self, function: Callable[[Node], Any]) -> Any:
        """Run a function of the node on its loop, and return what it returns."""
        node = self.node

        async def ask() -> Any:
            return function(node)

        return self._wait(ask())

    def _wait(self, work: Any) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS_MAX)

    def _end(self) -> None:
        loop, thread = self._loop, self._thread
        assert loop is not None and thread is not None
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS_MAX)
        loop.close()
        self._node = self._loop = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.abandon()


def _words(context: dict[str, Any]) -> str:
    return f"{context.get('message')}: {context.get('exception')!r}"
