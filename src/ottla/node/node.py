"""A node: every part of a broker and its controller, put together, started and stopped.

    __init__ --start()--> SERVING --stop()--> STOPPED

N1  Start: directories are locked and loaded, then the quorum, then the partitions of its image, then the ports, then
    the registration. Only a broker that is out of its fence accepts connections: whoever connects is served.
N2  Stop: the ports first, then everything is made durable and marked clean. A stop that cannot finish leaves the
    directory as a crash would, and the next start recovers it.
N3  A directory that fails takes its partitions with it. When no directory is left, or the metadata cannot be written,
    the node stops.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ottla import __version__
from ottla.broker.broker import Broker
from ottla.broker.controller_face import CONTROLLER_TABLE, ControllerFace
from ottla.broker.coordination import Coordination
from ottla.broker.directories import cordoned_ids, is_cordoned, record_directory, record_misplaced
from ottla.broker.dispatch import Dispatcher
from ottla.broker.fetch_session import FetchSessions
from ottla.broker.internal_topics import OFFSETS
from ottla.broker.lane import lane
from ottla.broker.metrics.page import Page
from ottla.broker.served import APIS
from ottla.broker.share_coordination import ShareCoordination
from ottla.broker.transaction_coordination import TransactionCoordination
from ottla.broker.versions import ApiVersions
from ottla.controller.controller import Controller
from ottla.http.metrics_server import MetricsServer
from ottla.log.directory import LogDirectory
from ottla.metadata.config import ConfigType
from ottla.metadata.delta import Delta
from ottla.metadata.error import MetadataError
from ottla.metadata.fold import Fold
from ottla.metadata.image import Image
from ottla.metadata.settings.definition import LONG_MAX, Value
from ottla.metadata.settings.topic import effective_topic
from ottla.node.chores import Chores
from ottla.node.endpoint import Endpoint
from ottla.node.membership import (
    Membership,
    broker_registration,
    controller_registration,
    register_controller,
)
from ottla.node.neighbours import Neighbours
from ottla.node.node_connections import NodeConnections
from ottla.node.settings import Settings
from ottla.node.storage import StartError, check_identities, load_directories, make_directories
from ottla.node.voting import make_quorum
from ottla.node.world import World
from ottla.partition.flusher import AckFlusher, OsFlusher, storage_error
from ottla.partition.move import Mover
from ottla.partition.partition import Flusher, Partition
from ottla.partition.roles import Roles
from ottla.partition.table import PartitionTable
from ottla.wire.errors import BrokerError
from ottla.world.clock import steady_ms

if TYPE_CHECKING:
    from ottla.channel.connection import Serve
    from ottla.quorum.quorum import Quorum
    from ottla.world.network import Listening


class Node:
    """One process of a cluster: broker and controller. `give_up` ends it when there is nothing left to serve."""

    def __init__(self, settings: Settings, world: World, give_up: Callable[[str], None]) -> None:
        self.settings = settings
        self.world = world
        self.report = world.report
        self._give_up = give_up
        self.directories: list[LogDirectory] = []
        self.endpoints: list[Endpoint] = []
        self.cluster_id = ""
        self._listening: list[Listening] = []
        self._listening_controllers: list[Listening] = []
        self._incarnation_id = world.entropy.uuid()
        self._ends = contextlib.AsyncExitStack()
        self._started = False
        self._joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Whoever starts the node hears of it; should that have ended for another reason, nobody needs to.
        self._joined.add_done_callback(lambda joined: joined.cancelled() or joined.exception())
        self.values = settings.broker_values
        self._metadata_path = world.disk.absolute(settings.metadata_log_dir)

    # Start

    async def start(self) -> None:
        """Become a serving member of the cluster."""
        self._open_directories()
        self.workers = [self.world.worker(f"sync-{number}") for number in range(_SYNC_THREADS)]
        self.background = self.world.worker("background")
        self.inspector, self.searcher = self.world.worker("inspect"), self.world.worker("search")
        self.neighbours = Neighbours(self.settings, self.world, lambda: self.values)
        metadata = next(each for each in self.directories if each.path == self._metadata_path)
        self.quorum: Quorum[Controller] = make_quorum(
            self.settings,
            self.values,
            self.world,
            metadata,
            self.workers[0],
            self.neighbours.wires,
            lambda error: self._metadata_failed(metadata, error),
        )
        self._ends.callback(self.quorum.close)
        self._ends.push_async_callback(self._stop_workers)
        self.roles = Roles(self.settings.node_id, steady_ms(self.world.clock), lambda: self.values)
        self.table = self._make_table()
        self.connections = NodeConnections(self.settings, self.values, self.world)
        self._ends.push_async_callback(self.connections.hang_up, self.flusher)
        self.broker = Broker(
            self.settings.node_id,
            self.cluster_id,
            self.values,
            self.table,
            self.quorum,
            self.world.clock,
            self.world.timers,
            FetchSessions(self.values["max.incremental.fetch.session.cache.slots"], self.world.entropy.below),
            ApiVersions(APIS, lambda: self.quorum.finalized_features),
            self.connections.clients,
        )
        self.broker.inspector, self.broker.searcher = self.inspector, self.searcher
        self.broker.coordination = Coordination(self.broker, self.world.entropy.uuid, self.report)
        self.table.is_cordoned = lambda directory: is_cordoned(self.broker, directory)
        self.table.inherited.call_soon = self.world.timers.call_soon
        self.table.report = self.broker.producer_ids.report = self.report
        self.table.is_starting = lambda: not self._started
        self.broker.transactions = TransactionCoordination(
            self.broker, {OFFSETS.name: self.broker.coordination.groups}, self.report
        )
        self.broker.share = ShareCoordination(self.broker, self.report)
        self.dispatcher = Dispatcher(APIS, self.broker, self.report)
        self.controller_dispatcher = Dispatcher(CONTROLLER_TABLE, self._controller_face(), self.report)
        self.neighbours.connect(self.broker)
        self._ends.callback(self.neighbours.close)
        self.quorum.listen(self._follow)
        try:
            self.quorum.start(self._lead)
        except MetadataError as error:
            raise StartError(str(error)) from None
        if self.quorum.failure is not None:
            raise StartError(f"the metadata log cannot be written: {self.quorum.failure}")
        self._started = True
        await self._listen()
        for listening in self._listening_controllers:
            await listening.serve()  # others may wait for our vote
        self._join()
        self.broker.mover = self.mover = Mover(
            self.table,
            self.background,
            self.world.timers,
            lambda partition, directory: record_directory(self.broker, partition, directory),
            self.report,
            lambda: self.values.get("replica.alter.log.dirs.io.max.bytes.per.second", LONG_MAX),
        )
        self.mover.resume()
        self._ends.callback(self.mover.stop)
        chores = Chores(self)
        self._ends.callback(chores.stop)
        await self._joined
        for stray in self.table.put_strays_aside(self.quorum.image):
            self.report(f"{stray} belongs to no topic of this cluster and was put aside")
        record_misplaced(self.broker, self.table.names())
        for listening in self._listening:
            await listening.serve()
        await self._serve_metrics()

    async def _serve_metrics(self) -> None:
        address = self.settings.metrics_address
        if address is None:
            return
        listeners = [endpoint.name for endpoint in self.settings.broker_listeners]
        page = Page(
            self.broker, self.dispatcher, self.world.disk, listeners, __version__, self.connections.controllers
        )
        metrics = MetricsServer(page, self.world.timers, self.problems)
        self._ends.push_async_callback(metrics.stop)
        try:
            await metrics.start(self.world.network, *address)
        except OSError as error:
            raise StartError(
                f"cannot serve metrics on {address[0]}:{address[1]}: {error.strerror or error}",
                "set ottla.metrics.listener to another address, or to nothing",
            ) from None

    def _open_directories(self) -> None:
        """Lock, check and load what this node keeps; each directory is let go in the end."""
        for directory in make_directories(self.settings, self.world, self._directory_failed):
            self._ends.callback(self._let_go, directory)
            self.directories.append(directory)
        self.cluster_id = check_identities(self.directories, self.settings.node_id)
        load_directories(self.directories, self.world)

    def _controller_face(self) -> Any:
        """The broker as the listener of a controller shows it: with other APIs."""
        return ControllerFace(
            self.broker,
            ApiVersions(CONTROLLER_TABLE, lambda: self.quorum.finalized_features),
            self.connections.controllers,
        )

    def _lead(self, fold: Fold, kraft_version: int) -> Controller:
        return Controller(
            fold,
            node_id=self.settings.node_id,
            cluster_id=self.cluster_id,
            values=self.values,
            entropy=self.world.entropy,
            kraft_version=kraft_version,
            raise_kraft_version=self.quorum.driver.upgrade,
            now=self.quorum.now_ms(),
        )

    def _make_table(self) -> PartitionTable:
        timers = self.world.timers
        synced = AckFlusher(
            self.workers, timers.call_soon, self._sync_failed, lambda work: timers.call_later(_AGAIN_S, work)
        )
        self.flusher: Flusher = synced if self.values["ottla.flush"] == "ack" else OsFlusher(synced)
        paths = [self.world.disk.absolute(path) for path in self.settings.log_dirs]
        data = [directory for directory in self.directories if directory.path in paths]
        unique, settings_of = self.world.entropy.uuid, self._topic_settings
        return PartitionTable(self.settings.node_id, data, self.flusher, settings_of, unique, self.roles)

    def _topic_settings(self, overrides: Mapping[str, str]) -> dict[str, Value]:
        limits = {name.removeprefix("ottla."): self.values[name] for name in _TOPIC_LIMITS}
        return effective_topic(self.values, overrides) | limits

    async def _listen(self) -> None:
        backlog = self.values["socket.listen.backlog.size"]
        for endpoint in self.settings.listeners:
            try:
                listening = await self.world.network.listen(
                    endpoint.host,
                    endpoint.port,
                    self.connections.accept(endpoint.name, self._serve(endpoint.name)),
                    backlog=backlog,
                )
            except OSError as error:
                raise StartError(
                    f"cannot listen on {endpoint}: {error.strerror or error}",
                    "another process may have the port: choose another one, or stop that process",
                ) from None
            self._ends.push_async_callback(listening.stop)
            if endpoint.name in self.settings.controller_names:
                self._listening_controllers.append(listening)
            else:
                self._listening.append(listening)
            self.endpoints.append(Endpoint(endpoint.name, endpoint.protocol, endpoint.host, listening.port))

    def _serve(self, listener: str) -> "Serve":
        is_controller = listener in self.settings.controller_names
        return self.controller_dispatcher.serve if is_controller else lane(self.dispatcher, self.broker)

    def _join(self) -> None:
        ports = {endpoint.name: endpoint.port for endpoint in self.endpoints}
        settings = self.settings
        if settings.is_controller:
            register_controller(
                self.neighbours.line,
                self.world.timers,
                controller_registration(
                    settings.node_id,
                    self._incarnation_id,
                    [each.bound(ports) for each in settings.advertised_controllers],
                ),
                self._refused,
            )
        if not settings.is_broker:
            self._joined.set_result(None)
            return
        registration = broker_registration(
            settings.node_id,
            self.cluster_id,
            self._incarnation_id,
            [each.bound(ports) for each in settings.advertised],
            settings["broker.rack"],
            [each.identity.directory_id for each in self.table.directories if each.identity],
            # A stop was clean when it was so in every directory.
            min(directory.previous_broker_epoch for directory in self.table.directories),
        )
        self.membership = Membership(
            self.neighbours.line,
            self.world.timers,
            registration,
            self,
            # Four beats in the time after which silence counts, so that one may be late.
            lambda: min(
                self.values["broker.heartbeat.interval.ms"], self.values["ottla.broker.silence.ms"] // 4
            ),
            self._refused,
        )
        self.quorum.on_leadership(self.membership.beat)
        self.quorum.on_leadership(self.neighbours.took_over)
        self._ends.push_async_callback(self._leave)
        self.membership.start()

    async def _leave(self) -> None:
        """Have others lead what we led, where there are others, then beat no more."""
        others = self.broker.alive - {self.settings.node_id}
        if others:
            await self.membership.leave(_LEAVE_S)
        self.membership.stop()

    @property
    def metadata_offset(self) -> int:
        """How far the metadata has been followed: the last offset."""
        return self.quorum.committed_offset

    @property
    def offline_directories(self) -> list[bytes]:
        """Ids of the directories that failed."""
        return [
            each.identity.directory_id
            for each in self.table.directories
            if each.offline is not None and each.identity is not None
        ]

    @property
    def cordoned_directories(self) -> list[bytes] | None:
        """Ids of the directories that take no new partitions; None before this broker knows its own settings."""
        return cordoned_ids(self.broker) if self.roles.is_registered else None

    def problems(self) -> dict[str, str]:
        """Return why requests may fail here, by what the problem is with; nothing when they should not."""
        found = {}
        own = self.quorum.image.brokers.get(self.settings.node_id)
        if self.quorum.leader_id < 0:
            found["controller"] = "no controller is active"
        if self.settings.is_broker and (own is None or own.fenced):
            found["broker"] = "it is fenced"
        for directory in self.directories:
            if directory.offline is not None:
                found[directory.path] = f"the data directory is offline: {directory.offline}"
        return found

    def _refused(self, error: BrokerError) -> None:
        if not self._joined.done():
            reason = error.message or error.code.name
            self._joined.set_exception(StartError(f"the node could not join its cluster: {reason}"))

    # Serve

    def _follow(self, delta: Delta, image: Image) -> None:
        """A change of the metadata is committed: partitions first, so that nobody hears of one that is not there."""
        node = str(self.settings.node_id)
        own_settings = (ConfigType.BROKER, "") in delta.configs or (ConfigType.BROKER, node) in delta.configs
        if own_settings:
            of = image.configs.of
            self.values = self.broker.settings = self.values.with_dynamic(
                of(ConfigType.BROKER, ""), of(ConfigType.BROKER, node)
            )
            self.connections.limit(self.values)
        own = image.brokers.get(self.settings.node_id)
        if own is not None:
            self.broker.epoch = self.roles.broker_epoch = own.epoch
        self.roles.is_registered = own is not None and own.incarnation_id == self._incarnation_id
        self.roles.throttles.apply(delta, image)
        self.table.apply(delta, image)
        self.broker.adopt(image)
        if self._joined.done():
            # What was read at the start had happened before.
            self.broker.unclean_elections += delta.unclean_elections
        if delta.brokers:
            self.roles.brokers_changed(image)
        if delta.removed_topics:
            self.broker.coordination.topics_deleted(delta.removed_topics.values())
            self.broker.share.topics_deleted(list(delta.removed_topics))
        if self._joined.done():
            if own_settings and self.settings.is_broker:
                self.membership.beat()  # the controller hears of cordoned directories at once
            record_misplaced(
                self.broker,
                ((topic.name, index) for topic in delta.topics.values() for index in topic.partitions),
            )
        elif own is not None and own.incarnation_id == self._incarnation_id and not own.fenced:
            self._joined.set_result(None)

    def _sync_failed(self, partition: Partition, error: OSError) -> None:
        for directory in self.directories:
            if directory.logs.get((partition.topic, partition.index)) is partition.log:
                directory.fail(error)
        partition.fail(storage_error(error))

    def _metadata_failed(self, directory: LogDirectory, error: OSError) -> None:
        if not self._joined.done():
            self._joined.set_exception(StartError(f"the metadata log cannot be written any more: {error}"))
        directory.fail(error)
        self._give_up(f"the metadata log cannot be written any more: {error}")

    def _directory_failed(self, directory: LogDirectory, error: OSError) -> None:
        if not self._started:
            raise StartError(f"the data directory {directory.path} failed: {error}")
        self.table.take_offline(directory, storage_error(error))
        if all(each.offline is not None for each in self.table.directories):
            self._give_up(f"no data directory is left: {error}")
        elif directory.path == self._metadata_path:
            self._give_up(f"the directory of the metadata log failed: {error}")

    # Stop

    async def stop(self) -> None:
        """Hang up, make everything durable, and mark the directories clean: what was started last ends first."""
        await self._ends.aclose()

    async def _stop_workers(self) -> None:
        for worker in [self.inspector, self.searcher, *self.workers, self.background]:
            worker.stop()
        await asyncio.sleep(0)  # what they handed back is taken in before the logs close

    def _let_go(self, directory: LogDirectory) -> None:
        if not self._started:
            directory.abandon()
            return
        try:
            if directory.offline is None:
                directory.write_high_watermarks(self.table.high_watermarks(directory))
            directory.close(clean=directory.offline is None, broker_epoch=self.broker.epoch)
        except OSError as error:
            self.report(f"{directory.path} could not be closed cleanly, the next start will check it: {error}")
            directory.close(clean=False)


_TOPIC_LIMITS = ("producer.id.expiration.ms", "ottla.max.decompressed.message.bytes", "ottla.max.message.records")
_SYNC_THREADS = 2
_AGAIN_S = 0.1  # how soon a sync that broke is tried again
_LEAVE_S = 5.0


