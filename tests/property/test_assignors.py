"""Whatever the group, an assignor gives every partition to one member that wants it, evenly, and moves little."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.assignors.range import assign_ranges
from ottla.groups.assignors.spec import Subscriber
from ottla.groups.assignors.uniform import assign_uniformly

TOPICS = [bytes([index]) * 16 for index in (1, 2, 0x80, 0xFF)]


@st.composite
def groups(draw, alike=False):
    """Members, some of whom hold part of what there is, and the partitions of each topic."""
    counts = {topic: draw(st.integers(1, 9)) for topic in TOPICS}
    wishes = st.sets(st.sampled_from(TOPICS), max_size=len(TOPICS))
    same = draw(wishes)
    members = {}
    free = {(topic, partition) for topic, count in counts.items() for partition in range(count)}
    for index in range(draw(st.integers(1, 6))):
        holds = {}
        for topic, partition in draw(st.sets(st.sampled_from(sorted(free)), max_size=8)) if free else ():
            holds.setdefault(topic, set()).add(partition)
            free.discard((topic, partition))
        topics = same if alike else draw(wishes)
        instance = draw(st.none() | st.just(f"i{9 - index}"))
        members[f"m{index}"] = Subscriber(
            frozenset(topics), {t: frozenset(p) for t, p in holds.items()}, instance
        )
    return members, counts


def check_complete(members, counts, assigned):
    """Everything wanted is assigned once, to someone who wants it."""
    seen = {}
    for member, share in assigned.items():
        for topic, partitions in share.items():
            assert topic in members[member].topics and partitions
            for partition in partitions:
                assert seen.setdefault((topic, partition), member) == member
    wanted = set().union(*(member.topics for member in members.values()))
    assert set(seen) == {(topic, each) for topic in wanted for each in range(counts[topic])}


def sizes(members, assigned):
    return {member: sum(map(len, assigned.get(member, {}).values())) for member in members}


def held(members):
    return {
        (m, t, p)
        for m, each in members.items()
        for t, parts in each.holds.items()
        if t in each.topics
        for p in parts
    }


def kept(members, assigned):
    return {(m, t, p) for m, t, p in held(members) if p in assigned.get(m, {}).get(t, ())}


def as_members(members, assigned):
    return {name: each._replace(holds=assigned.get(name, {})) for name, each in members.items()}


@given(groups(alike=True))
def test_uniform_for_members_alike(group):
    members, counts = group
    assigned = assign_uniformly(members, counts, True)
    check_complete(members, counts, assigned)
    loads = sizes(members, assigned).values()
    assert max(loads) - min(loads) <= 1
    # Nobody gives up more than what is above the larger quota.
    for name, each in members.items():
        has = sum(len(parts) for topic, parts in each.holds.items() if topic in each.topics)
        stays = sum(member == name for member, _, _ in kept(members, assigned))
        assert stays >= min(has, *loads)
    assert assign_uniformly(as_members(members, assigned), counts, True) == {
        name: dict(share) for name, share in assigned.items()
    }


@given(groups())
def test_uniform_for_members_that_differ(group):
    members, counts = group
    assigned = assign_uniformly(members, counts, False)
    check_complete(members, counts, assigned)
    loads = sizes(members, assigned)
    # No move of a single partition to another subscriber of its topic would make two members more even.
    for owner, share in assigned.items():
        for topic in share:
            for other, each in members.items():
                if topic in each.topics:
                    assert loads[owner] - loads[other] <= 1
    again = assign_uniformly(as_members(members, assigned), counts, False)
    assert {name: share for name, share in again.items() if share} == {
        name: share for name, share in assigned.items() if share
    }


@given(groups())
def test_ranges(group):
    members, counts = group
    assigned = assign_ranges(members, counts)
    check_complete(members, counts, assigned)
    for topic in TOPICS:
        readers = [name for name, each in members.items() if topic in each.topics]
        runs = [sorted(assigned[name].get(topic, ())) for name in readers]
        assert all(run == list(range(run[0], run[-1] + 1)) for run in runs if run)
        assert not runs or max(map(len, runs)) - min(map(len, runs)) <= 1
    bare = {name: each._replace(holds={}) for name, each in members.items()}
    assert assign_ranges(bare, counts) == assigned, "what they held does not count"
