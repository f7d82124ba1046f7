"""Assignors without a peer to compare with: what every assignment has to be, and what members tell each other."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.consumer.assignors.assignor import MemberSubscription
from ottla.client.consumer.assignors.protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.client.consumer.assignors.sticky import PreviousAssignment, decode_previous, encode_previous
from ottla.client.consumer.assignors.table import ASSIGNORS, chosen, is_cooperative
from ottla.client.errors import Malformed
from ottla.client.record import TopicPartition
from ottla.metadata.settings.error import InvalidValue


def layout(**topics):
    return {name: [frozenset()] * count for name, count in topics.items()}


def text(assignment):
    return {member: " ".join(f"{t}{n}" for t, n in parts) for member, parts in sorted(assignment.items())}


def subscriptions(*members, topics="ab"):
    return {member: MemberSubscription(tuple(topics)) for member in members}


def test_range_splits_each_topic_alike():
    found = ASSIGNORS["range"]().assign(layout(a=3, b=3), subscriptions("y", "x"))
    assert text(found) == {"x": "a0 a1 b0 b1", "y": "a2 b2"}


def test_static_members_come_first_whatever_their_ids():
    members = {
        "z": MemberSubscription(("a",), instance="1"),
        "a": MemberSubscription(("a",), instance="2"),
        "0": MemberSubscription(("a",)),
    }
    assert text(ASSIGNORS["range"]().assign(layout(a=3), members)) == {"z": "a0", "a": "a1", "0": "a2"}


def test_round_robin_deals_out_one_by_one():
    found = ASSIGNORS["roundrobin"]().assign(layout(a=3, b=3), subscriptions("x", "y"))
    assert text(found) == {"x": "a0 a2 b1", "y": "a1 b0 b2"}


def test_round_robin_passes_over_those_who_do_not_subscribe():
    members = {
        "x": MemberSubscription(("a",)),
        "y": MemberSubscription(("a", "b")),
        "z": MemberSubscription(("b", "c")),
    }
    found = ASSIGNORS["roundrobin"]().assign(layout(a=1, b=2, c=3), members)
    assert text(found) == {"x": "a0", "y": "b0", "z": "b1 c0 c1 c2"}


def test_a_cooperative_round_gives_nothing_away_that_is_still_owned():
    owned = tuple(TopicPartition("a", n) for n in range(4))
    members = {
        "old": MemberSubscription(("a",), owned=owned, generation=1),
        "new": MemberSubscription(("a",)),
    }
    assignor = ASSIGNORS["cooperative-sticky"]()
    first = assignor.assign(layout(a=4), members)
    assert text(first) == {"old": "a0 a1", "new": ""}
    members["old"] = MemberSubscription(("a",), owned=tuple(first["old"]), generation=2)
    members["new"] = MemberSubscription(("a",), generation=2)
    assert text(assignor.assign(layout(a=4), members)) == {"old": "a0 a1", "new": "a2 a3"}


def test_sticky_keeps_what_it_can():
    assignor = ASSIGNORS["sticky"]()
    one = ASSIGNORS["sticky"]()
    one.adopt([TopicPartition("a", n) for n in (0, 2, 3)], 5)
    members = {
        "one": MemberSubscription(("a",), one.user_data(["a"]), generation=5),
        "two": MemberSubscription(("a",)),
    }
    assert text(assignor.assign(layout(a=4), members)) == {"one": "a0 a2", "two": "a1 a3"}


def test_of_two_claims_the_younger_counts():
    place = (TopicPartition("a", 0), TopicPartition("a", 1))
    members = {
        "young": MemberSubscription(("a",), owned=place[:1], generation=9),
        "old": MemberSubscription(("a",), owned=place, generation=3),
    }
    assert text(ASSIGNORS["cooperative-sticky"]().assign(layout(a=2), members)) == {
        "old": "a1",
        "young": "a0",
    }


def test_two_claims_of_one_generation_cancel_each_other_out():
    place = (TopicPartition("a", 0),)
    members = {name: MemberSubscription(("a",), owned=place, generation=9) for name in "xy"}
    # It goes to nobody in this round, so that whoever reads it lets go.
    assert text(ASSIGNORS["cooperative-sticky"]().assign(layout(a=1), members)) == {"x": "", "y": ""}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_nobody_and_nothing(name):
    assert ASSIGNORS[name]().assign({}, subscriptions("x")) == {"x": []}
    assert ASSIGNORS[name]().assign(layout(a=2), {}) == {}
    assert text(ASSIGNORS[name]().assign(layout(a=1), subscriptions("x", "y", "z", topics="a")))["x"] == "a0"


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(ASSIGNORS)), st.integers(0, 1 << 30))
def test_every_partition_to_one_who_wants_it(name, seed):
    dice = random.Random(seed)
    racks = dice.choice([[], ["r1", "r2", "r3"]])
    topics = {
        t: [frozenset(dice.sample(racks, dice.randint(0, len(racks)))) for _ in range(dice.randint(1, 12))]
        for t in "abcde"[: dice.randint(1, 5)]
    }
    free = [TopicPartition(t, n) for t in topics for n in range(len(topics[t]))]
    dice.shuffle(free)
    members = {}
    for member in [f"m{n}" for n in range(dice.randint(1, 8))]:
        owned = tuple(free.pop() for _ in range(dice.randint(0, len(free))))
        generation = dice.choice([-1, 3, 4])
        previous = encode_previous(PreviousAssignment(owned, generation)) if name == "sticky" else None
        wanted = tuple(dice.sample(sorted(topics), dice.randint(1, len(topics))))
        members[member] = MemberSubscription(
            wanted, previous, owned if name != "sticky" else (), generation, dice.choice([None, *racks])
        )
    found = ASSIGNORS[name]().assign(topics, members)
    assert found.keys() == members.keys()
    given = [each for parts in found.values() for each in parts]
    assert len(given) == len(set(given)), f"seed {seed}"
    for member, parts in found.items():
        assert {each.topic for each in parts} <= set(members[member].topics), f"seed {seed}"
    wanted = {topic for subscription in members.values() for topic in subscription.topics}
    every = {TopicPartition(t, n) for t in wanted for n in range(len(topics[t]))}
    missing = every - set(given)
    if name == "cooperative-sticky":
        owned_by_others = {each for subscription in members.values() for each in subscription.owned}
        assert missing <= owned_by_others, f"seed {seed}"
    else:
        assert not missing, f"seed {seed}"


# What members tell each other

WISH = MemberSubscription(("a", "b"), b"\1\2", (TopicPartition("a", 1), TopicPartition("b", 0)), 7, "rack")


def test_a_wish_in_bytes():
    data = encode_subscription(WISH)
    assert data[:2] == b"\0\3"
    assert decode_subscription(data, "static") == WISH._replace(instance="static")


def test_older_versions_say_less():
    # Topics and user data alone, as clients of before cooperative rebalancing wrote it.
    data = bytes.fromhex("000000000001000161ffffffff")
    assert decode_subscription(data) == MemberSubscription(("a",))


def test_newer_versions_may_say_more():
    data = b"\0\x09" + encode_subscription(WISH)[2:] + b"whatever comes"
    assert decode_subscription(data) == WISH


def test_an_assignment_in_bytes():
    places = [TopicPartition("b", 2), TopicPartition("a", 1), TopicPartition("b", 0)]
    assert sorted(decode_assignment(encode_assignment(places))) == sorted(places)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\3\0", b"\xff\xff\0\0\0\0"])
def test_nonsense_is_told_as_such(data):
    with pytest.raises(Malformed):
        decode_subscription(data)
    with pytest.raises(Malformed):
        decode_assignment(data)


def test_the_past_in_bytes():
    previous = PreviousAssignment(
        (TopicPartition("a", 1), TopicPartition("a", 2), TopicPartition("ö", 0)), 12
    )
    assert decode_previous(encode_previous(previous)) == previous
    without_generation = encode_previous(previous)[:-4]
    assert decode_previous(without_generation) == PreviousAssignment(previous.partitions, None)
    assert decode_previous(None) == PreviousAssignment((), None)
    for nonsense in (b"\1", b"\0\0\0\1\0\1a", b"\0\0\0\1\0\1a\x7f\xff\xff\xff"):
        assert decode_previous(nonsense) == PreviousAssignment((), -1)


def test_the_setting():
    own = ASSIGNORS["sticky"]()
    assert [each.name for each in chosen(["range", own])] == ["range", "sticky"]
    assert not is_cooperative(chosen(["range", "cooperative-sticky"]))
    assert is_cooperative(chosen(["cooperative-sticky"]))
    with pytest.raises(InvalidValue, match="no assignor"):
        chosen(["rang"])
    with pytest.raises(InvalidValue, match="twice"):
        chosen(["range", "range"])
