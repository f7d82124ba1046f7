"""Where new replicas go."""

import pytest

from ottla.controller.placement import place
from ottla.metadata.registration import Broker
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.entropy import SeededEntropy
from tests.unit.controller.stage import Stage, directory, wish


def brokers(racks: dict[int, str | None], fenced: set[int] = frozenset()) -> list[Broker]:  # type: ignore[assignment]
    return [Broker(id, 0, bytes(16), {}, {}, rack, fenced=id in fenced) for id, rack in racks.items()]


@pytest.mark.parametrize("seed", range(5))
def test_placement_spreads_leaders_and_racks(seed: int) -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    placed = place(brokers(racks), 60, 3, SeededEntropy(seed))
    leaders = [each[0] for each in placed]
    assert {leaders.count(broker) for broker in racks} == {10}
    for each in placed:
        assert len(set(each)) == 3
        assert {racks[broker] for broker in each} == {"a", "b", "c"}


def test_placement_uses_fenced_brokers_last_and_never_to_lead() -> None:
    placed = place(brokers({1: None, 2: None, 3: None}, fenced={3}), 20, 3, SeededEntropy(1))
    assert all(each[0] in {1, 2} and set(each) == {1, 2, 3} for each in placed)


def test_placement_on_one_broker() -> None:
    assert place(brokers({1: None}), 3, 1, SeededEntropy(1)) == [[1], [1], [1]]


def test_brokers_whose_directories_are_all_cordoned_get_nothing() -> None:
    stage = Stage(1, 2)
    stage.heartbeat(1, cordoned=[directory(1)])
    stage.create(wish("one", 4))
    assert {state.replicas for state in stage.image.topics.by_name["one"].partitions.values()} == {(2,)}
    stage.heartbeat(2, cordoned=[directory(2)])
    (answer,) = stage.create(wish("two")).topics
    assert answer.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "cordoned" in (answer.error_message or "")


@pytest.mark.parametrize(("replicas", "words"), [(0, "must be positive"), (4, "only 3 broker")])
def test_a_replication_factor_that_cannot_be(replicas: int, words: str) -> None:
    with pytest.raises(BrokerError, match=words) as refused:
        place(brokers({1: None, 2: None, 3: None}), 1, replicas, SeededEntropy(1))
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_with_all_brokers_fenced_nothing_is_placed() -> None:
    with pytest.raises(BrokerError, match="All brokers are currently fenced"):
        place(brokers({1: None, 2: None}, fenced={1, 2}), 1, 1, SeededEntropy(1))


def test_a_small_rack_gets_a_replica_of_everything() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "b", 7: "c"}
    placed = place(brokers(racks), 30, 3, SeededEntropy(3))
    assert all(7 in each for each in placed)
