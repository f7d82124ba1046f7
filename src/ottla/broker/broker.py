"""What handlers work with: the image, the partitions, the way to the controller, the doors to the world.

B1  `image` is swapped by one assignment; a handler that reads it twice may see two images, so it reads it once.
B2  `settings` are the effective ones: what the file says, under what operators changed at run time for all brokers,
    under what they changed for this one. A change replaces the mapping, so it holds for the next request.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ottla.broker.contacts import Contacts
from ottla.broker.fair_queue import FairQueue
from ottla.broker.fetch_session import FetchSessions
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.versions import ApiVersions
from ottla.channel.connections import Connections
from ottla.channel.peers import Peer
from ottla.controller.controller import Controller
from ottla.controller.names import invalid_name
from ottla.metadata.image import EMPTY, Image
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.topics import NO_LEADER
from ottla.partition.table import PartitionTable
from ottla.quorum.quorum import Quorum
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.world.clock import Clock
from ottla.world.worker import InlineWorker, Worker

if TYPE_CHECKING:
    from collections import deque

    from ottla.broker.api import Api
    from ottla.broker.controller_line import Line
    from ottla.broker.coordination import Coordination
    from ottla.broker.coordinators import Coordinators
    from ottla.broker.share_coordination import ShareCoordination
    from ottla.broker.transaction_coordination import TransactionCoordination
    from ottla.channel.connection import Connection
    from ottla.partition.move import Mover


M = TypeVar("M", bound=Message)


class Timers(Protocol):
    """The loop, as far as handlers may use it."""

    def call_soon(self, callback: Callable[[], object]) -> object:
        """Call at the end of the loop's turn."""
        ...

    def call_later(self, delay: float, callback: Callable[[], object]) -> Any:
        """Call after `delay` seconds; the result has `cancel()`."""
        ...


class Broker:
    """One broker."""

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        settings: BrokerValues,
        table: PartitionTable,
        quorum: Quorum[Controller],
        clock: Clock,
        timers: Timers,
        fetch_sessions: FetchSessions,
        api_versions: ApiVersions,
        connections: Connections,
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.settings = settings
        self.fetch_bytes_max: int = settings["fetch.max.bytes"]
        self.table = table
        self.clock = clock
        self.fetch_sessions = fetch_sessions
        self.api_versions = api_versions
        self.connections = connections
        self.epoch = -1
        self.producer_ids = ProducerIds(node_id, self.ask_controller, lambda: self.epoch)
        self.mover: Mover | None = None
        self.coordination: Coordination
        self.transactions: TransactionCoordination
        self.share: ShareCoordination
        self.call_soon = timers.call_soon
        self.call_later = timers.call_later
        self.submit = quorum.submit
        self.contacts = Contacts(quorum.submit)
        self.quorum = quorum
        # The way to the active controller, and what it answers for others; without, this node is always that.
        self.line: Line | None = None
        self.forwardable: Mapping[int, Api] = {}
        # The way to another broker; None where there is no other.
        self.peer: Callable[[int], Peer] | None = None
        # Whether a leader that we follow has hung up and not been reached since.
        self.is_lost: Callable[[int], bool] = lambda node_id: False
        # Producers whose transactions are being looked up, and who waits behind (verification.py).
        self.verifying: dict[int, deque[Callable[[], None]]] = {}
        # Ids of connections of which a batch is being looked through, and what waits behind it (apis/produce.py).
        self.inspecting: dict[int, deque[Callable[[], object]]] = {}
        # Where long batches are looked through: those of producers, and those that are searched by time.
        self.inspector: Worker = InlineWorker()
        self.searcher: Worker = InlineWorker()
        self.inspections = FairQueue(lambda: self.inspector)
        self.searches = FairQueue(lambda: self.searcher)
        self.image: Image = EMPTY
        self.alive: frozenset[int] = frozenset()
        self.last_failure: BaseException | None = None
        self.failures = 0
        self.unclean_elections = 0
        # By connection: the requests that wait at the quorum (quorum_door.py).
        self.quorum_waiting: dict[Connection, dict[Callable[[Message], None], None]] = {}

    def ask_controller(
        self,
        request: Message,
        response: type[M],
        decide: Callable[[Controller, int], Decision[M]],
        done: Callable[[M | BrokerError], None],
    ) -> None:
        """Have the active controller decide: by the function if that is here, else by the message."""
        if self.line is None or self.quorum.is_active:
            self.submit(decide, done)
            return

        def answered(answer: M | Exception) -> None:
            if isinstance(answer, Exception):
                done(BrokerError(ErrorCode.NOT_CONTROLLER, str(answer)))
            else:
                done(answer)

        self.line.ask(request, response, answered)

    def other_leader(self, topic: str, index: int) -> Peer | None:
        """The way to whoever leads a partition, if that is another broker that we know how to reach."""
        state = self.image.partition(topic, index)
        if self.peer is None or state is None or state.leader in (self.node_id, NO_LEADER):
            return None
        return self.peer(state.leader)

    def failed(self, error: BaseException) -> None:
        """Count a handler that broke."""
        self.failures += 1
        self.last_failure = error

    def adopt(self, image: Image) -> None:
        """Take over a committed image."""
        self.alive = frozenset(node for node, broker in image.brokers.items() if not broker.fenced)
        self.image = image

    @property
    def coordinators(self) -> "tuple[Coordinators[Any], ...]":
        """The coordinators on this broker, of each internal topic."""
        return self.transactions.machines, self.coordination.groups, self.share.states.machines

    def load_some(self) -> bool:
        """Load one coordinator whose log holds something; say whether there may be more of them.

        Not before the metadata knows this life of the broker: an older image lacks topics that the logs speak of, and
        a coordinator would take them for deleted.
        """
        roles = self.table.roles
        if roles is not None and not roles.is_registered:
            return False
        for coordinators in self.coordinators:
            topic = self.image.topics.by_name.get(coordinators.topic)
            if topic is not None and coordinators.load_one(topic.partitions):
                return True
        return False

    def endpoints(self, listener: str) -> list[tuple[int, str, int, str | None]]:
        """Return (node id, host, port, rack) of every broker that can be reached on a listener of this name."""
        found = []
        for node_id in sorted(self.alive):
            broker = self.image.brokers[node_id]
            endpoint = broker.listeners.get(listener)
            if endpoint is not None:
                found.append((node_id, endpoint.host, endpoint.port, broker.rack))
        return found

    def controller_hint(self) -> int:
        """Return a broker that will take an admin request: any may, for they forward (KIP-590)."""
        return self.node_id if self.node_id in self.alive else -1

    @staticmethod
    def absence(name: str) -> ErrorCode:
        """Return why there is no topic of this name: it could not be, or it is not."""
        return (
            ErrorCode.INVALID_TOPIC_EXCEPTION if invalid_name(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
