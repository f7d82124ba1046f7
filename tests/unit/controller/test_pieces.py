"""A broker with much to give up goes piece by piece, and everybody else is heard in between."""

import pytest

from ottla.controller import fencing
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.unit.controller.stage import NO_ELR, Stage, wish

PIECE = 4
LED = {index: [2, 1, 3] for index in range(6)}
FOLLOWED = {index: [1, 2, 3] for index in range(6, 11)}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing, "CHANGES_MAX", PIECE)


@pytest.fixture
def stage() -> Stage:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments=dict(sorted((FOLLOWED | LED).items()))))
    stage.wait(8_000, beating=[2, 3])
    return stage


def pieces_of(stage: Stage) -> list[list[Message]]:
    """What the controller decides by itself, decision by decision, until it has nothing left to decide."""
    pieces = []
    while (deadline := stage.controller.deadline) is not None and deadline <= stage.now:
        stage.do(lambda controller, now: controller.expire(now))
        if stage.records:
            pieces.append(stage.records)
        assert len(pieces) < 100, "it has to come to an end"
    return pieces


def lose(stage: Stage, broker: int) -> None:
    epoch = stage.image.brokers[broker].epoch
    stage.do(lambda controller, now: controller.broker_disconnected(broker, epoch, now, refused=True))


def holds(stage: Stage, broker: int) -> int:
    """How many partitions still count on a broker."""
    states = stage.image.topics.by_name["one"].partitions.values()
    return sum(broker in state.isr or broker == state.leader for state in states)


def test_what_has_lost_its_leader_comes_first_and_the_broker_last(stage: Stage) -> None:
    lose(stage, 2)
    pieces = pieces_of(stage)
    assert [len(piece) for piece in pieces] == [PIECE, PIECE, 4]
    records = [record for piece in pieces for record in piece]
    changed = [each.partition_id for each in records if isinstance(each, PartitionChangeRecord)]
    assert changed == [*LED, *FOLLOWED]
    assert isinstance(records[-1], BrokerRegistrationChangeRecord)
    assert stage.image.brokers[2].fenced
    assert not holds(stage, 2)
    assert {stage.state("one", index).leader for index in LED} == {1}


def test_a_number_that_fits_exactly_leaves_only_the_broker_for_the_last_piece() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={index: [2, 1] for index in range(PIECE)}))
    stage.wait(8_000, beating=[2, 3])
    lose(stage, 2)
    assert [len(piece) for piece in pieces_of(stage)] == [PIECE, 1]
    assert stage.image.brokers[2].fenced


def test_one_that_is_heard_again_in_between_stays_in_service(stage: Stage) -> None:
    lose(stage, 2)
    stage.do(lambda controller, now: controller.expire(now))
    assert len(stage.records) == PIECE
    stage.heartbeat(2)
    assert pieces_of(stage) == []
    assert not stage.image.brokers[2].fenced
    assert holds(stage, 2) == len(LED) + len(FOLLOWED) - PIECE
    moved = next(index for index in LED if stage.state("one", index).leader == 1)
    stage.alter_partition([1, 3, 2], index=moved)
    assert 2 in stage.state("one", moved).isr


@pytest.mark.parametrize("features", [None, NO_ELR], ids=["elr", "no elr"])
@pytest.mark.parametrize("fail_over", [False, True], ids=["heard again", "by the next controller"])
def test_what_it_alone_can_lead_gets_its_leader_back_when_a_fence_breaks_off(
    features: dict[str, int] | None, fail_over: bool
) -> None:
    stage = Stage(1, 2, 3, features=features, settings={"auto.leader.rebalance.enable": "false"})
    count = 3 * PIECE
    stage.create(wish("one", assignments={index: [2] for index in range(count)}))
    stage.wait(8_000, beating=[2, 3])
    lose(stage, 2)
    for _ in range(2):
        stage.do(lambda controller, now: controller.expire(now))
        assert len(stage.records) == PIECE
    assert sum(stage.state("one", index).leader == 2 for index in range(count)) == PIECE
    if fail_over:
        stage.fail_over(3)
    stage.heartbeat(2)
    assert [len(piece) for piece in pieces_of(stage)] == [PIECE, PIECE], "piece by piece, it comes back too"
    assert not stage.image.brokers[2].fenced
    assert {stage.state("one", index).leader for index in range(count)} == {2}
    stage.wait(8_000, beating=[1, 2, 3])
    assert stage.records == []


@pytest.mark.parametrize("fail_over", [False, True], ids=["one controller", "by the next controller"])
def test_a_broker_that_leaves_the_fence_gets_what_it_alone_can_lead_piece_by_piece(fail_over: bool) -> None:
    stage = Stage(1, 2, 3, settings={"auto.leader.rebalance.enable": "false"})
    count = 3 * PIECE
    stage.create(wish("one", assignments={index: [2] for index in range(count)}))
    stage.wait(8_000, beating=[2, 3])
    lose(stage, 2)
    pieces_of(stage)
    assert stage.image.brokers[2].fenced
    stage.heartbeat(2)
    assert len(stage.records) == 1 + PIECE
    assert not stage.image.brokers[2].fenced
    if fail_over:
        stage.fail_over(3)
        stage.heartbeat(2)
    pieces_of(stage)
    assert {stage.state("one", index).leader for index in range(count)} == {2}


def test_a_controller_that_is_itself_the_broker_gives_itself_what_has_no_leader() -> None:
    stage = Stage(1, 2, 3, settings={"auto.leader.rebalance.enable": "false"})
    stage.create(wish("one", assignments={index: [3] for index in range(2 * PIECE)}))
    stage.wait(8_000, beating=[2, 3])
    lose(stage, 3)
    stage.do(lambda controller, now: controller.expire(now))
    stage.fail_over(3)
    stage.heartbeat(3)
    pieces_of(stage)
    assert {stage.state("one", index).leader for index in range(2 * PIECE)} == {3}


def test_one_that_comes_in_sync_again_in_between_is_taken_out_again(stage: Stage) -> None:
    lose(stage, 2)
    stage.do(lambda controller, now: controller.expire(now))
    moved = next(index for index in LED if stage.state("one", index).leader == 1)
    stage.alter_partition([1, 3, 2], index=moved)
    pieces_of(stage)
    assert stage.image.brokers[2].fenced
    assert not holds(stage, 2)


def test_the_next_controller_goes_on_where_the_last_one_ended(stage: Stage) -> None:
    lose(stage, 2)
    stage.do(lambda controller, now: controller.expire(now))
    stage.fail_over(3)
    lose(stage, 2)
    stage.wait(8_000, beating=[1])
    assert stage.image.brokers[2].fenced
    assert not holds(stage, 2)


def test_partitions_that_nobody_else_can_lead_do_not_hold_it_up() -> None:
    stage = Stage(1, 2, 3, features=NO_ELR)
    stage.create(wish("one", assignments={index: [2] for index in range(3 * PIECE)}))
    stage.wait(8_000, beating=[2, 3])
    lose(stage, 2)
    assert [len(piece) for piece in pieces_of(stage)] == [PIECE, PIECE, PIECE, 1]
    assert stage.image.brokers[2].fenced
    assert {stage.state("one", index).leader for index in range(3 * PIECE)} == {-1}


def test_a_broker_that_stops_hands_over_a_piece_a_heartbeat(stage: Stage) -> None:
    """And may go once everybody knows of the last of them."""
    led = []
    for _ in range(3):
        assert not stage.heartbeat(2, want_shut_down=True).should_shut_down
        first, *changes = stage.records
        assert isinstance(first, BrokerRegistrationChangeRecord)
        assert len(changes) <= PIECE
        led.append(sum(stage.state("one", index).leader == 2 for index in LED))
        if changes:
            before_last = stage.controller.end_offset - 2
    assert led == [2, 0, 0]
    assert not holds(stage, 2)
    assert not stage.image.brokers[2].fenced
    stage.heartbeat(3, offset=before_last)
    assert not stage.heartbeat(2, want_shut_down=True).should_shut_down, (
        "one broker has not heard of the last piece"
    )
    assert stage.records == []
    stage.heartbeat(3)
    assert stage.heartbeat(2, want_shut_down=True).should_shut_down
    assert stage.image.brokers[2].fenced


def test_a_new_incarnation_waits_until_the_last_one_is_fenced(stage: Stage) -> None:
    with pytest.raises(BrokerError) as refused:
        stage.restart(2, clean=False)
    assert refused.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert stage.records == []
    pieces = pieces_of(stage)
    assert max(map(len, pieces)) <= PIECE
    assert stage.image.brokers[2].fenced
    stage.register(2, incarnation=2)
    assert len(stage.records) == 1
    stage.heartbeat(2)
    assert not stage.image.brokers[2].fenced


def test_a_new_incarnation_with_little_to_give_up_does_not_wait() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={index: [2, 1] for index in range(PIECE)}))
    stage.wait(8_000, beating=[2, 3])
    stage.restart(2, clean=False)
    assert len(stage.records) == PIECE + 1


def test_a_broker_that_is_alone_on_its_partitions_comes_back_at_once() -> None:
    stage = Stage(1, 2, 3)
    stage.create(wish("one", assignments={index: [2] for index in range(3 * PIECE)}))
    stage.wait(8_000, beating=[2, 3])
    stage.restart(2, clean=True)
    assert len(stage.records) == 1
