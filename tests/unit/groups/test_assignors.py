"""The assignors of consumer groups, by example."""

import pytest

from ottla.groups.assignors.even import spread
from ottla.groups.assignors.levelling import level
from ottla.groups.assignors.range import assign_ranges
from ottla.groups.assignors.spec import Subscriber
from ottla.groups.assignors.table import ASSIGNORS, offered
from ottla.groups.assignors.uniform import assign_uniformly

A, B, C = (bytes([index]) * 16 for index in (1, 2, 3))


def subscriber(*topics, holds=None, instance=None):
    return Subscriber(
        frozenset(topics), {topic: frozenset(each) for topic, each in (holds or {}).items()}, instance
    )


def plain(assignment):
    return {
        member: {topic: sorted(partitions) for topic, partitions in share.items()}
        for member, share in assignment.items()
    }


def sizes(assignment):
    return sorted(sum(map(len, share.values())) for share in assignment.values())


def test_ranges_are_runs_and_the_first_get_the_longer_ones():
    members = {"c": subscriber(A, B), "a": subscriber(A, B), "b": subscriber(A)}
    assert plain(assign_ranges(members, {A: 5, B: 3})) == {
        "a": {A: [0, 1], B: [0, 1]},
        "b": {A: [2, 3]},
        "c": {A: [4], B: [2]},
    }


def test_ranges_go_to_static_members_first():
    members = {"a": subscriber(A), "z": subscriber(A, instance="2"), "y": subscriber(A, instance="3")}
    assert plain(assign_ranges(members, {A: 3})) == {"z": {A: [0]}, "y": {A: [1]}, "a": {A: [2]}}


def test_ranges_leave_some_with_nothing():
    members = {"a": subscriber(A), "b": subscriber(A)}
    assert plain(assign_ranges(members, {A: 1})) == {"a": {A: [0]}, "b": {}}


def test_even_shares_for_all():
    members = {name: subscriber(A, B) for name in "abc"}
    assigned = spread(members, {A: 4, B: 3})
    assert sizes(assigned) == [2, 2, 3]
    found = [(topic, each) for share in assigned.values() for topic, part in share.items() for each in part]
    assert sorted(found) == [(A, 0), (A, 1), (A, 2), (A, 3), (B, 0), (B, 1), (B, 2)]


def test_an_even_share_is_kept_when_someone_joins():
    old = {"a": {A: [0, 1, 2]}, "b": {A: [3, 4, 5]}}
    members = {name: subscriber(A, holds=holds) for name, holds in old.items()} | {"c": subscriber(A)}
    assert plain(spread(members, {A: 6})) == {"a": {A: [0, 1]}, "b": {A: [3, 4]}, "c": {A: [2, 5]}}


def test_an_extra_partition_stays_with_whoever_has_it():
    members = {"a": subscriber(A, holds={A: [0]}), "b": subscriber(A, holds={A: [1, 2]})}
    assert plain(spread(members, {A: 3})) == {"a": {A: [0]}, "b": {A: [1, 2]}}


def test_what_nobody_wants_is_dropped():
    members = {"a": subscriber(A, holds={B: [0]}), "b": subscriber(A)}
    assert plain(spread(members, {A: 2})) == {"a": {A: [0]}, "b": {A: [1]}}
    assert spread({"a": subscriber(holds={B: [0]})}, {}) == {}


def test_levelling_among_different_wishes():
    members = {"a": subscriber(A, B), "b": subscriber(B, C), "c": subscriber(A, C)}
    assigned = level(members, {A: 2, B: 2, C: 2})
    assert sizes(assigned) == [2, 2, 2]
    assert all(share.keys() <= members[member].topics for member, share in assigned.items())


def test_levelling_moves_no_more_than_it_must():
    members = {
        "a": subscriber(A, B, holds={A: [0, 1, 2, 3]}),
        "b": subscriber(A, holds={}),
        "c": subscriber(B, holds={B: [0, 1]}),
    }
    assigned = plain(level(members, {A: 4, B: 2}))
    assert assigned == {"a": {A: [0, 1]}, "b": {A: [2, 3]}, "c": {B: [0, 1]}}


def test_levelling_can_not_help_who_is_alone():
    members = {"a": subscriber(A), "b": subscriber(B)}
    assert plain(level(members, {A: 9, B: 1})) == {"a": {A: list(range(9))}, "b": {B: [0]}}


def test_the_uniform_assignor_chooses_its_way():
    members = {"a": subscriber(A), "b": subscriber(B)}
    assert assign_uniformly({}, {}, True) == {}
    assert plain(assign_uniformly(members, {A: 1, B: 1}, False)) == {"a": {A: [0]}, "b": {B: [0]}}


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        (("uniform", "range"), ("uniform", "range")),
        (("range",), ("range",)),
        (("org.apache.kafka.coordinator.group.assignor.RangeAssignor", "uniform"), ("range", "uniform")),
        (("com.example.Own",), tuple(ASSIGNORS)),
    ],
)
def test_assignors_are_listed_by_name_or_by_class(listed, found):
    assert offered(listed) == found
