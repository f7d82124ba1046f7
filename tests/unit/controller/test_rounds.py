"""What the controller does on its own from time to time."""

import pytest

from ottla.controller import rounds
from ottla.metadata.config import ConfigType
from ottla.wire.records.metadata import PartitionChangeRecord
from tests.unit.controller.stage import NO_ELR, Stage, wish

OFTEN = {"leader.imbalance.check.interval.seconds": "30", "unclean.leader.election.interval.ms": "30000"}
UNCLEAN = "unclean.leader.election.enable"


def test_leadership_goes_back_to_the_preferred_replica() -> None:
    stage = Stage(1, 2, 3, settings=OFTEN)
    stage.create(wish("one", assignments={0: [2, 3], 1: [3, 2]}))
    stage.restart(2, clean=True)
    stage.heartbeat(2)
    assert [stage.state("one", index).leader for index in (0, 1)] == [3, 3]
    stage.wait(31_000, beating=[2, 3])
    assert stage.records == [], "it is not in sync yet"
    stage.alter_partition([3, 2])
    stage.wait(28_000, beating=[2, 3])
    assert stage.records == [], "a round is not due yet"
    stage.wait(4_000, beating=[2, 3])
    (record,) = stage.records
    assert isinstance(record, PartitionChangeRecord)
    assert [stage.state("one", index).leader for index in (0, 1)] == [2, 3]


def test_leadership_stays_where_users_want_that() -> None:
    stage = Stage(1, 2, 3, settings={**OFTEN, "auto.leader.rebalance.enable": "false"})
    stage.create(wish("one", assignments={0: [2, 3]}))
    stage.restart(2, clean=True)
    stage.heartbeat(2)
    stage.alter_partition([3, 2])
    stage.wait(40_000, beating=[2, 3])
    assert stage.state("one").leader == 3


def test_a_round_is_no_larger_than_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "ELECTIONS_MAX", 3)
    stage = Stage(1, 2, 3, settings=OFTEN)
    stage.create(wish("one", assignments={index: [2, 3] for index in range(8)}))
    stage.restart(2, clean=True)
    stage.heartbeat(2)
    for index in range(8):
        stage.alter_partition([3, 2], index=index)
    stage.now += 30_000
    sizes = []
    while stage.controller.deadline is not None and stage.controller.deadline <= stage.now:
        stage.do(lambda controller, now: controller.expire(now))
        sizes.append(len(stage.records))
    assert sizes == [3, 3, 2]
    assert {state.leader for state in stage.image.topics.by_name["one"].partitions.values()} == {2}


@pytest.mark.parametrize("where", ["nowhere", "file", "cluster", "node", "topic"])
def test_an_unclean_leader_is_elected_where_that_is_allowed(where: str) -> None:
    """Kafka's ReplicationControlManagerTest."""
    settings = {**OFTEN, **({UNCLEAN: "true"} if where == "file" else {})}
    stage = Stage(1, 2, 3, 4, 5, 6, features=NO_ELR, settings=settings)
    stage.create(wish("one", assignments={0: [3, 4, 6], 1: [3, 5, 6], 2: [2, 4, 6]}))
    for broker in (2, 3, 4, 5, 6):
        stage.heartbeat(broker, want_fence=True)
    assert [stage.state("one", index).isr for index in range(3)] == [(6,)] * 3
    stage.heartbeat(4)
    before = stage.controller.deadline
    if where == "cluster":
        stage.configure(ConfigType.BROKER, "", UNCLEAN, "true")
    elif where == "node":
        stage.configure(ConfigType.BROKER, "1", UNCLEAN, "true")
    elif where == "topic":
        stage.configure(ConfigType.TOPIC, "one", UNCLEAN, "true")
    else:
        assert stage.controller.deadline == before
    stage.wait(500)
    leaders = [stage.state("one", index).leader for index in range(3)]
    assert leaders == ([-1, -1, -1] if where == "nowhere" else [4, -1, 4])
    if where != "nowhere":
        state = stage.state("one")
        assert (state.isr, state.leader_recovery_state) == ((4,), 1)


def test_an_idle_controller_has_nothing_to_look_at() -> None:
    stage = Stage(1)
    stage.create(wish("one", 5))
    assert stage.controller.deadline is None
