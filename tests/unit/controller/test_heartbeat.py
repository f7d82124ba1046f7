"""What brokers hear when they say that they live."""

import pytest

from ottla.controller.heartbeat import Standing, next_standing
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.unit.controller.stage import Stage, directory, wish

FENCED, UNFENCED, LEAVING, GONE = Standing


def test_a_broker_registers_fenced_and_leaves_the_fence_with_a_heartbeat() -> None:
    stage = Stage()
    offset = stage.controller.end_offset
    assert stage.register(1) == offset
    broker = stage.image.brokers[1]
    assert (broker.fenced, broker.epoch, broker.directories) == (True, offset, (directory(1),))
    assert broker.listeners["PLAINTEXT"].host == "host1"
    reply = stage.heartbeat(1)
    assert (reply.is_fenced, reply.is_caught_up, reply.should_shut_down) == (False, True, False)
    assert stage.image.brokers[1].active
    assert stage.heartbeat(1).is_fenced is False
    assert stage.records == []


def test_a_broker_that_has_not_seen_its_own_registration_stays_fenced() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", 3, 3))
    stage.restart(2, clean=True)
    assert len(stage.records) > 1, "what it gave up comes before its registration"
    last = stage.controller.end_offset - 1
    assert stage.image.brokers[2].epoch < last
    reply = stage.heartbeat(2, offset=last - 1)
    assert (reply.is_fenced, reply.is_caught_up) == (True, False)
    reply = stage.heartbeat(2, offset=last)
    assert (reply.is_fenced, reply.is_caught_up) == (False, True)


def test_a_new_controller_wants_the_registration_to_be_seen_as_well() -> None:
    stage = Stage(1, 3)
    stage.register(2)
    offset = stage.controller.end_offset - 1
    stage.fail_over(3)
    assert stage.heartbeat(2, offset=offset - 1).is_fenced
    assert not stage.heartbeat(2, offset=offset).is_fenced


@pytest.mark.parametrize("broker", [1, 9])
def test_a_heartbeat_of_another_incarnation_is_refused(broker: int) -> None:
    stage = Stage(1)
    request = BrokerHeartbeatRequest(broker_id=broker, broker_epoch=0)
    with pytest.raises(BrokerError) as refused:
        stage.do(lambda controller, now: controller.heartbeat(request, now))
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("current", "want_fence", "want_shut_down", "caught_up", "leads", "may_leave", "expected"),
    [
        # The table of Kafka's BrokerHeartbeatManagerTest.
        (FENCED, False, True, True, False, True, GONE),
        (FENCED, False, False, True, False, True, UNFENCED),
        (FENCED, False, False, False, False, True, FENCED),
        (FENCED, True, False, True, False, True, FENCED),
        (UNFENCED, False, True, False, True, True, LEAVING),
        (UNFENCED, False, True, False, False, True, GONE),
        (UNFENCED, False, False, False, False, True, UNFENCED),
        (LEAVING, False, True, False, True, False, LEAVING),
        (LEAVING, False, True, False, False, False, LEAVING),
        (LEAVING, False, True, False, False, True, GONE),
        (LEAVING, False, True, False, True, True, LEAVING),
        # And what its code says besides.
        (UNFENCED, True, True, True, True, True, GONE),
        (UNFENCED, True, False, True, True, True, FENCED),
        (LEAVING, False, False, True, False, False, LEAVING),
        (FENCED, True, True, False, False, False, GONE),
    ],
)
def test_how_a_broker_stands_after_its_heartbeat(
    current: Standing,
    want_fence: bool,
    want_shut_down: bool,
    caught_up: bool,
    leads: bool,
    may_leave: bool,
    expected: Standing,
) -> None:
    request = BrokerHeartbeatRequest(want_fence=want_fence, want_shut_down=want_shut_down)
    found = next_standing(
        current, request, caught_up=caught_up, leads=lambda: leads, may_leave=lambda: may_leave
    )
    assert found is expected


def test_a_controlled_shutdown_moves_leaders_first() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [2, 1]}))
    reply = stage.heartbeat(2, want_shut_down=True)
    assert (reply.is_fenced, reply.should_shut_down) == (False, False)
    assert [type(record) for record in stage.records] == [
        BrokerRegistrationChangeRecord,
        PartitionChangeRecord,
    ]
    assert stage.image.brokers[2].in_controlled_shutdown
    assert (stage.state("one").leader, stage.state("one").isr) == (1, (1,))
    reply = stage.heartbeat(2, want_shut_down=True)
    assert (reply.is_fenced, reply.should_shut_down) == (True, True)
    assert stage.image.brokers[2].fenced
    stage.register(2, incarnation=2)


def test_who_leads_nothing_may_go_at_once() -> None:
    stage = Stage(1, 2)
    stage.create(wish("one", assignments={0: [1, 2]}))
    reply = stage.heartbeat(2, want_shut_down=True)
    assert (reply.is_fenced, reply.should_shut_down) == (True, True)
    assert stage.state("one").isr == (1,)
    assert stage.heartbeat(2, want_shut_down=True).should_shut_down
    assert stage.records == []


def test_a_broker_stays_until_the_others_know_who_leads_now() -> None:
    stage = Stage(1, 2, 3, 4)
    stage.create(wish("one", assignments={0: [2, 3], 1: [2, 4]}))
    stage.heartbeat(2, want_shut_down=True)
    end = stage.controller.end_offset - 1
    assert len(stage.records) == 3
    for broker in (3, 4):
        assert not stage.heartbeat(2, want_shut_down=True).should_shut_down
        stage.heartbeat(broker, offset=end - 1)  # it has not seen the last of the partitions change hands
        assert not stage.heartbeat(2, want_shut_down=True).should_shut_down
        stage.heartbeat(broker, offset=end)
    assert stage.heartbeat(2, want_shut_down=True).should_shut_down


def test_a_broker_that_is_gone_keeps_nobody_from_going() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.heartbeat(2, want_shut_down=True)
    assert not stage.heartbeat(2, want_shut_down=True).should_shut_down
    stage.heartbeat(3, want_fence=True)
    assert stage.heartbeat(2, want_shut_down=True).should_shut_down


def test_a_new_controller_lets_a_broker_go_once_the_others_have_spoken() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.heartbeat(2, want_shut_down=True)
    stage.fail_over(3)
    assert not stage.heartbeat(2, want_shut_down=True).should_shut_down
    stage.heartbeat(1)
    assert stage.heartbeat(2, want_shut_down=True).should_shut_down


def test_brokers_on_their_way_out_get_no_new_replicas() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={0: [2, 1]}))
    stage.heartbeat(2, want_shut_down=True)
    stage.create(wish("two", 6, 2))
    placed = [state.replicas for state in stage.image.topics.by_name["two"].partitions.values()]
    assert {broker for replicas in placed for broker in replicas} == {1, 3}


def test_a_directory_is_cordoned_and_opened_again() -> None:
    stage = Stage(1)
    stage.register(2, directories=2)
    stage.heartbeat(2)
    assert stage.image.brokers[2].cordoned is None
    first, second = directory(2, 0), directory(2, 1)
    for cordoned, recorded in [
        (None, False),
        ([first], True),
        ([first], False),
        ([second, first], True),
        ([], True),
        ([], False),
    ]:
        stage.heartbeat(2, cordoned=cordoned)
        assert len(stage.records) == recorded
    assert stage.image.brokers[2].cordoned == ()


def test_a_broker_does_not_leave_the_fence_with_a_loss_that_is_not_recorded() -> None:
    stage = Stage(1)
    stage.register(2, directories=2)
    stage.heartbeat(2)
    stage.create(wish("one", assignments={0: [2]}))
    stage.heartbeat(2, want_fence=True)
    assert stage.state("one").leader == -1
    epoch = stage.image.brokers[2].epoch
    stage.disconnect(2)
    stage.register(2, incarnation=2, previous_epoch=epoch, directories=2)
    reply = stage.heartbeat(2, offline=[directory(2, 0)])
    assert reply.is_fenced
    assert stage.image.brokers[2].directories == (directory(2, 1),)
    reply = stage.heartbeat(2, offline=[directory(2, 0)])
    assert not reply.is_fenced
