"""A whole broker in memory and in `tmp_path`: quorum, controller, partitions and handlers, without sockets and threads.

Time stands still until a test moves it, and what would happen at the end of the loop's turn happens in `settle`.
"""

from types import SimpleNamespace

import pytest

from ottla.broker.api import Pending
from ottla.broker.broker import Broker
from ottla.broker.coordination import Coordination
from ottla.broker.directories import record_directory
from ottla.broker.fetch_session import FetchSessions
from ottla.broker.internal_topics import OFFSETS
from ottla.broker.share_coordination import ShareCoordination
from ottla.broker.transaction_coordination import TransactionCoordination
from ottla.broker.versions import ApiVersions
from ottla.channel.connections import Connections
from ottla.controller.controller import Controller
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.identity import Identity
from ottla.metadata.config import ConfigType
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.settings.topic import effective_topic
from ottla.node.endpoint import Endpoint, SecurityProtocol
from ottla.node.membership import broker_registration, controller_registration
from ottla.partition.move import Mover
from ottla.partition.table import PartitionTable
from ottla.quorum.quorum import Quorum
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.raft.voters import Address, Voter, Voters
from ottla.wire.batch import build_batch
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.record import Record
from ottla.world.disk import RealDisk
from ottla.world.entropy import SeededEntropy
from ottla.world.worker import InlineWorker

NODE_ID = 1
CLUSTER_ID = "Q2x1c3RlcklkT2ZUZXN0cw"
LISTENER = "PLAINTEXT"


class ConnectionStandIn(SimpleNamespace):
    """What handlers use of a connection; as one, it is the key of what waits for it."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class StillClock:
    """A clock that a test moves."""

    def __init__(self):
        self.ms = 1_700_000_000_000

    def now_ms(self):
        return self.ms

    def monotonic(self):
        return self.ms / 1000


class StillTimers:
    """Callbacks in the order in which they are due."""

    def __init__(self, clock):
        self._clock = clock
        self._due = []
        self._count = 0

    def call_soon(self, callback):
        return self.call_later(0, callback)

    def call_later(self, delay, callback):
        self._count += 1
        timer = SimpleNamespace(
            due=self._clock.ms + delay * 1000, number=self._count, callback=callback, gone=False
        )
        timer.cancel = lambda: setattr(timer, "gone", True)
        self._due.append(timer)
        return timer

    @property
    def waiting(self):
        return [timer for timer in self._due if not timer.gone]

    def run(self):
        """Run everything that is due, and what becomes due by that."""
        for _ in range(10_000):
            ready = [timer for timer in self.waiting if timer.due <= self._clock.ms + 0.5]
            if not ready:
                self._due = self.waiting
                return
            timer = min(ready, key=lambda timer: (timer.due, timer.number))
            timer.gone = True
            timer.callback()
        raise AssertionError("callbacks without end")


class AtOnce:
    """A flusher for which everything is durable as soon as it is written."""

    def appended(self, partition):
        partition.advance(partition.log.end_offset)


class Station:
    """The broker and all that it stands on."""

    def __init__(self, path, directories=1, **static):
        self.disk = RealDisk()
        self.clock = StillClock()
        self.timers = StillTimers(self.clock)
        self.entropy = SeededEntropy(7)
        self.reports = []
        self.held = False  # while true, nothing that is decided gets committed
        self.values = BrokerValues({"node.id": str(NODE_ID), **static})
        self.directories = [self._directory(str(path / f"d{number}")) for number in range(directories)]
        self.quorum = Quorum(
            Surroundings(self.disk, self.clock, InlineWorker(), self._later),
            QuorumSettings(
                NODE_ID,
                self.directories[0].path,
                self.directories[0].identity.directory_id,
                voters=Voters(
                    {NODE_ID: Voter(NODE_ID, bytes(16), (Address("CONTROLLER", "localhost", 9093),))}
                ),
            ),
        )
        self.table = PartitionTable(
            NODE_ID,
            self.directories,
            AtOnce(),
            lambda overrides: effective_topic(self.values, overrides),
            self.entropy.uuid,
        )
        self.connections = Connections(
            frame_bytes_max=1 << 20, total_max=100, per_address_max=100, call_soon=self.timers.call_soon
        )
        self.broker = Broker(
            NODE_ID,
            CLUSTER_ID,
            self.values,
            self.table,
            self.quorum,
            self.clock,
            self.timers,
            FetchSessions(100, self.entropy.below),
            ApiVersions((), lambda: self.quorum.finalized_features),
            self.connections,
        )
        self.broker.mover = Mover(
            self.table,
            InlineWorker(),
            self.timers,
            lambda partition, directory: record_directory(self.broker, partition, directory),
            self.reports.append,
        )
        self.broker.coordination = Coordination(self.broker, self.entropy.uuid)
        self.broker.transactions = TransactionCoordination(
            self.broker, {OFFSETS.name: self.broker.coordination.groups}
        )
        self.broker.share = ShareCoordination(self.broker, self.reports.append)
        self.connection = ConnectionStandIn(
            listener=LISTENER,
            peer="127.0.0.1",
            closed=False,
            on_close=[],
            pace=None,
            held=0,
            is_corked=False,
            muted=False,
            mute=lambda: None,
            unmute=lambda: None,
            keep=lambda *_: None,
            connections=self.connections,
        )
        self.quorum.listen(self._follow)
        self.quorum.start(self._lead)
        self._join()

    def _directory(self, path):
        directory = LogDirectory(path, self.disk, self.entropy, self.reports.append)
        directory.format(Identity(CLUSTER_ID, NODE_ID, self.entropy.uuid()))
        directory.open()
        directory.load(lambda topic: LogConfig())
        return directory

    def _later(self, callback):
        self.timers.call_later(3600 if self.held else 0, callback)

    def _lead(self, fold, kraft_version):
        return Controller(
            fold,
            node_id=NODE_ID,
            cluster_id=CLUSTER_ID,
            values=self.values,
            entropy=self.entropy,
            kraft_version=kraft_version,
            now=self.clock.now_ms(),
        )

    def _follow(self, delta, image):
        of = image.configs.of
        self.values = self.values.with_dynamic(of(ConfigType.BROKER, ""), of(ConfigType.BROKER, str(NODE_ID)))
        self.broker.settings = self.values
        self.table.apply(delta, image)
        if NODE_ID in image.brokers:
            self.broker.epoch = image.brokers[NODE_ID].epoch
        self.broker.adopt(image)
        if delta.removed_topics:
            self.broker.coordination.topics_deleted(delta.removed_topics.values())
            self.broker.share.topics_deleted(list(delta.removed_topics))

    def _join(self):
        endpoint = Endpoint(LISTENER, SecurityProtocol.PLAINTEXT, "localhost", 9092)
        ids = [directory.identity.directory_id for directory in self.directories]
        hello = controller_registration(NODE_ID, bytes(16), [])
        request = broker_registration(
            NODE_ID, CLUSTER_ID, self.entropy.uuid(), [endpoint], "rack-a", ids, -1
        )

        def registered(outcome):
            beat = BrokerHeartbeatRequest(
                broker_id=NODE_ID,
                broker_epoch=outcome.broker_epoch,
                current_metadata_offset=self.quorum.committed_offset,
            )
            self.quorum.submit(lambda controller, now: controller.heartbeat(beat, now), lambda _: None)

        self.quorum.submit(lambda controller, now: controller.register_controller(hello, now), lambda _: None)
        self.quorum.submit(lambda controller, now: controller.register_broker(request, now), registered)
        self.settle()

    def close(self):
        """Give back the files."""
        self.quorum.close()
        for directory in self.directories:
            directory.close(clean=False)

    # What tests do

    def settle(self, ms=0):
        """Let time pass, and do all that is due."""
        self.clock.ms += ms
        self.timers.run()

    def ask(self, api, request, version=None):
        """Send a request through its handler and return the answer as a client of that version would read it."""
        version = api.versions[-1] if version is None else version
        request = api.request.decode(request.encode(version), version)
        reply = api.handle(request, version, self.connection, self.broker)
        if isinstance(reply, Pending):
            self.settle()
            reply = reply._message
            if reply is None:
                return None
        return api.response.decode(reply.encode(version), version)

    def create(self, name, partitions=1, **configs):
        """Create a topic; settings are written with underscores."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(
                    name=key.replace("_", "."), value=value
                )
                for key, value in configs.items()
            ],
        )
        answers = []
        request = CreateTopicsRequest(topics=[topic])
        self.quorum.submit(lambda controller, now: controller.create_topics(request, now), answers.append)
        self.settle()
        assert answers[0].topics[0].error_code == 0, answers
        return self.broker.image.topics.by_name[name]

    def produce(self, topic, index=0, count=1, size=10, **fields):
        """Append one batch of `count` records and return the partition."""
        partition = self.table.by_name(topic, index)
        records = [Record(n, self.clock.ms, b"k%d" % n, bytes(size), ()) for n in range(count)]
        partition.append(build_batch(records, **fields), self.clock.ms)
        return partition


@pytest.fixture
def station(make_station):
    """A broker with one directory."""
    return make_station()


@pytest.fixture
def make_station(tmp_path):
    """Make a broker with other settings or more directories."""
    made = []

    def make(**options):
        made.append(Station(tmp_path, **options))
        return made[-1]

    yield make
    for station in made:
        station.close()
