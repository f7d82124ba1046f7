"""Brokers come, go and fail; leaders follow."""

import pytest

from ottla.controller import fencing
from ottla.controller.attention import PULSE_MS
from ottla.metadata.config import ConfigType
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest
from ottla.wire.records.metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.unit.controller.stage import NO_ELR, Stage, directory, wish
from tests.unit.controller.test_directories import assign


def test_a_silent_broker_is_fenced_and_loses_its_leaders() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.wait(8_000, beating=[2, 3])
    assert not stage.image.brokers[2].fenced
    stage.wait(1_400, beating=[3])
    assert stage.records == []
    stage.wait(1_000, beating=[3])
    assert stage.image.brokers[2].fenced
    state = stage.state("one")
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1,), 1)
    stage.heartbeat(2)
    assert not stage.image.brokers[2].fenced


def test_a_broker_is_fenced_though_the_disk_was_full_when_it_was_missed() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 3]}))
    stage.wait(8_000, beating=[2, 3])
    stage.is_full = True
    stage.wait(6_000, beating=[3])
    assert not stage.image.brokers[2].fenced
    assert 2 < stage.refused < 6_000 / PULSE_MS, "it is tried again, with pauses"
    stage.is_full = False
    stage.wait(1_000, beating=[3])
    assert stage.image.brokers[2].fenced
    assert stage.state("one").leader == 3


def test_a_broker_that_comes_back_leads_all_again_though_the_disk_was_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2], 1: [2], 2: [2]}))
    stage.wait(8_000, beating=[2, 3])
    stage.wait(4_000, beating=[3])
    monkeypatch.setattr(fencing, "CHANGES_MAX", 1)
    stage.heartbeat(2)
    stage.is_full = True
    stage.wait(1_000, beating=[2, 3])
    assert stage.refused > 1
    stage.is_full = False
    stage.wait(1_000, beating=[2, 3])
    assert [stage.state("one", index).leader for index in range(3)] == [2, 2, 2]


@pytest.mark.parametrize("how", ["registers", "is unregistered"])
def test_a_broker_is_listened_for_until_the_log_says_otherwise(how: str) -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 3]}))
    stage.wait(8_000, beating=[2, 3])
    stage.disconnect(2)
    stage.is_full = True
    if how == "registers":
        stage.register(2, incarnation=9)
    else:
        request = UnregisterBrokerRequest(broker_id=2)
        stage.do(lambda controller, now: controller.unregister_broker(request, now))
    assert stage.refused == 1
    stage.is_full = False
    stage.wait(10_000, beating=[3])
    assert stage.image.brokers[2].fenced
    assert stage.state("one").leader == 3


def test_a_broker_whose_connection_closed_is_fenced_at_once() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.wait(8_000, beating=[2, 3])
    stage.disconnect(2)
    assert stage.records == []
    stage.wait(900, beating=[3])
    assert stage.image.brokers[2].fenced
    assert stage.state("one").leader == 1


def test_a_connection_of_an_earlier_incarnation_says_nothing() -> None:
    stage = Stage(1, 2, 3)
    epoch = stage.image.brokers[2].epoch
    stage.restart(2, clean=True)
    stage.heartbeat(2)
    stage.wait(8_000, beating=[2, 3])
    stage.disconnect(2, epoch=epoch)
    stage.wait(1_000, beating=[3])
    assert not stage.image.brokers[2].fenced
    stage.disconnect(7, epoch=1)  # nor does one of somebody who was never here


def test_several_that_are_gone_are_fenced_one_after_the_other() -> None:
    stage = Stage(1, 2, 3, 4)
    stage.create(wish("one", assignments={0: [2, 3, 4]}, configs={"min.insync.replicas": "2"}))
    stage.wait(8_000, beating=[2, 3, 4])
    stage.disconnect(2)
    stage.disconnect(3)
    stage.wait(1_000, beating=[4])
    state = stage.state("one")
    assert (state.leader, state.isr, state.partition_epoch) == (4, (4,), 2)
    assert state.elr in {(2,), (3,)}, "the first to go left two in sync, which was enough"


def test_the_controllers_own_node_is_never_silent() -> None:
    stage = Stage(1)
    assert stage.controller.deadline is None


def test_the_last_replica_that_fails_leaves_no_leader_and_leads_again_when_it_returns() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2]}))
    stage.heartbeat(2, want_fence=True)
    state = stage.state("one")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (-1, (), (2,), (2,))
    stage.heartbeat(2)
    state = stage.state("one")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (2, (2,), (), ())
    assert (state.leader_epoch, state.leader_recovery_state) == (2, 0)


def test_without_eligible_leaders_the_last_in_sync_replica_stays_in_sync() -> None:
    stage = Stage(1, 2, features=NO_ELR)
    stage.create(wish("one", assignments={0: [2]}))
    stage.heartbeat(2, want_fence=True)
    assert (stage.state("one").leader, stage.state("one").isr, stage.state("one").elr) == (-1, (2,), ())
    stage.heartbeat(2)
    assert (stage.state("one").leader, stage.state("one").isr) == (2, (2,))


def test_after_an_unclean_stop_of_the_last_known_leader_the_partition_recovers_from_it() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 3]}))
    stage.heartbeat(3, want_fence=True)
    stage.restart(2, clean=False)
    state = stage.state("one")
    assert (state.leader, state.isr, state.last_known_elr) == (-1, (), (2,))
    stage.heartbeat(2)
    state = stage.state("one")
    assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), 1)
    assert stage.alter_partition([2]).error_code == 0
    assert stage.state("one").leader_recovery_state == 0


def test_eligible_leaders_while_brokers_are_fenced_and_come_back() -> None:
    """Kafka's ReplicationControlManagerTest: four replicas, three of which must be in sync."""
    stage = Stage(1, 2, 3, 4)
    stage.create(wish("one", assignments={0: [1, 2, 3, 4]}, configs={"min.insync.replicas": "3"}))
    for broker in (2, 3, 4):
        stage.heartbeat(broker, want_fence=True)
    assert (stage.state("one").elr, stage.state("one").last_known_elr) == ((3, 4), ())
    stage.heartbeat(3)
    assert (stage.state("one").leader, stage.state("one").isr) == (1, (1,)), "in sync it is when it says so"
    stage.heartbeat(1, want_fence=True)
    state = stage.state("one")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (3, (3,), (1, 4), ())


def test_eligible_leaders_after_unclean_stops() -> None:
    """Kafka's ReplicationControlManagerTest, likewise."""
    stage = Stage(1, 2, 3, 4)
    stage.create(wish("one", assignments={0: [1, 2, 3, 4]}, configs={"min.insync.replicas": "3"}))
    for broker in (2, 3, 4):
        stage.heartbeat(broker, want_fence=True)
    stage.restart(4, clean=False)
    assert (stage.state("one").elr, stage.state("one").last_known_elr) == ((3,), ())
    stage.restart(1, clean=False)
    state = stage.state("one")
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (-1, (), (3,), (1,))


def test_the_last_in_sync_replica_stops_cleanly_and_all_are_eligible() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [1, 2, 3]}, configs={"min.insync.replicas": "3"}))
    for broker in (2, 3):
        stage.heartbeat(broker, want_fence=True)
    assert stage.state("one").elr == (2, 3)
    stage.restart(1, clean=True)
    state = stage.state("one")
    assert (state.isr, state.elr, state.last_known_elr) == ((), (1, 2, 3), (1,))


def test_min_isr_that_changes_forgets_who_was_eligible() -> None:
    stage = Stage(1, 2, 3, 4)
    for topic in ("one", "two"):
        stage.create(wish(topic, assignments={0: [1, 2, 4]}, configs={"min.insync.replicas": "2"}))
    stage.heartbeat(4, want_fence=True)
    stage.heartbeat(2, want_fence=True)
    assert (stage.state("one").elr, stage.state("two").elr) == ((2,), (2,))
    stage.configure(ConfigType.TOPIC, "one", "min.insync.replicas", "1")
    assert (stage.state("one").elr, stage.state("two").elr) == ((), (2,))
    stage.configure(ConfigType.BROKER, "", "min.insync.replicas", "1")
    assert stage.state("two").elr == ()


@pytest.mark.parametrize("broker", [2, 3])
def test_an_offline_directory_takes_its_replicas_out(broker: int) -> None:
    stage = Stage(1)
    for each in (2, 3):
        stage.register(each, directories=2)
        stage.heartbeat(each)
    for topic, number in (("one", 0), ("two", 1)):
        stage.create(wish(topic, assignments={0: [2, 3, 1]}))
        for each in (2, 3):
            assign(stage, each, directory(each, number), topic)
    # A directory of another broker is not this one's to lose.
    stage.heartbeat(broker, offline=[directory(broker, 1), directory(5 - broker, 0)])
    assert [type(record) for record in stage.records] == [
        PartitionChangeRecord,
        BrokerRegistrationChangeRecord,
    ]
    assert stage.image.brokers[broker].directories == (directory(broker, 0),)
    assert stage.state("one").isr == (2, 3, 1)
    assert broker not in stage.state("two").isr
    assert stage.state("two").leader == (3 if broker == 2 else 2)


def test_a_directory_and_its_broker_that_go_together_are_one_change_a_partition() -> None:
    stage = Stage(1)
    stage.register(2, directories=2)
    stage.heartbeat(2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    assign(stage, 2, directory(2, 1), "one")
    before = stage.state("one").partition_epoch
    stage.heartbeat(2, want_shut_down=True, offline=[directory(2, 1)])
    assert (stage.state("one").leader, stage.state("one").partition_epoch) == (1, before + 1)
    assert stage.image.brokers[2].directories == (directory(2, 0),)


def test_the_registration_goes_first_into_service_and_last_out_of_it() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2]}))
    stage.heartbeat(2, want_fence=True)
    out = [PartitionChangeRecord, BrokerRegistrationChangeRecord]
    assert [type(record) for record in stage.records] == out
    stage.heartbeat(2)
    assert [type(record) for record in stage.records] == out[::-1]
    stage.restart(2, clean=True)
    assert type(stage.records[-1]) is RegisterBrokerRecord


class Counted(dict):  # type: ignore[type-arg]
    """Topics that count how often they are looked up."""

    looked_up = 0

    def __getitem__(self, key: bytes) -> object:
        self.looked_up += 1
        return super().__getitem__(key)


def test_the_loss_of_a_broker_costs_what_it_had() -> None:
    stage = Stage(*range(1, 31))
    for number in range(10):
        stage.create(wish(f"t{number}", 100, 3))
    topics = stage.image.topics
    counted = Counted(topics.by_id)
    object.__setattr__(stage.image, "topics", topics._replace(by_id=counted))
    had = [
        state
        for topic in topics.by_name.values()
        for state in topic.partitions.values()
        if 7 in state.replicas
    ]
    stage.heartbeat(7, want_fence=True)
    assert len(stage.records) == len(had) + 1
    assert counted.looked_up == len(had) <= 110
