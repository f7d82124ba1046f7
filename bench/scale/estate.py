"""The cluster: three controllers, a few whole brokers, and stand-ins for the others, on one measured timeline.

Controllers and whole brokers are `Node`s as they run in production, each with a disk, a clock and a network of the
simulator's; who stands in, and for what, says `stand_in.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.scale.library import Library
from bench.scale.stand_in import SYNC_S, StandIn
from bench.scale.timeline import MeasuredTimeline, Spent
from ottla.metadata.fold import Change
from ottla.node.node import Node
from ottla.raft.voters import Address, Voter, Voters
from ottla.sim.cluster.fabric import Fabric
from ottla.sim.cluster.machine import BROKER_PORT, CONTROLLER_PORT, Machine, host_of
from ottla.sim.violation import Stuck
from ottla.wire.message import Message
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.world.entropy import SeededEntropy

CONTROLLERS = (1001, 1002, 1003)
REPLICAS = 3
METADATA = "/data/__cluster_metadata-0"
_CALLS_MAX = 20_000_000
# Nobody writes records here, and stand-ins do not fetch: nobody is to fall out of sync for that.
_HOUR_MS = "3600000"


@dataclass(frozen=True)
class Sizes:
    """How large the cluster is."""

    brokers: int = 100
    partitions: int = 100_000
    topic_partitions: int = 100
    whole: int = 2

    @property
    def topics(self) -> int:
        return self.partitions // self.topic_partitions


class Estate:
    """One cluster. `learned` hears what each broker learns of the metadata, `answered` what it is answered."""

    def __init__(self, sizes: Sizes, seed: int = 1) -> None:
        self.sizes = sizes
        self.timeline = MeasuredTimeline()
        self.fabric = Fabric(self.timeline, SeededEntropy(seed))
        self.library = Library()
        self.said: list[tuple[float, str, str]] = []
        self.learned: list[Callable[[int, Change, float], None]] = []
        self.answered: list[Callable[[StandIn, Message, float], None]] = []
        voters = Voters.of(
            Voter(id, addresses=(Address("CONTROLLER", host_of(id), CONTROLLER_PORT),)) for id in CONTROLLERS
        )
        common = {
            "controller.quorum.voters": ",".join(
                f"{id}@{host_of(id)}:{CONTROLLER_PORT}" for id in CONTROLLERS
            )
        }
        self.controllers = {
            id: self._machine(
                id,
                seed,
                common
                | {
                    "process.roles": "controller",
                    "listeners": f"CONTROLLER://{host_of(id)}:{CONTROLLER_PORT}",
                },
            )
            for id in CONTROLLERS
        }
        self.whole = {
            id: self._machine(
                id,
                seed,
                common
                | {
                    "process.roles": "broker",
                    "listeners": f"PLAINTEXT://{host_of(id)}:{BROKER_PORT}",
                    "replica.lag.time.max.ms": _HOUR_MS,
                    "replica.socket.timeout.ms": _HOUR_MS,
                },
            )
            for id in range(1, sizes.whole + 1)
        }
        cluster_id = "MkU3OEVBNTcwNTJENDM2Qg"
        self.stand_ins = {
            id: StandIn(
                id, self.timeline, self.fabric, self.library, voters, cluster_id, self._answer, self._learn
            )
            for id in range(sizes.whole + 1, sizes.brokers + 1)
        }

    def _machine(self, id: int, seed: int, properties: dict[str, str]) -> Machine:
        machine = Machine(id, self.timeline, self.fabric, seed, properties, self._note)
        machine.sync_s = SYNC_S
        return machine

    # Watching

    def _note(self, who: str, text: str) -> None:
        self.said.append((self.timeline.now, who, text))

    def _learn(self, stand_in: StandIn, change: Change) -> None:
        for hear in self.learned:
            hear(stand_in.id, change, self.timeline.now)

    def _answer(self, stand_in: StandIn, answer: Message) -> None:
        for hear in self.answered:
            hear(stand_in, answer, self.timeline.now)

    def spent(self, machine: Machine) -> Spent:
        """What the present life of a machine has computed."""
        assert machine.process is not None
        return self.timeline.charge(machine.process)

    def done_at(self, machine: Machine) -> float:
        """When a machine is done with what it is at: a callback is charged once it is over."""
        assert machine.process is not None
        return max(self.timeline.now, self.timeline.free_at(machine.process))

    def reset_longest(self) -> None:
        for spent in self.timeline.spent.values():
            spent.longest_s, spent.longest = 0.0, ""

    # Running

    def start(self, machine: Machine) -> None:
        machine.start()
        assert machine.process is not None
        self.timeline.charge(machine.process)

    def run(self, until: Callable[[], bool], wish: str, seconds_max: float = 120.0) -> float:
        """Let time pass until something is so, and return how much has passed."""
        began = self.timeline.now
        try:
            self.timeline.run(until, seconds_max, _CALLS_MAX)
        except Stuck as stuck:
            self.check()  # what went wrong says more than what did not happen
            raise Stuck(f"it is still not so that {wish}: {stuck}; {self.said[-10:]}") from None
        self.check()
        return self.timeline.now - began

    def rest(self, seconds: float) -> None:
        """Let some time pass."""
        end = self.timeline.now + seconds
        self.run(lambda: self.timeline.now >= end, "time passes", seconds + 10)

    def check(self) -> None:
        """Fail if an exception went uncaught anywhere."""
        machines = [*self.controllers.values(), *self.whole.values()]
        processes = [each.process for each in machines if each.process is not None]
        for process in [*processes, *(each.process for each in self.stand_ins.values())]:
            assert not process.faults, f"in {process.name}: {process.faults[0]}"
        assert not any(each.gave_up for each in machines)

    def end(self) -> None:
        """Let everything die, so that nothing is left behind."""
        machines = [*self.controllers.values(), *self.whole.values()]
        processes = [each.process for each in machines if each.process is not None]
        for process in [*processes, *(each.process for each in self.stand_ins.values())]:
            process.die()
        self.fabric.wire.die()

    # Looking

    def node(self, machine: Machine) -> Node:
        assert machine.node is not None
        return machine.node

    def active(self) -> Machine | None:
        """The controller that leads, by the highest epoch."""
        leading = [
            each for each in self.controllers.values() if each.is_serving and self.node(each).quorum.is_active
        ]
        return max(leading, key=lambda each: self.node(each).quorum.epoch, default=None)

    def standby(self) -> Machine:
        return next(
            each for each in self.controllers.values() if each.is_serving and each is not self.active()
        )

    def all_have(self, offset: int) -> bool:
        """Whether all that runs has applied the metadata up to an offset."""
        machines = [*self.controllers.values(), *self.whole.values()]
        return all(each.offset >= offset for each in self.stand_ins.values()) and all(
            self.node(each).quorum.committed_offset >= offset for each in machines if each.is_serving
        )

    # Building

    def create(self, topics: list[str]) -> None:
        """Have the active controller make topics, as a broker passes it on."""
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=self.sizes.topic_partitions, replication_factor=REPLICAS
                )
                for name in topics
            ]
        )
        answer = self.ask(request, CreateTopicsResponse)
        assert not any(each.error_code for each in answer.topics), answer.topics[0].error_message

    def ask(self, request: Message, response: type[Message]) -> Any:
        """Ask the active controller, as one of the brokers, and return its answer once everybody knows of it."""
        answers: list[Any] = []
        asker = next(iter(self.stand_ins.values()))
        asker.process.call_soon(lambda: asker.ask(request, response, answers.append))
        self.run(lambda: bool(answers), "the controller has answered")
        assert not isinstance(answers[0], Exception), answers[0]
        active = self.active()
        assert active is not None, (
            "the controller has lost its lead: perhaps this machine stood still for seconds"
        )
        end_offset = self.node(active).quorum.committed_offset
        self.run(lambda: self.all_have(end_offset), "all know of it")
        return answers[0]

    def listen(self, machine: Machine) -> None:
        """Hear what a whole broker learns, once it has taken it in."""
        node, process = self.node(machine), machine.process
        assert process is not None

        def heard(delta: Any, image: Any) -> None:
            change = Change(delta, image)
            process.call_soon(lambda: [hear(machine.id, change, self.timeline.now) for hear in self.learned])

        node.quorum.listen(heard)


def metadata_files(machine: Machine, suffix: str) -> dict[str, int]:
    """Files of the metadata log on a machine's disk, with their sizes."""
    return {name: size for name, size in machine.disk.list_sizes(METADATA).items() if name.endswith(suffix)}


__all__ = ["CONTROLLERS", "METADATA", "REPLICAS", "Estate", "Sizes", "metadata_files"]
