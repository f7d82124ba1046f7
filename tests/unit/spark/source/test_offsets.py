"""How far a stream is, as text: the same place is the same text, and Spark's own texts can be read."""

import json

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.record import TopicPartition
from ottla.spark.source.offsets import Division, Reached, lag

A0, A1, B10 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 10)
PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d-e_f"]), st.integers(0, 12))


@given(st.dictionaries(PARTITIONS, st.integers(0, (1 << 63) - 1)), st.booleans(), st.randoms())
def test_the_same_place_is_the_same_text(offsets, is_initial, chance):
    ids = {each.topic: "id-" + each.topic for each in offsets}
    there = Reached(offsets, ids, is_initial)
    text = json.dumps(there.json())
    shuffled = list(offsets.items())
    chance.shuffle(shuffled)
    assert json.dumps(Reached(dict(shuffled), dict(reversed(ids.items())), is_initial).json()) == text
    assert Reached.of(json.loads(text)) == there
    assert json.dumps(Reached.of(json.loads(text)).json()) == text


def test_how_a_batch_is_divided_is_written_down_with_its_end():
    there = Reached({A0: 3}, {"a": "x"}, division=Division(None, 5, 0))
    assert there.json() == {"a": {"0": 3}, "#ids": {"a": "x"}, "#tasks": [None, 5, 0]}
    assert Reached.of(json.loads(json.dumps(there.json()))).division == Division(None, 5, 0)


def test_sparks_own_checkpoints_can_be_read():
    assert Reached.of({"a": {"1": 4, "0": 3}}) == Reached({A0: 3, A1: 4})


def test_progress_shows_nothing_of_ours():
    there = Reached({A1: 4, A0: 3, B10: 1}, {"a": "x"}, is_initial=True)
    assert there.json(plain=True) == {"a": {"0": 3, "1": 4}, "b": {"10": 1}}
    assert there.json() == {"a": {"0": 3, "1": 4}, "b": {"10": 1}, "#ids": {"a": "x"}, "#initial": True}
    assert list(there.json()["a"]) == ["0", "1"]


def test_lag():
    end = json.dumps(Reached({A0: 3, A1: 4}, {"a": "x"}).json())
    latest = json.dumps({"a": {"0": 10, "1": 4}, "b": {"10": 2}})
    assert lag(end, latest) == {A0: 7, A1: 0, B10: 2}
    assert lag(None, None) == {}
