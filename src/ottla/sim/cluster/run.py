"""One run of a scenario: work and perils drawn from the seed, then healing, then a look at everything.

work begins --> perils strike and pass --> all is healed --> work ends --> all is read --> checkers decide
"""

import asyncio
from collections.abc import Callable, Collection

from ottla.client.errors import ClientError
from ottla.client.record import TopicPartition
from ottla.sim.checkers.acknowledged_kept import AcknowledgedKept
from ottla.sim.checkers.cluster_checker import ClusterChecker
from ottla.sim.checkers.commits_grow import CommitsGrow
from ottla.sim.checkers.decisions_kept import DecisionsKept
from ottla.sim.checkers.dense_offsets import DenseOffsets
from ottla.sim.checkers.equal_replicas import EqualReplicas
from ottla.sim.checkers.held_by_one import HeldByOne
from ottla.sim.checkers.once_in_order import OnceInOrder
from ottla.sim.checkers.one_owner import OneOwner
from ottla.sim.checkers.reads_again import ReadsAgain
from ottla.sim.checkers.reads_in_a_row import ReadsInARow
from ottla.sim.checkers.watermark_holds import WatermarkHolds
from ottla.sim.checkers.whole_transactions import WholeTransactions
from ottla.sim.cluster.fleet import NODES, Client, Fleet
from ottla.sim.cluster.history import Place
from ottla.sim.cluster.ordeals import ORDEALS
from ottla.sim.cluster.perils import KINDS, Peril
from ottla.sim.cluster.scenarios.scenario import Scenario
from ottla.sim.cluster.workloads import consume, copy
from ottla.sim.cluster.workloads.consume import Consuming
from ottla.sim.cluster.workloads.copy import Copying
from ottla.sim.cluster.workloads.produce import Producing
from ottla.sim.cluster.workloads.share import Sharing
from ottla.sim.cluster.workloads.topics import Making
from ottla.sim.cluster.workloads.workload import LOG, OUT, PARTITIONS, Workload
from ottla.sim.violation import Stuck
from ottla.world.entropy import SeededEntropy

CHECKERS: tuple[type[ClusterChecker], ...] = (
    EqualReplicas,
    WatermarkHolds,
    OneOwner,
    CommitsGrow,
    ReadsInARow,
    AcknowledgedKept,
    OnceInOrder,
    WholeTransactions,
    DenseOffsets,
    DecisionsKept,
    ReadsAgain,
    HeldByOne,
)
_LOOK_S = 0.025
_RUN_S_MAX = 600.0
_HEAL_S_MAX = 90.0


class Run:
    """One run. What stands in `without` is left out: perils and workloads by their names."""

    def __init__(self, scenario: Scenario, seed: int, without: Collection[str] = ()) -> None:
        self.fleet = Fleet(seed, scenario.properties)
        self._entropy = SeededEntropy(seed)
        self._scenario = scenario
        workloads = self._draw_work()
        perils = self._draw_perils()
        self.workloads = [each for each in workloads if each.name not in without]
        self.perils = [each for each in perils if each.name not in without]
        self.checkers = [kind() for kind in CHECKERS]
        for checker in self.checkers:
            checker.fleet = self.fleet
        for machine in self.fleet.machines.values():
            machine.before_death = self._look

    @property
    def parts(self) -> list[str]:
        """What the run could go without."""
        return [each.name for each in self.perils] + [each.name for each in self.workloads]

    # Drawing

    def _draw_work(self) -> list[Workload]:
        entropy, fleet = self._entropy, self.fleet
        fleet.fabric.pieces = 0.1 * entropy.below(2)
        fleet.fabric.delay_s = (0.0002, 0.001 + 0.01 * entropy.random())
        sync_s = (0.0003, 0.001 + 0.02 * entropy.random())
        for machine in fleet.machines.values():
            machine.sync_s = sync_s
        made: dict[str, Workload] = {
            "produce": Producing(
                fleet,
                1 + entropy.below(2),
                0.08 + 0.15 * entropy.random(),
                has_keys="compact" in self._scenario.topic.get("cleanup.policy", ""),
            ),
            "consume": Consuming(fleet, 2 + entropy.below(2), ("classic", "consumer")[entropy.below(2)]),
            "copy": Copying(fleet, 1 + entropy.below(2)),
            "topics": Making(fleet, 0.5 + entropy.random()),
        }
        if "share" in self._scenario.work:
            made["share"] = Sharing(fleet, 2 + entropy.below(2))
        return [made[name] for name, share in self._scenario.work.items() if entropy.below(100) < share]

    def _draw_perils(self) -> list[Peril]:
        entropy, scenario = self._entropy, self._scenario
        kinds = [kind for kind, weight in scenario.perils.items() for _ in range(weight)]
        low, high = scenario.count
        victims = scenario.victims
        perils = [
            Peril(
                f"peril-{number}",
                kinds[entropy.below(len(kinds))],
                entropy.random() * scenario.span_s,
                scenario.lasts_s[0] + entropy.random() * (scenario.lasts_s[1] - scenario.lasts_s[0]),
                victims[entropy.below(len(victims))],
                entropy.random(),
            )
            for number in range(1, low + entropy.below(high - low + 1) + 1)
        ]
        return sorted(perils, key=lambda peril: peril.at_s)

    # Running

    def go(self) -> None:
        """Run; Violation says what went wrong."""
        try:
            director = self.fleet.client("director")
            watch = self.fleet.client("checkers").begin(self._watch())
            self.fleet.run(director.begin(self._direct(director)), watch, _RUN_S_MAX)
        finally:
            self.fleet.end()

    async def _watch(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_LOOK_S)

    def _look(self) -> None:
        for checker in self.checkers:
            checker.look()
        self.fleet.check_faults()

    async def _until(self, condition: Callable[[], bool], wish: str, seconds_max: float) -> None:
        """Wait until something is so; Stuck when it takes too long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds_max
        while not condition():
            if loop.time() > deadline:
                raise Stuck(
                    f"after {seconds_max:g} s it is still not so that {wish}: {self.fleet.describe()}"
                )
            await asyncio.sleep(0.1)

    async def _direct(self, director: Client) -> None:
        fleet = self.fleet
        for machine in fleet.machines.values():
            machine.start()
        await self._until(lambda: len(fleet.nodes()) == len(NODES), "all nodes serve", 30)
        async with director.admin() as admin:
            await admin.topics.create(
                [LOG, OUT],
                partitions=PARTITIONS,
                replication_factor=self._scenario.replicas,
                configs=self._scenario.topic,
            )
        for workload in self.workloads:
            workload.begin()
        await asyncio.sleep(1.0)
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.create_task(self._strike(peril)) for peril in self.perils))
        self._heal()
        await self._come_to_an_end()
        await self._read_everything(director)
        for checker in self.checkers:
            checker.finish()
        fleet.check_faults()

    async def _strike(self, peril: Peril) -> None:
        await asyncio.sleep(peril.at_s)
        self.fleet.note("fate", str(peril))
        await (KINDS | ORDEALS)[peril.kind](self.fleet, peril, self.workloads)

    def _heal(self) -> None:
        fleet = self.fleet
        fleet.note("fate", "all is healed")
        fleet.fabric.heal_all()
        for machine in fleet.machines.values():
            machine.go_on()
            if not machine.is_up:
                machine.start()

    async def _come_to_an_end(self) -> None:
        fleet = self.fleet
        await self._until(lambda: len(fleet.nodes()) == len(NODES), "all nodes serve again", _HEAL_S_MAX)
        producing = [each for each in self.workloads if isinstance(each, Producing | Making)]
        reading = [each for each in self.workloads if not isinstance(each, Producing | Making)]
        for some, wish in ((producing, "what was sent has found its end"), (reading, "all has been read")):
            if some is producing:
                await asyncio.sleep(1.0)
                for workload in some:
                    workload.is_enough = True
            await self._until(
                lambda some=some: all(each.is_over for each in some),  # type: ignore[misc]
                f"{wish} ({', '.join(each.name for each in some)})",
                _HEAL_S_MAX,
            )
            for workload in some:
                workload.is_enough = True
            await self._until(
                lambda some=some: all(each.is_done for each in some),  # type: ignore[misc]
                f"clients have come to their end ({', '.join(each.name for each in some)})",
                _HEAL_S_MAX,
            )
        await self._until(
            lambda: fleet.is_whole(fleet.places()),
            "all replicas are in sync and all is committed",
            _HEAL_S_MAX,
        )
        fleet.note("fate", "all is well")

    async def _read_everything(self, director: Client) -> None:
        history = self.fleet.history
        places = [place for place in self.fleet.places() if place[0] in (LOG, OUT)]
        history.final = await self._read(director, places, "read_uncommitted")
        history.final_committed = await self._read(director, places, "read_committed")
        async with director.admin() as admin:
            history.final_topics = set(await admin.topics.list())
            for group in (consume.GROUP, copy.GROUP):
                try:
                    found = await admin.offsets.committed(group)
                except ClientError:
                    continue  # nobody ever was in it
                for place, committed in found.items():
                    history.final_offsets[group, place] = committed.offset

    async def _read(
        self, director: Client, places: list[Place], isolation: str
    ) -> dict[Place, list[tuple[int, bytes]]]:
        found: dict[Place, list[tuple[int, bytes]]] = {place: [] for place in places}
        async with director.consumer(isolation_level=isolation) as consumer:
            partitions = [TopicPartition(*place) for place in places]
            consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            loop = asyncio.get_running_loop()
            deadline = loop.time() + _HEAL_S_MAX
            while [each for each in partitions if await consumer.position(each) < ends[each]]:
                for record in await consumer.poll(timeout=0.5):
                    found[record.topic, record.partition].append((record.offset, record.value))
                if loop.time() > deadline:
                    raise Stuck(f"what is there cannot be read to its end ({isolation}): {ends}")
        return found
