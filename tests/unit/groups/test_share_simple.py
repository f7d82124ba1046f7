"""The simple assignor shares partitions out evenly."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.assignors.spec import Subscriber
from ottla.groups.share.simple import assign

A, B = b"a" * 16, b"b" * 16


def members(count, *topics, holds=None):
    return {
        f"m{number}": Subscriber(frozenset(topics), (holds or {}).get(f"m{number}", {}))
        for number in range(count)
    }


def sizes(found):
    return [sum(len(parts) for parts in each.values()) for each in found.values()]


def test_each_has_its_even_share() -> None:
    assert sizes(assign(members(2, A, B), {A: range(4), B: range(3)}, True)) == [4, 3]
    assert sizes(assign(members(3, A), {A: range(1)}, True)) == [1, 1, 1]
    found = assign(members(3, A), {A: range(2)}, True)
    assert sizes(found) == [2, 1, 1]
    assert {number for each in found.values() for number in each[A]} == {0, 1}


def test_members_keep_what_they_have() -> None:
    first = assign(members(2, A), {A: range(6)}, True)
    assert assign(members(2, A, holds=first), {A: range(6)}, True) == first
    then = assign(members(3, A, holds=first), {A: range(6)}, True)
    assert sizes(then) == [2, 2, 2]
    for member in ("m0", "m1"):
        assert then[member][A] < first[member][A]


def test_what_cannot_be_assigned_is_not() -> None:
    holds = {"m0": {A: frozenset({0, 1}), B: frozenset({0})}}
    assert assign(members(1, A, holds=holds), {A: [0], B: [0]}, True) == {"m0": {A: frozenset({0})}}
    assert assign({}, {A: [0]}, True) == {}
    assert assign(members(1, A), {}, True) == {"m0": {}}


wishes = st.dictionaries(
    st.sampled_from([f"m{n}" for n in range(7)]), st.sets(st.sampled_from([A, B])), max_size=7
)


@settings(max_examples=200)
@given(st.lists(st.tuples(wishes, st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=5))
def test_everything_wanted_is_read_and_nothing_else(rounds) -> None:
    holds: dict = {}
    for wanted, a_count, b_count in rounds:
        partitions = {A: range(a_count), B: range(b_count)}
        subscribers = {
            member: Subscriber(frozenset(topics), holds.get(member, {})) for member, topics in wanted.items()
        }
        homogeneous = len({frozenset(topics) for topics in wanted.values()}) <= 1
        holds = assign(subscribers, partitions, homogeneous)
        assert holds.keys() == wanted.keys()
        for topic, numbers in partitions.items():
            readers = [member for member, topics in wanted.items() if topic in topics]
            read = {number for each in holds.values() for number in each.get(topic, ())}
            assert read == (set(numbers) if readers else set())
            assert all(topic not in holds[member] for member in wanted if member not in readers)
        if homogeneous and wanted:
            assert max(sizes(holds)) - min(sizes(holds)) <= 1
