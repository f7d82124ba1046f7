"""A simulated cluster: three machines, the network between them, clients, and whoever watches.

S1  Whatever happens follows from the seed: time, chance, the network and the disks come from here.
S2  The digest covers every piece of data that arrived anywhere, and when; two runs that agree in it were the same.
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from ottla.client.admin.admin import Admin
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.share.consumer import ShareConsumer
from ottla.client.producer.producer import Producer
from ottla.client.system_interfaces import SystemInterfaces
from ottla.sim.cluster.clock import SimClock
from ottla.sim.cluster.fabric import Fabric
from ottla.sim.cluster.history import History, Place
from ottla.sim.cluster.machine import BROKER_PORT, CONTROLLER_PORT, Machine, host_of
from ottla.sim.cluster.network import SimNetwork
from ottla.sim.loop import Process, Timeline
from ottla.sim.violation import Violation
from ottla.world.entropy import SeededEntropy

if TYPE_CHECKING:
    import asyncio

    from ottla.node.node import Node
    from ottla.partition.partition import Partition

NODES = (1, 2, 3)
LOCK_MS = 2_000  # for which a member of a share group holds a record
TRIES_MAX = 10  # after which nobody gets it any more
_BOOTSTRAP = [f"{host_of(id)}:{BROKER_PORT}" for id in NODES]
_CALLS_MAX = 1_500_000
_PROPERTIES = {
    "controller.quorum.voters": ",".join(f"{id}@{host_of(id)}:{CONTROLLER_PORT}" for id in NODES),
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": str(TRIES_MAX),
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "replica.lag.time.max.ms": "4000",
    "group.initial.rebalance.delay.ms": "300",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
}
# What every client has: less patience than people have.
_REQUEST_MS = (3_000, 8_000)  # shorter than it takes to miss a broker and go on without it, or longer
_CLIENT = {
    "default.api.timeout.ms": 15_000,
    "metadata.max.age.ms": 5_000,
    "retry.backoff.max.ms": 500,
    "reconnect.backoff.max.ms": 500,
    "socket.connection.setup.timeout.ms": 1_000,
    "socket.connection.setup.timeout.max.ms": 3_000,
}


class Step(NamedTuple):
    """Something worth telling."""

    time_s: float
    who: str
    text: str


class Client:
    """A process with clients in it, on a machine of its own."""

    def __init__(self, fleet: "Fleet", name: str, life: int) -> None:
        self.fleet = fleet
        self.name = name
        self.host = f"host-of-{name}"
        self.process = Process(fleet.timeline, f"{name}/{life}")
        seed = crc32(f"{fleet.seed} {name} {life}".encode())
        self.entropy = SeededEntropy(seed)
        self._interfaces = SystemInterfaces(
            SimNetwork(fleet.fabric, self.process, self.host), self.entropy, SimClock(fleet.timeline)
        )

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run something in this process."""
        task: asyncio.Task[None] = self.process.create_task(work)
        return task

    def die(self) -> None:
        """End without a word to anybody but by the connections."""
        if not self.process.is_dead:
            self.process.die()
            self.fleet.fabric.process_died(self.process)

    def note(self, text: str) -> None:
        """Tell something."""
        self.fleet.note(self.name, text)

    def producer(self, **settings: Any) -> Producer:
        """A producer that waits for all replicas, and sends at once."""
        kind: type[Producer] = type("Producer", (Producer,), {"_interfaces": self._interfaces})
        given = {"acks": "all", "linger.ms": 0, "delivery.timeout.ms": 20_000, "max.block.ms": 15_000}
        return kind(_BOOTSTRAP, self._settings("producer", given | settings))

    def consumer(self, **settings: Any) -> Consumer:
        """A consumer that begins at the beginning, and commits when it is told to."""
        kind: type[Consumer] = type("Consumer", (Consumer,), {"_interfaces": self._interfaces})
        given = {
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.max.wait.ms": 500,
            # It is also how long a member waits for the others at a machine that may have lost its power.
            "max.poll.interval.ms": 7_000,
        }
        return kind(_BOOTSTRAP, self._settings("consumer", given | settings))

    def share_consumer(self, **settings: Any) -> ShareConsumer:
        """A member of a share group that says of each record what became of it."""
        kind: type[ShareConsumer] = type("ShareConsumer", (ShareConsumer,), {"_interfaces": self._interfaces})
        given = {"share.acknowledgement.mode": "explicit", "fetch.max.wait.ms": 500, "max.poll.records": 8}
        return kind(_BOOTSTRAP, self._settings("share", given | settings))

    def admin(self) -> Admin:
        """An admin client."""
        kind: type[Admin] = type("Admin", (Admin,), {"_interfaces": self._interfaces})
        return kind(_BOOTSTRAP, self._settings("admin", {}))

    def _settings(self, kind: str, given: dict[str, Any]) -> dict[str, Any]:
        common: dict[str, Any] = {
            name: value
            for name, value in _CLIENT.items()
            if kind != "producer" or name != "default.api.timeout.ms"
        }
        common["request.timeout.ms"] = _REQUEST_MS[self.fleet.seed % 2]
        # Else it would be numbered, and a run would depend on those before it.
        common["client.id"] = self.process.name
        return common | {name.replace("_", "."): value for name, value in given.items()}


class Fleet:
    """One cluster and its clients. `properties` are those of the nodes that are not as in every run."""

    def __init__(self, seed: int, properties: Mapping[str, str] | None = None) -> None:
        self.seed = seed
        self.timeline = Timeline()
        self.fabric = Fabric(self.timeline, SeededEntropy(seed * 11 + 1))
        self.fabric.watch = self._carried
        self.disk_entropy = SeededEntropy(seed * 11 + 2)
        self.steps: list[Step] = []
        self.digest = 0
        self.history = History()
        self.clients: dict[str, Client] = {}
        self._lives: dict[str, int] = {}
        self.faults: list[str] = []
        given = _PROPERTIES | dict(properties or {})
        self.machines = {id: Machine(id, self.timeline, self.fabric, seed, given, self.note) for id in NODES}

    # Telling

    def note(self, who: str, text: str) -> None:
        """Tell something that happens."""
        self.steps.append(Step(self.timeline.now, who, text))
        self.digest = crc32(f"{self.timeline.now!r} {who} {text}".encode(), self.digest)

    def _carried(self, source: str, target: str, data: bytes) -> None:
        self.digest = crc32(data, crc32(f"{self.timeline.now!r} {source} {target}".encode(), self.digest))

    # Running

    def run(self, task: "asyncio.Task[Any]", watch: "asyncio.Task[Any]", seconds_max: float) -> None:
        """Run until a task is done, or whoever watches has seen enough; raises what either of them raises."""
        self.timeline.run(lambda: task.done() or watch.done(), seconds_max, _CALLS_MAX)
        (watch if watch.done() else task).result()

    def check_faults(self) -> None:
        """Violation if an exception went uncaught anywhere."""
        for process in self._processes():
            if process.faults:
                raise Violation("no exception goes uncaught", f"in {process.name}: {process.faults[0]}")
        for machine in self.machines.values():
            if machine.gave_up:
                raise Violation("no node gives up", f"{machine.host}: {machine.gave_up[0]}")

    def _processes(self) -> list[Process]:
        nodes = [machine.process for machine in self.machines.values() if machine.process is not None]
        return [*nodes, *(client.process for client in self.clients.values())]

    def end(self) -> None:
        """Let everything die, so that nothing is left behind."""
        for process in self._processes():
            process.die()
        self.fabric.wire.die()

    # Clients

    def client(self, name: str) -> Client:
        """A new process of this name; the one before has to be gone."""
        life = self._lives[name] = self._lives.get(name, 0) + 1
        client = self.clients[name] = Client(self, name, life)
        return client

    # Looking

    def nodes(self) -> "list[Node]":
        """Every node that serves."""
        return [each.node for each in self.machines.values() if each.is_serving and each.node is not None]

    def replicas(self, place: Place) -> "dict[int, Partition]":
        """The replicas of a partition on nodes that serve."""
        found = {id: each.node for id, each in self.machines.items() if each.is_serving}
        return {
            id: node.table.partitions[place]
            for id, node in found.items()
            if node is not None and place in node.table.partitions
        }

    def places(self) -> list[Place]:
        """Every partition that any node has a replica of."""
        return sorted({name for node in self.nodes() for name in node.table.partitions})

    def leader_of(self, place: Place) -> int | None:
        """Who leads a partition, by the newest epoch that a leader knows of."""
        leaders = {id: each.leader_epoch for id, each in self.replicas(place).items() if each.is_leader}
        return max(leaders, key=leaders.__getitem__) if leaders else None

    def controller(self) -> int | None:
        """Who leads the quorum, by the highest epoch that anybody leads."""
        active = {
            id: each.node.quorum.epoch
            for id, each in self.machines.items()
            if each.is_serving and each.node is not None and each.node.quorum.is_active
        }
        return max(active, key=active.__getitem__) if active else None

    def is_whole(self, places: Sequence[Place]) -> bool:
        """Whether all nodes serve, all replicas of these are in sync, and all that is written is committed."""
        if len(self.nodes()) < len(NODES) or self.controller() is None:
            return False
        for place in places:
            replicas = self.replicas(place)
            leaders = [each for each in replicas.values() if each.is_leader]
            if len(leaders) != 1:
                return False
            leadership = leaders[0].leadership
            count = 1 if leadership is None else len(NODES)  # alone, or everywhere
            if len(replicas) < count or (leadership is not None and len(leadership.isr) < count):
                return False
            end_offset = leaders[0].log.end_offset
            if any(
                each.log.end_offset != end_offset or each.high_watermark != end_offset
                for each in replicas.values()
            ):
                return False
        return True

    def describe(self) -> str:
        """Where the cluster stands, in a few words."""
        words = [f"controller {self.controller()}"]
        for machine in self.machines.values():
            state = "serves" if machine.is_serving else "starting" if machine.is_up else "down"
            words.append(f"{machine.host} {state}")
        for place in self.places():
            ends = {
                id: (each.log.end_offset, each.high_watermark, each.leader_epoch)
                for id, each in self.replicas(place).items()
            }
            leader = self.leader_of(place)
            leading = self.replicas(place).get(leader) if leader is not None else None
            isr = sorted(leading.leadership.isr) if leading is not None and leading.leadership else []
            words.append(
                f"{place[0]}-{place[1]} led by {leader}, in sync {isr}, (end, committed, epoch) {ends}"
            )
        return "; ".join(words)
