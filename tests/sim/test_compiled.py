"""Simulated clusters run on what users run: the compiled parts. They make the same history as their twins in Python."""

from dataclasses import replace

import pytest

from ottla.channel import swift
from ottla.node import node_connections
from ottla.sim.cluster.scenarios.scenario import Scenario
from ottla.sim.cluster.simulation import SCENARIOS, simulate
from ottla.sim.compiled import IS_BUILT, Entered
from tests.unit.log.topic_settings import OF_TOPICS

pytestmark = pytest.mark.skipif(not IS_BUILT, reason="the compiled parts were not built")

# Where several readers wait for one record, those that the compiled path cannot answer at once come after the others:
# with one reader a partition nothing is left to differ in.
ONE_READER = replace(SCENARIOS["one-replica-unsynced"], name="one-reader", work={"produce": 100, "consume": 100})


@pytest.mark.parametrize(
    ("scenario", "seed"),
    [
        ("everything", 0),
        ("blackout", 1),
        ("one-replica", 1),
        (ONE_READER, 3),
        ("full-disks", 0),
        ("slow-disks", 1),
        ("slow-readers", 1),
        ("clock-jumps", 1),
    ],
    ids=str,
)
def test_both_make_the_same_history(scenario, seed):
    """Every byte arrives at the same moment, whichever of the two appends, serves and reads frames."""
    compiled, python = (simulate(scenario, seed, in_python=each) for each in (False, True))
    assert compiled.violation is None, str(compiled)
    assert compiled.entered.batches_stored > 0
    assert compiled.entered.fetches_parked > 0
    assert python.entered == Entered()
    assert (compiled.digest, compiled.steps) == (python.digest, python.steps)


# Power goes where a record is synced before it is acknowledged, and processes die where it is not.
SYNCED = Scenario(
    "synced",
    {"power loss": 3, "kill": 1},
    count=(2, 3),
    lasts_s=(0.3, 1.5),
    span_s=5.0,
    work={"produce": 100, "consume": 100},
    properties={"min.insync.replicas": "1"},
    replicas=1,
)
UNSYNCED = replace(
    SYNCED, name="unsynced", perils={"kill": 1}, properties={"min.insync.replicas": "1", "ottla.flush": "os"}
)
# Low enough for the records of a simulation to come near.
NEARER = {
    "largest message": {"max.message.bytes": "110"},
    "bounds of timestamps": {"message.timestamp.before.max.ms": "8", "message.timestamp.after.max.ms": "8"},
    "small indexes": {"index.interval.bytes": "0", "segment.index.bytes": "4096"},
    "short segments": {"segment.ms": "1500"},
    "jitter": {"segment.ms": "2000", "segment.jitter.ms": "1000"},
    "flush.ms": {"flush.ms": "20"},
}
TOPICS = {name: NEARER.get(name, case.topic) for name, case in OF_TOPICS.items()}


@pytest.mark.parametrize("name", TOPICS)
@pytest.mark.parametrize("scenario", [SYNCED, UNSYNCED], ids=lambda scenario: scenario.name)
def test_both_make_the_same_history_of_topics_with_every_setting(scenario, name):
    seed = list(TOPICS).index(name)
    compiled, python = (simulate(replace(scenario, topic=TOPICS[name]), seed, in_python=each) for each in (False, True))
    assert compiled.violation is None, str(compiled)
    assert compiled.tally.acknowledged > 10
    assert compiled.tally.power_losses + compiled.tally.crashes > 0
    assert (compiled.entered.produces_served > 0) == OF_TOPICS[name].is_plain
    assert python.entered == Entered()
    assert (compiled.digest, compiled.steps) == (python.digest, python.steps)


@pytest.mark.parametrize("scenario", ["one-replica", ONE_READER], ids=str)
def test_a_topic_with_one_replica_is_served_by_the_compiled_path(scenario, monkeypatch):
    frames = []

    class Counted(swift.SwiftConnection):
        __slots__ = ()

        def buffer_updated(self, nbytes):
            frames.append(nbytes)
            super().buffer_updated(nbytes)

    monkeypatch.setattr(node_connections, "SwiftConnection", Counted)
    outcome = simulate(scenario, 1)
    assert outcome.violation is None, str(outcome)
    entered = outcome.entered
    assert entered.produces_served == entered.batches_stored > 50
    assert entered.fetches_parked > 50
    assert frames
    # With flush=ack readers are woken by the sync, which is no request.
    assert (entered.readers_answered > 20) == (scenario is ONE_READER)
