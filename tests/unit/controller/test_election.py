"""Kafka's PartitionChangeBuilderTest as facts: a partition, what happens to it, and the record that results."""

from typing import Any

import pytest

from ottla.controller.election import Election, Transition
from ottla.controller.view import View
from ottla.metadata.directory import UNASSIGNED
from ottla.metadata.feature import ELR_VERSION, Features
from ottla.metadata.image import Image
from ottla.metadata.registration import Broker
from ottla.metadata.settings.layers import BrokerValues
from ottla.metadata.topics import PartitionState, Topic, Topics
from ottla.wire.records.metadata import PartitionChangeRecord
from ottla.world.entropy import SeededEntropy

PREFERRED, ONLINE, UNCLEAN = Election
OLD, DIRECTORIES, NEW = 7, 17, 30
IDS = {broker: bytes([0xD, broker] * 8) for broker in range(10)}


def partition(
    leader: int, replicas: tuple[int, ...], isr: tuple[int, ...], **others: tuple[int, ...] | int
) -> PartitionState:
    directories = tuple(IDS[broker] for broker in replicas)
    return PartitionState(leader, 100, 200, replicas, isr, directories, **others)  # type: ignore[arg-type]


FOO = partition(1, (2, 1, 3), (2, 1, 3))
BAR = partition(1, (1, 2, 3, 4), (1, 2, 3), adding=(4,), removing=(1,))
BAZ = partition(3, (2, 1, 3), (1, 3))
OFFLINE = partition(-1, (2, 1, 3), (3,))
FOUR = (1, 2, 3, 4)


def change(
    state: PartitionState,
    *,
    down: set[int] | None = None,
    metadata_version: int = NEW,
    elr: bool = True,
    min_isr: int = 2,
    **wanted: Any,
) -> dict[str, Any] | None:
    """What is recorded when the brokers in `down` cannot lead; None when nothing is."""
    topic = Topic("t", bytes([1] * 16), {0: state})
    image = Image(
        features=Features(metadata_version, {ELR_VERSION: 1} if elr else {}),
        brokers={
            broker: Broker(broker, 1, bytes(16), {}, {}, fenced=broker in (down or ())) for broker in IDS
        },
        topics=Topics({"t": topic}, {topic.id: topic}),
    )
    values = {"node.id": "1", "process.roles": "broker,controller", "min.insync.replicas": str(min_isr)}
    view = View(
        image,
        node_id=1,
        cluster_id="c",
        values=BrokerValues(values),
        entropy=SeededEntropy(1),
        kraft_version=1,
    )
    transition = Transition(view, topic, 0)
    for name, value in wanted.items():
        setattr(transition, name, value)
    record = transition.record()
    if record is None:
        return None
    plain = PartitionChangeRecord(topic_id=topic.id)
    names = (
        "leader", "isr", "eligible_leader_replicas", "last_known_elr", "replicas", "adding_replicas",
        "removing_replicas", "leader_recovery_state", "directories",
    )  # fmt: skip
    return {name: getattr(record, name) for name in names if getattr(record, name) != getattr(plain, name)}


def ids(*brokers: int) -> list[bytes]:
    return [IDS[broker] for broker in brokers]


@pytest.mark.parametrize("elr", [True, False])
@pytest.mark.parametrize(
    ("state", "wanted", "expected"),
    [
        (FOO, {}, None),
        (FOO, {"election": PREFERRED}, {"leader": 2}),
        (FOO, {"election": UNCLEAN}, None),
        (FOO, {"isr": (2, 1)}, {"isr": [2, 1]}),
        (FOO, {"isr": (2, 3)}, {"isr": [2, 3], "leader": 2}),
        (FOO, {"replicas": (3, 2, 1)}, {"replicas": [3, 2, 1], "directories": ids(3, 2, 1)}),
        (
            FOO,
            {"replicas": (1, 2, 3), "removing": (3,)},
            {"replicas": [1, 2], "isr": [2, 1], "leader": 1, "directories": ids(1, 2)},
        ),
        (
            FOO,
            {"replicas": (1, 2, 3, 4), "adding": (4,)},
            {"replicas": [1, 2, 3, 4], "adding_replicas": [4], "directories": [*ids(1, 2, 3), bytes(16)]},
        ),
        (
            BAR,
            {"isr": (1, 2, 3, 4)},
            {
                "replicas": [2, 3, 4],
                "isr": [2, 3, 4],
                "leader": 2,
                "removing_replicas": [],
                "adding_replicas": [],
                "directories": ids(2, 3, 4),
            },
        ),
        (
            BAR,
            {"replicas": (1, 2, 3), "isr": (1, 2, 3), "adding": (), "removing": ()},
            {
                "replicas": [1, 2, 3],
                "leader": 1,
                "removing_replicas": [],
                "adding_replicas": [],
                "directories": ids(1, 2, 3),
            },
        ),
        (FOO, {"directories": {3: UNASSIGNED}}, {"directories": [*ids(2, 1), UNASSIGNED]}),
    ],
)
def test_changes(state: PartitionState, wanted: dict[str, Any], expected: object, elr: bool) -> None:
    assert change(state, down={3}, elr=elr, **wanted) == expected


@pytest.mark.parametrize("election", [PREFERRED, ONLINE, UNCLEAN])
def test_a_leader_that_works_is_kept_where_the_preferred_one_is_not_in_sync(election: Election) -> None:
    assert change(BAZ, election=election) is None


def test_unclean_elections() -> None:
    unclean = {"isr": [2], "leader": 2, "leader_recovery_state": 1}
    assert change(FOO, down={3}, isr=(3,), election=UNCLEAN, elr=False) == unclean
    assert change(FOO, down={3}, isr=(3,), elr=False) == {"isr": [3], "leader": -1}
    recovered = {"isr": [1], "leader": 1, "leader_recovery_state": 1}
    assert change(OFFLINE, down={2, 3}, election=UNCLEAN, elr=False) == recovered
    assert change(OFFLINE, down={2, 3}, election=UNCLEAN, elr=False, isr=(2,)) == recovered
    listed = OFFLINE._replace(elr=(2,), last_known_elr=(2,))
    cleared = {**recovered, "eligible_leader_replicas": [], "last_known_elr": []}
    assert change(listed, down={2, 3}, election=UNCLEAN, isr=(3,)) == cleared


def test_a_change_of_leaders_leaves_the_recovery_as_it_is() -> None:
    recovering = partition(1, (1, 2, 3), (1,), leader_recovery_state=1)
    gone = change(recovering, down=set(IDS), isr=(), metadata_version=OLD, elr=False)
    assert gone == {"leader": -1}, "the last in-sync replica stays in sync"
    back = change(recovering._replace(leader=-1), metadata_version=OLD, elr=False)
    assert back == {"leader": 1}


def test_a_leader_that_is_moved_away_leads_no_more_even_if_nobody_else_can() -> None:
    moving = partition(0, (2, 3, 0, 1), (0, 1), adding=(2, 3), removing=(0, 1))
    record = change(moving, down=set(IDS), isr=(0, 1, 2, 3), metadata_version=OLD, elr=False)
    assert record == {
        "leader": -1,
        "isr": [2, 3],
        "replicas": [2, 3],
        "adding_replicas": [],
        "removing_replicas": [],
    }


@pytest.mark.parametrize("metadata_version", range(7, 31))
def test_old_clusters_raise_the_epoch_when_a_replica_falls_out_of_sync(metadata_version: int) -> None:
    """KAFKA-15021."""
    record = change(FOO, isr=(2, 1), metadata_version=metadata_version, elr=False)
    assert record == {"isr": [2, 1], **({"leader": 1} if metadata_version <= 11 else {})}
    grown = change(FOO._replace(isr=(2, 1)), isr=(2, 1, 3), metadata_version=metadata_version, elr=False)
    assert grown == {"isr": [2, 1, 3]}


@pytest.mark.parametrize(("min_isr", "eligible"), [(3, [2, 3, 4]), (2, [2, 3, 4]), (1, None)])
def test_who_leaves_is_eligible_below_the_minimum(min_isr: int, eligible: list[int] | None) -> None:
    state = partition(1, FOUR, FOUR)
    expected = {"isr": [1], **({"eligible_leader_replicas": eligible} if eligible else {})}
    assert change(state, isr=(1,), min_isr=min_isr, election=PREFERRED) == expected


def test_enough_in_sync_replicas_need_no_eligible_ones() -> None:
    state = partition(1, FOUR, (1, 2), elr=(3,))
    assert change(state, isr=(1, 2, 3), min_isr=3) == {"isr": [1, 2, 3], "eligible_leader_replicas": []}
    assert change(state, isr=(1, 2, 4), min_isr=4) == {"isr": [1, 2, 4]}


def test_an_unclean_stop_ends_eligibility() -> None:
    state = partition(1, FOUR, (1,), elr=(2, 3))
    assert change(state, down={3}, min_isr=3, unclean_stops=(3,)) == {"eligible_leader_replicas": [2]}


def test_eligible_replicas_are_elected() -> None:
    state = partition(1, FOUR, (1,), elr=(3,))
    record = change(state, down={1}, min_isr=3, isr=(), election=PREFERRED)
    assert record == {"isr": [3], "eligible_leader_replicas": [1], "leader": 3}


def test_all_may_fall_out_of_sync() -> None:
    state = partition(1, FOUR, FOUR)
    record = change(state, down=set(IDS), min_isr=3, isr=())
    assert record == {
        "isr": [],
        "leader": -1,
        "eligible_leader_replicas": [1, 2, 3, 4],
        "last_known_elr": [1],
    }
    empty = partition(-1, FOUR, (), elr=FOUR, last_known_elr=(1,))
    assert change(empty, down=set(IDS), min_isr=3, unclean_stops=(2,)) == {
        "eligible_leader_replicas": [1, 3, 4]
    }


@pytest.mark.parametrize("election", [PREFERRED, ONLINE, UNCLEAN])
def test_the_last_known_leader_is_the_last_resort(election: Election) -> None:
    state = partition(-1, FOUR, (), last_known_elr=(1,))
    record = change(state, min_isr=3, election=election)
    assert record == {"isr": [1], "leader": 1, "leader_recovery_state": 1, "last_known_elr": []}
    assert change(state._replace(elr=(3,)), down={3}, min_isr=3, election=PREFERRED) is None
    if election is not UNCLEAN:
        assert change(state, down={1}, min_isr=3, election=election) is None
        assert change(state._replace(last_known_elr=(1, 2)), min_isr=3, election=election) is None


def test_what_was_eligible_before_the_feature_was_taken_back_may_lead_once_more() -> None:
    state = partition(-1, FOUR, (), elr=(3, 4), last_known_elr=(1,))
    record = change(state, elr=False, min_isr=3)
    assert record == {"isr": [3], "leader": 3, "eligible_leader_replicas": []}


def test_directories_follow_their_replicas() -> None:
    """A new replica has the directory it was given, or the only one of its broker, or none yet."""
    chosen = bytes([7] * 16)
    record = change(FOO, replicas=(3, 1, 5, 4), directories={5: chosen}, metadata_version=DIRECTORIES)
    assert record is not None
    assert record["directories"] == [*ids(3, 1), chosen, bytes(16)]
    record = change(FOO, replicas=(3, 1, 5, 4), metadata_version=DIRECTORIES - 1, elr=False)
    assert record == {"replicas": [3, 1, 5, 4], "leader": 1}
