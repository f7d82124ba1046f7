"""Wishes exclude each other; what stays assigned keeps its reading."""

import re

import pytest

from ottla.client.consumer.assigned_partition import FetchPosition
from ottla.client.consumer.listener import RebalanceListener
from ottla.client.consumer.subscription import Subscription, SubscriptionType
from ottla.client.errors import WrongState
from ottla.client.record import OffsetAndMetadata, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_ways_to_subscribe_exclude_each_other():
    for first in (lambda s: s.subscribe(["a"], None), lambda s: s.assign([A0]),
                  lambda s: s.subscribe_pattern(re.compile("a"), None),
                  lambda s: s.subscribe_remotely("a", None)):  # fmt: skip
        subscription = Subscription()
        first(subscription)
        others = [
            lambda s: s.subscribe(["a"], None),
            lambda s: s.assign([A0]),
            lambda s: s.subscribe_pattern(re.compile("a"), None),
            lambda s: s.subscribe_remotely("a", None),
        ]
        refused = 0
        for other in others:
            try:
                other(subscription)
            except WrongState as error:
                refused += 1
                assert "unsubscribe" in error.hint
        assert refused == 3
        subscription.unsubscribe()
        subscription.assign([B0])


@pytest.mark.parametrize("name", ["", "  ", None, 5])
def test_names_are_names(name):
    with pytest.raises(WrongState):
        Subscription().subscribe(["a", name], None)


def test_the_same_topics_are_no_change():
    subscription = Subscription()
    listener = RebalanceListener()
    assert subscription.subscribe(["a", "b"], None)
    assert not subscription.subscribe(["b", "a"], listener)
    assert subscription.listener is listener
    assert subscription.subscribe(["a"], None)


def test_a_pattern_matches_whole_names():
    subscription = Subscription()
    subscription.subscribe_pattern(re.compile("a.*"), None)
    assert subscription.match(["a", "ab", "ba"])
    assert subscription.topics == {"a", "ab"}
    assert not subscription.match(["ab", "a", "c"])
    assert subscription.wants("abc")
    assert not subscription.wants("ba")


def test_the_broker_is_believed_what_its_pattern_matches():
    subscription = Subscription()
    subscription.subscribe_remotely("a.*", None)
    assert subscription.wants("anything")
    assert subscription.is_automatic


def test_what_stays_keeps_its_reading():
    subscription = Subscription()
    subscription.subscribe(["a"], None)
    subscription.assign_from_group([A0, A1])
    subscription.assignment[A0].seek(FetchPosition(7))
    gone = subscription.assignment[A1]
    position_id = gone.position_id
    subscription.assign_from_group([A0, B0])
    assert subscription.assignment[A0].position.offset == 7
    assert subscription.assignment[B0].position is None
    assert gone.revoking
    assert gone.position_id == position_id + 1


def test_what_is_no_longer_subscribed_to_is_not_read():
    subscription = Subscription()
    subscription.subscribe(["a", "b"], None)
    subscription.assign_from_group([A0, B0])
    for assigned in subscription.assignment.values():
        assigned.seek(FetchPosition(0))
    subscription.subscribe(["a"], None)
    assert [subscription.is_fetchable(each) for each in subscription.assignment.values()] == [True, False]


def test_consumed_is_what_has_a_valid_position():
    subscription = Subscription()
    subscription.assign([A0, A1, B0])
    subscription.assignment[A0].seek(FetchPosition(7, -1, 1, 3))
    subscription.assignment[A0].advance(9, 3)
    subscription.assignment[A1].seek(FetchPosition(5, 2, 1, 3))
    assert subscription.consumed() == {A0: OffsetAndMetadata(9, "", 3)}


def test_an_unassigned_partition_has_no_reading():
    with pytest.raises(WrongState, match="a-0 is not assigned"):
        Subscription().assigned(A0)


def test_assigning_by_hand_is_known_by_its_topics():
    subscription = Subscription()
    subscription.assign([("a", 0), ("b", 0)])
    assert subscription.kind is SubscriptionType.MANUAL
    assert subscription.known_topics == {"a", "b"}
    subscription.group_topics = frozenset({"c"})
    assert subscription.known_topics == {"a", "b", "c"}


def test_a_partition_that_had_its_turn_comes_last():
    subscription = Subscription()
    subscription.assign([A0, A1, B0])
    subscription.move_to_end(A0)
    assert list(subscription.assignment) == [A1, B0, A0]
    subscription.move_to_end(TopicPartition("x", 0))
