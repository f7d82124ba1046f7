"""A cluster under the controller, against a model of what its replicas hold.

Brokers stop cleanly, crash and lose the tail of their logs, fall silent, are cut off, lose a directory, come back;
leaders write and report; users move replicas, ask for elections and change settings; controllers take over. Whatever
happens:

    C1  the leader is in sync, and what is in sync is among the replicas; who leads is in service, on a disk that works
    C2  eligible replicas are replicas, out of sync, and there are none while enough are in sync
    C3  every record about a partition raises its epoch by one, and its leader epoch if and only if it names a leader
    C4  a leader that was not in sync is only elected with leave, or is the last known one and then recovers
    C5  a leader that is there holds everything that was acknowledged, but for what an unclean election gave up
    C6  the census is what would be counted anew
"""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.controller.census import Census
from ottla.controller.controller import Controller
from ottla.metadata.config import ConfigType
from ottla.metadata.topics import NO_LEADER_CHANGE, PartitionState
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.records.metadata import PartitionChangeRecord
from tests.unit.controller.stage import NO_ELR, Stage, directory, wish

BROKERS = (1, 2, 3, 4, 5)
REMOTE = BROKERS[1:]  # the controller's own node neither falls silent nor crashes alone
DIRECTORIES = 2
TOPICS = {  # name: (replicas of each partition, min.insync.replicas, unclean elections)
    "two": ([[2, 3], [4, 5]], 2, False),
    "three": ([[1, 2, 3], [3, 4, 5], [5, 1, 2]], 2, False),
    "lax": ([[2, 4, 5], [3, 1, 4]], 1, False),
    "loose": ([[2, 3, 4], [5, 3, 1]], 2, True),
}
PLACES = [(name, index) for name, (placed, _, _) in TOPICS.items() for index in range(len(placed))]
UNCLEAN = "unclean.leader.election.enable"
Place = tuple[str, int]


class Watched(Stage):
    """A stage on which every record about a partition is looked at when it is applied."""

    watch: Callable[[Place, PartitionState, PartitionChangeRecord, PartitionState], None] | None = None

    def do(self, decide: Callable[[Controller, int], Decision[Any]]) -> Any:
        before = self.image
        decision = decide(self.controller, self.now)
        self.records = list(decision.records)  # type: ignore[arg-type]
        states: dict[Place, PartitionState] = {}
        for record in self.records:
            self.controller.apply(self.controller.end_offset, record)
            if isinstance(record, PartitionChangeRecord) and self.watch is not None:
                topic = before.topics.by_id[record.topic_id]
                place = (topic.name, record.partition_id)
                old = states.get(place, topic.partitions[record.partition_id])
                states[place] = old.changed_by(record)
                self.watch(place, old, record, states[place])
        return decision.reply


class Cluster(RuleBasedStateMachine):
    elr = True

    @initialize()
    def build(self) -> None:
        self.stage = Watched(features=None if self.elr else NO_ELR)
        for broker in BROKERS:
            self.stage.register(broker, directories=DIRECTORIES)
            self.stage.heartbeat(broker)
        for name, (placed, min_isr, unclean) in TOPICS.items():
            configs: dict[str, str | None] = {
                "min.insync.replicas": str(min_isr),
                UNCLEAN: str(unclean).lower(),
            }
            self.stage.create(wish(name, assignments=dict(enumerate(placed)), configs=configs))
        self.unclean = {name: unclean for name, (_, _, unclean) in TOPICS.items()}
        self.min_isr = {name: min_isr for name, (_, min_isr, _) in TOPICS.items()}
        self.up = set(BROKERS)
        self.logs: dict[tuple[str, int, int], list[int]] = {}
        self.acknowledged: dict[Place, set[int]] = {place: set() for place in PLACES}
        self.written = 0
        self.leave = False  # a user asks for an unclean election
        self.lossy: set[int] = set()  # who comes back from an unclean stop
        self.stage.watch = self.changed

    # What is watched

    def changed(
        self, place: Place, old: PartitionState, record: PartitionChangeRecord, new: PartitionState
    ) -> None:
        assert new.partition_epoch == old.partition_epoch + 1
        assert (new.leader_epoch > old.leader_epoch) == (record.leader != NO_LEADER_CHANGE)
        assert new.leader_epoch <= old.leader_epoch + 1
        if new.leader in {-1, old.leader}:
            return
        if new.leader in old.isr or new.leader in old.elr:
            return
        if new.leader_recovery_state == 1:
            allowed = self.unclean[place[0]] or self.leave
            last_resort = (old.isr, old.last_known_elr) == ((), (new.leader,)) and set(old.elr) <= self.lossy
            assert allowed or last_resort, f"{place}: {old} -> {new}"
            self.acknowledged[place] &= set(self.log(place, new.leader))
        else:
            # A replica may enter and lead in one step, when its report ends a reassignment.
            assert new.leader in new.isr

    def log(self, place: Place, broker: int) -> list[int]:
        return self.logs.setdefault((*place, broker), [])

    def heartbeat(self, broker: int, **wishes: Any) -> Any:
        return self.stage.heartbeat(broker, **wishes)

    def state(self, place: Place) -> PartitionState:
        return self.stage.state(*place)

    # What happens

    @rule(place=st.sampled_from(PLACES), count=st.integers(1, 3))
    def write(self, place: Place, count: int) -> None:
        state = self.state(place)
        if state.leader not in self.up or not set(state.isr) <= self.up:
            return  # nothing is acknowledged while somebody in sync does not follow
        log = self.log(place, state.leader)
        for _ in range(count):
            self.written += 1
            log.append(self.written)
        for broker in state.isr:
            self.logs[(*place, broker)] = list(log)
        if len(state.isr) >= self.min_isr[place[0]]:
            self.acknowledged[place] |= set(log)

    @rule(place=st.sampled_from(PLACES), chosen=st.sets(st.sampled_from(BROKERS)), stale=st.booleans())
    def report(self, place: Place, chosen: set[int], stale: bool) -> None:
        """The leader says who is in sync: whoever has its whole log and is there."""
        state = self.state(place)
        if state.leader not in self.up:
            return
        isr = [state.leader]
        for broker in state.replicas:
            if broker in chosen and broker != state.leader and broker in self.up:
                self.logs[(*place, broker)] = list(self.log(place, state.leader))
                isr.append(broker)
        epochs = {broker: self.stage.image.brokers[broker].epoch - stale for broker in isr}
        answer = self.stage.alter_partition(
            isr, topic=place[0], index=place[1], broker=state.leader, broker_epochs=epochs
        )
        fine = all(self.stage.image.brokers[broker].active for broker in isr) and not stale
        if answer.error_code == ErrorCode.NONE:
            assert fine
            assert set(answer.isr) == set(self.state(place).isr)
        else:
            expected = {ErrorCode.NEW_LEADER_ELECTED} if fine else {ErrorCode.INELIGIBLE_REPLICA}
            assert answer.error_code in expected

    @rule(broker=st.sampled_from(REMOTE), lost=st.integers(0, 5))
    def crash(self, broker: int, lost: int) -> None:
        """A broker dies and may lose the end of every log."""
        if broker in self.up:
            self.up.discard(broker)
            self.stage.disconnect(broker)
            for (topic, index, at), log in self.logs.items():
                if at == broker and lost:
                    self.logs[topic, index, at] = log[:-lost]

    @rule(broker=st.sampled_from(REMOTE))
    def come_back(self, broker: int) -> None:
        if broker not in self.up:
            self.lossy = {broker}
            self.stage.restart(broker, clean=False)
            self.lossy = set()
            self.up.add(broker)

    @rule(broker=st.sampled_from(REMOTE))
    def stop_and_start(self, broker: int) -> None:
        """A broker stops as it should, and starts again."""
        if broker not in self.up:
            return
        for _ in range(20):
            if self.heartbeat(broker, want_shut_down=True).should_shut_down:
                break
            self.stage.wait(500, beating=sorted(self.up - {broker}))
        else:
            raise AssertionError("it may not stop")
        self.stage.restart(broker, clean=True)

    @rule(brokers=st.sets(st.sampled_from(REMOTE)), ms=st.sampled_from([500, 1_000, 3_000, 10_000]))
    def silence(self, brokers: set[int], ms: int) -> None:
        """Time passes; some brokers that are up cannot be heard."""
        self.stage.wait(ms, beating=sorted(self.up - brokers))

    @rule(ms=st.sampled_from([5_000, 100_000]))
    def stall(self, ms: int) -> None:
        """The controller itself was stopped: nobody is fenced for that."""
        if not self.up >= set(BROKERS):
            return
        for broker in BROKERS:
            self.heartbeat(broker)
        self.stage.now += ms
        self.stage.wait(400, beating=())
        assert not any(broker.fenced for broker in self.stage.image.brokers.values())

    @rule(broker=st.sampled_from(BROKERS))
    def beat(self, broker: int) -> None:
        if broker in self.up:
            self.heartbeat(broker)

    @rule(broker=st.sampled_from(REMOTE), number=st.integers(0, DIRECTORIES - 1))
    def lose_directory(self, broker: int, number: int) -> None:
        registered = self.stage.image.brokers[broker]
        if broker in self.up and len(registered.directories) > 1:
            self.heartbeat(broker, offline=[directory(broker, number)])

    @rule(place=st.sampled_from(PLACES), order=st.permutations(BROKERS), count=st.integers(2, 4))
    def move(self, place: Place, order: list[int], count: int) -> None:
        code, _ = self.stage.reassign(order[:count], topic=place[0], index=place[1])
        assert code == ErrorCode.NONE

    @rule(place=st.sampled_from(PLACES))
    def stop_moving(self, place: Place) -> None:
        code, _ = self.stage.reassign(None, topic=place[0], index=place[1])
        assert code in {
            ErrorCode.NONE,
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        }

    @rule(unclean=st.booleans())
    def elect(self, unclean: bool) -> None:
        request = ElectLeadersRequest(election_type=int(unclean), topic_partitions=None)
        self.leave = unclean
        self.stage.do(lambda controller, now: controller.elect_leaders(request, now))
        self.leave = False

    @rule(topic=st.sampled_from(sorted(TOPICS)), unclean=st.booleans())
    def allow(self, topic: str, unclean: bool) -> None:
        self.unclean[topic] = unclean
        self.stage.configure(ConfigType.TOPIC, topic, UNCLEAN, str(unclean).lower())

    @rule(node=st.sampled_from(BROKERS))
    def take_over(self, node: int) -> None:
        if node in self.up and 1 in self.up:
            self.stage.fail_over(1)  # a new controller that knows nothing of what was heard

    @rule(broker=st.sampled_from(REMOTE))
    def impostor(self, broker: int) -> None:
        """Somebody else comes under the id of a broker that is there."""
        if broker in self.up and self.heartbeat(broker) is not None:
            try:
                self.stage.register(broker, incarnation=99)
            except BrokerError as error:
                assert error.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
            else:
                raise AssertionError("two brokers of one id")

    # What holds

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "stage"):
            return
        image = self.stage.image
        for place in PLACES:
            state = self.state(place)
            brokers = image.brokers
            assert set(state.isr) <= set(state.replicas), state
            assert len(set(state.isr)) == len(state.isr)
            assert len(state.directories) == len(state.replicas)
            if state.leader >= 0:
                missing = self.acknowledged[place] - set(self.log(place, state.leader))
                if missing and state.leader in self.up:
                    # Without eligible replicas the last one in sync leads again, whatever it has lost.
                    assert not self.elr, f"{place}: {state} lacks {missing}"
                    self.acknowledged[place] -= missing
                assert state.leader in state.isr, state
                assert brokers[state.leader].active, state
                assert brokers[state.leader].has_online(state.directory_of(state.leader)), state
            assert set(state.elr) <= set(state.replicas) - set(state.isr), state
            assert set(state.adding) | set(state.removing) <= set(state.replicas), state
            assert not set(state.adding) & set(state.removing), state
            if self.elr:
                assert not any(brokers[each].fenced for each in state.isr) or self.unclean[place[0]], state
                first = image.topics.by_name[place[0]].partitions[0]
                if len(state.isr) >= min(self.min_isr[place[0]], len(first.replicas)):
                    assert not state.elr or self.resized(place), state
            else:
                assert not state.elr
                assert state.isr, state

    def resized(self, place: Place) -> bool:
        """True where partition 0 has other replicas by now, and with them the least number in sync."""
        first = self.stage.image.topics.by_name[place[0]].partitions[0]
        return len(first.replicas) != len(TOPICS[place[0]][0][0])

    def teardown(self) -> None:
        if not hasattr(self, "stage"):
            return
        census = self.stage.controller._now().census
        counted = Census(self.stage.image)
        for broker in BROKERS:
            assert set(census.on(broker)) == set(counted.on(broker))
        for name in ("leaderless", "imbalanced", "moving"):
            assert set(getattr(census, name)) == set(getattr(counted, name))


class ClusterWithoutElr(Cluster):
    elr = False


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=40, stateful_step_count=50, deadline=None)
TestClusterWithoutElr = ClusterWithoutElr.TestCase
TestClusterWithoutElr.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
