"""What operators stand on: order, keys as bytes, stores, timelines, parcels, labels."""

import datetime
import decimal
import random
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.producer.murmur2 import partition_of
from ottla.streams.lowering.emission import TO_OUTPUT, Emissions, Layout, Lineage, OriginRecord
from ottla.streams.lowering.row_order import in_order
from ottla.streams.lowering.stateful.division import divided
from ottla.streams.lowering.stateful.keycode import key_code
from ottla.streams.lowering.stateful.labels import labels, partition_called, spark_hash
from ottla.streams.lowering.stateful.order import merged, queue_numbers
from ottla.streams.lowering.stateful.parcels import Packing, opened, packed, unwrapped
from ottla.streams.lowering.stateful.plain import values
from ottla.streams.lowering.stateful.scattered import Scattered
from ottla.streams.lowering.stateful.store import MemoryBacking, Store
from ottla.streams.lowering.stateful.timeline import NOT_YET, Timeline
from ottla.streams.types.build import type_of
from ottla.streams.types.struct import WindowedKey
from ottla.streams.types.walk import as_key

cuts_given = st.lists(st.integers(1, 25), max_size=5)


# Order


def as_kafka_streams_takes(queues: list[list[int]]) -> list[tuple[int, int]]:
    """Always the head with the earliest timestamp, of equal ones that of the first queue."""
    heads, taken = [0] * len(queues), []
    while True:
        left = [n for n, queue in enumerate(queues) if heads[n] < len(queue)]
        if not left:
            return taken
        n = min(left, key=lambda each: queues[each][heads[each]])
        taken.append((n, heads[n]))
        heads[n] += 1


@settings(deadline=None)
@given(
    queues=st.lists(st.lists(st.integers(0, 20), max_size=8), min_size=1, max_size=4), seed=st.integers(0, 99)
)
def test_records_are_taken_as_kafka_streams_takes_them(queues: list[list[int]], seed: int) -> None:
    rows = [(n, place, time) for n, queue in enumerate(queues) for place, time in enumerate(queue)]
    random.Random(seed).shuffle(rows)
    numbers, offsets, stamps = (np.array([row[n] for row in rows], np.int64) for n in range(3))
    order = merged(numbers, numbers, offsets, stamps)
    # Where a queue's next record is as early as another's, either may go first: what counts is the time reached.
    reached = [_reached(queues, rows[n]) for n in order]
    assert reached == sorted(reached)
    assert reached == [_reached(queues, (n, place, 0)) for n, place in as_kafka_streams_takes(queues)]
    for n in range(len(queues)):
        places = [rows[at][1] for at in order if rows[at][0] == n]
        assert places == sorted(places)


def _reached(queues: list[list[int]], row: tuple[int, int, int]) -> int:
    return max(queues[row[0]][: row[1] + 1])


def test_at_equal_times_the_lower_rank_goes_first_and_ties_stay() -> None:
    whole = [np.array(each, np.int64) for each in ([0, 1, 0, 0], [1, 0, 1, 1], [5, 9, 5, 4], [7, 7, 7, 7])]
    assert list(merged(*whole)) == [1, 3, 0, 2]
    assert (
        len(set(queue_numbers(*(np.array(each, np.int64) for each in ([0, 1, 0], [0, 0, 1], [-1, -1, -1])))))
        == 3
    )


# Keys

KEYS: list[tuple[Any, list[Any]]] = [
    (str, ["", "a", "ä€", "a\0b"]),
    (bytes, [b"", b"\0\xff"]),
    (int, [0, -1, 1 << 62]),
    ("int", [0, -1, 7]),
    (float, [0.5, -2.0, 1e300]),
    (bool, [True, False]),
    (decimal.Decimal, [decimal.Decimal("1.5"), decimal.Decimal("-100")]),
    (datetime.date, [datetime.date(2024, 2, 29), datetime.date(1, 1, 1)]),
    (
        datetime.datetime,
        [
            datetime.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=datetime.UTC),
            datetime.datetime(1901, 1, 1, tzinfo=datetime.UTC),
        ],
    ),
    (tuple[str, int], [("a", 1), ("a", None), (None, 1), ("", 0)]),
    (list[str], [["a", "b"], ["ab"], [], [""]]),
    (dict[str, int], [{"a": 1, "b": 2}, {}, {"ab": 12}]),
    ("a string, b struct<c: bigint, d: array<string>>", [("x", (1, ["y"])), ("x", None)]),
]


@pytest.mark.parametrize(("type", "keys"), KEYS, ids=lambda each: str(each)[:20])
def test_keys_as_bytes_say_what_they_were(type: Any, keys: list[Any]) -> None:
    code = key_code(type_of(type))
    coded = [code.encode(each) for each in keys]
    assert [code.decode(each) for each in coded] == keys
    assert len(set(coded)) == len(keys)


def test_equal_keys_are_equal_bytes() -> None:
    assert len({key_code(type_of(float)).encode(each) for each in (0.0, -0.0)}) == 2
    code = key_code(type_of(decimal.Decimal))
    assert code.encode(decimal.Decimal("1.50")) == code.encode(decimal.Decimal("1.5"))
    type = as_key(type_of(dict[str, int]))
    code = key_code(type)
    assert code.encode(type.dump({"a": 1, "b": 2})) == code.encode(type.dump({"b": 2, "a": 1}))


def test_a_key_is_in_the_partition_of_kafkas_clients() -> None:
    text, whole = key_code(type_of(str)), key_code(type_of(int))
    names = [f"k{n}".encode() * (n % 4) for n in range(50)]
    assert list(divided(text, names, 7)) == [partition_of(each, 7) for each in names]
    numbers = [whole.encode(n) for n in range(50)]
    assert list(divided(whole, numbers, 7)) == [partition_of(n.to_bytes(8, "big"), 7) for n in range(50)]
    assert list(divided(text, [b"k", None, b"k"], 7)) == [partition_of(b"k", 7), 0, partition_of(b"k", 7)]
    assert list(divided(text, [b"k", None], 1)) == [0, 0]


def test_a_window_stays_with_its_key() -> None:
    code = key_code(WindowedKey(type_of(str)))
    windowed = code.encode(("a", 5, -1))
    assert code.decode(windowed) == ("a", 5, -1)
    found = divided(code, [code.encode(("a", n, n + 5)) for n in range(30)], 16)
    assert set(found) == {partition_of(b"a", 16)}


# Stores


def test_a_store_writes_what_has_changed_and_nothing_else() -> None:
    asked: list[str] = []

    class Watched(MemoryBacking):
        def get_many(self, keys: list[bytes]) -> list[bytes | None]:
            asked.append(f"get {len(keys)}")
            return super().get_many(keys)

        def put_many(self, entries: list[tuple[bytes, bytes]]) -> None:
            asked.append(f"put {len(entries)}")
            super().put_many(entries)

        def remove_many(self, keys: list[bytes]) -> None:
            asked.append(f"remove {len(keys)}")
            super().remove_many(keys)

    backing = Watched()
    store = Store(backing)
    store.fetch([b"a", b"b", b"a"])
    assert store.get(b"a") is None
    store.put(b"a", (1, "x"))
    store.put(b"c", 2)
    store.delete(b"b")  # which is known not to be there
    store.flush()
    assert asked == ["get 2", "put 2"]
    asked.clear()
    assert store.get(b"a") == (1, "x")
    store.delete(b"a")
    store.delete(b"c")
    assert (store.get(b"a"), store.get(b"c")) == (None, None)
    assert list(store.items()) == []
    store.put(b"c", 3)
    assert list(store.items()) == [(b"c", 3)]
    store.flush()
    assert asked == ["get 1", "put 1", "remove 1"]
    assert list(backing.entries) == [b"c"]


@settings(max_examples=80, deadline=None)
@given(
    given=st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 60)), max_size=25
    ),
    cuts=cuts_given,
    grain=st.sampled_from([1, 7, 100]),
)
def test_a_timeline_gives_out_what_is_due_in_its_order(given: list[Any], cuts: list[int], grain: int) -> None:
    backing = MemoryBacking()
    store = Store(backing)
    timeline = Timeline(store, grain)
    waiting: set[tuple[int, bytes]] = set()
    for n, (time, name, now) in enumerate(given):
        if n in cuts:
            timeline.flush()
            store.flush()
            timeline = Timeline(store, grain)
        timeline.add(time, name)
        waiting.add((time, name))
        assert timeline.first() == min(waiting)
        timeline.advance(now)
        due = list(timeline.pop(timeline.now))
        assert due == sorted(each for each in waiting if each[0] <= timeline.now)
        waiting -= set(due)
    assert timeline.now == max((now for *_, now in given), default=NOT_YET)
    timeline.flush()
    store.flush()
    assert len(backing.entries) <= 1 + len(given)
    assert bool(waiting) == (len(backing.entries) > 1)


@settings(max_examples=40, deadline=None)
@given(given=st.lists(st.tuples(st.integers(0, 300), st.booleans()), max_size=300))
def test_scattered_entries_are_a_dict(given: list[tuple[int, bool]]) -> None:
    backing = MemoryBacking()
    store = Store(backing)
    expected: dict[bytes, int] = {}
    for n, (name, gone) in enumerate(given):
        entries = Scattered(store, b"at")
        key = str(name).encode()
        if gone:
            entries.delete(key)
            expected.pop(key, None)
        else:
            entries.put(key, n)
            expected[key] = n
        assert entries.get(key) == expected.get(key)
        if n % 50 == 0:
            store.flush()
    assert Scattered(store, b"at").entries() == sorted(expected.items())
    assert Scattered(store, b"other").entries() == []
    store.flush()
    assert bool(backing.entries) == bool(expected)
    assert len(backing.entries) >= len(expected) // 64, "one chunk has all of it"


# Parcels


def envelope(rows: list[tuple[Any, Any, int, int]]) -> pa.RecordBatch:
    schema = pa.schema(
        [
            ("key", pa.string()),
            ("value", pa.struct([("n", pa.int64()), ("names", pa.list_(pa.string()))])),
            ("timestamp", pa.int64()),
            ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
        ]
    )
    return pa.RecordBatch.from_pylist(
        [
            {
                "key": key,
                "value": value,
                "timestamp": time,
                "headers": [{"key": "h", "value": b"1"}] if offset % 2 else None,
                "topic": "t",
                "partition": 3,
                "offset": offset,
            }
            for key, value, time, offset in rows
        ],
        schema,
    )


def test_records_come_out_of_parcels_as_they_went_in() -> None:
    rows = [(f"k{n % 5}", {"n": n, "names": ["x"] * (n % 3)} if n % 7 else None, n, n) for n in range(40)]
    rows.append((None, {"n": 1, "names": None}, 50, 50))
    packing = Packing(1, type_of(str), 4)
    parcels = list(packing([envelope(rows[20:]), envelope(rows[:20])]))
    assert {each.column("part")[0].as_py() for each in parcels} == {0, 1}
    found = []
    for label in labels(4):
        data = [
            (target, blob)
            for each in parcels
            for one, target, _, blob in zip(*(column.to_pylist() for column in each.columns), strict=True)
            if one == label
        ]
        if data:
            records = opened(data, [type_of(int), type_of(str)], [0, 0])
            assert [each.timestamp for each in records] == sorted(each.timestamp for each in records)
            assert len(set(divided(key_code(type_of(str)), [each.at for each in records], 4))) == 1
            found += records
    assert len(found) == 41
    for each in found:
        key, value, time, offset = next(row for row in rows if row[3] == each.offset)
        assert (each.side, each.key, each.timestamp, each.topic, each.partition) == (1, key, time, "t", 3)
        assert each.value == (None if value is None else (value["n"], value["names"]))
        assert each.at == (None if key is None else key.encode())
        assert each.headers == ([("h", b"1")] if offset % 2 else None)
        assert each.lineage is None


def test_values_that_stayed_behind_were_there() -> None:
    (parcel,) = Packing(0, type_of(str), 1)([envelope([("a", None, 1, 1)]).drop_columns(["value"])])
    (record,) = opened([(0, parcel.column(3)[0].as_py())], [type_of(str)], [0])
    assert (record.key, record.value) == ("a", True)


ROWS = pa.schema(
    [
        ("output", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("timestamp", pa.int64()),
    ]
)
ROOTED = [
    ("root_topic", pa.string()),
    ("root_partition", pa.int32()),
    ("root_offset", pa.int64()),
    ("root_timestamp", pa.int64()),
    ("path", pa.binary()),
]


def layout(partitions: int) -> Layout:
    rows, entrance = ROWS, envelope([]).schema
    for name, type in ROOTED:
        rows, entrance = rows.append(pa.field(name, type)), entrance.append(pa.field(name, type))
    return Layout(
        rows.serialize().to_pybytes(),
        (),
        {3: (entrance.serialize().to_pybytes(), type_of(str))},
        partitions,
        True,
    )


def test_what_arrives_is_packed_by_key_with_its_lineage() -> None:
    given = layout(4)
    emissions = Emissions(given)
    for n in range(20):
        place = Lineage("t", 1, n, n)
        record = OriginRecord(f"k{n % 5}", (n, None), None, n, None, "op", 2, 100 + n, place)
        row = (TO_OUTPUT, 7, "out", None, record.key.encode(), b"v", None)
        emissions.take(record, [row, (-3, record.key, record.value, None)])
    labelled: dict[int, set[bytes]] = {}
    found = []
    for parcel in packed(emissions, given, None, count()):
        if parcel.target == TO_OUTPUT:
            keys = unwrapped(parcel.data)["key"].to_pylist()
            labelled.setdefault(parcel.label, set()).update(keys)
        else:
            records = opened([(0, parcel.data)], [type_of(str)], [0])
            labelled.setdefault(parcel.label, set()).update(each.at or b"" for each in records)
            found += records
    # A key is in one place, whether it leaves or goes on.
    assert sum(map(len, labelled.values())) == 5 and len(labelled) > 1
    assert len(found) == 20
    for each in found:
        assert (each.topic, each.partition, each.offset) == ("op", 2, 100 + each.timestamp)
        # Its key was changed: it comes after all that its record did before.
        assert each.lineage == Lineage("t", 1, each.timestamp, each.timestamp, b"\1" + b"\0\0\0\1")


def test_rows_leave_in_the_order_of_their_lineages() -> None:
    lineages = [
        Lineage("t", 0, 5, 10),
        Lineage("t", 0, 5, 10).further(0),
        Lineage("t", 0, 5, 10).further(1),
        Lineage("t", 0, 5, 10).further(1, 7),
        Lineage("t", 0, 5, 10).further(2),
        Lineage("t", 0, 5, 10).further(0, 1).through_topic(),
        Lineage("u", 0, 9, 11),
        Lineage("t", 0, 6, 9),  # later in its queue, though earlier in time
        Lineage("u", 0, 10, 12),
    ]
    rows = [(n, None, None, None, None, None, 0, *each) for n, each in enumerate(lineages)]
    expected = [0, 1, 2, 3, 4, 5, 7, 6, 8]
    for seed in range(20):
        shuffled = random.Random(seed).sample(rows, len(rows))
        schema = pa.schema([*ROWS, *(pa.field(*each) for each in ROOTED)])
        columns = [
            pa.array(each, field.type)
            for each, field in zip(zip(*shuffled, strict=True), schema, strict=True)
        ]
        batches = pa.Table.from_arrays(columns, schema=schema).to_batches(max_chunksize=4)
        table = pa.Table.from_batches(list(in_order(batches)))
        assert table["output"].to_pylist() == expected
        assert table.schema == ROWS


def test_plain_values_of_every_shape() -> None:
    type = pa.struct(
        [
            ("m", pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
            ("l", pa.list_(pa.list_(pa.struct([("y", pa.string())])))),
        ]
    )
    rows = [
        ({"a": (1,), "b": None}, [[("p",)], [], None]),
        None,
        (None, None),
        ({}, []),
        ({"c": (None,)}, [[None, ("q",)]]),
    ]
    column = pa.array(
        [
            None
            if row is None
            else {"m": None if row[0] is None else [(k, v) for k, v in row[0].items()], "l": row[1]}
            for row in rows
        ],
        type,
    )
    assert values(column) == rows
    assert values(column.slice(3)) == rows[3:]
    assert values(column.slice(1, 2)) == rows[1:3]
    assert values(pa.array(values(column), type)) == rows


# Labels


def test_labels_are_spread_over_sparks_partitions() -> None:
    # As spark.sql("select hash(0), hash(1), hash(-1)") has it.
    assert [spark_hash(n) for n in (0, 1, -1)] == [933211791, -559580957, -1604776387]
    for many in (1, 2, 3, 8, 200):
        found = labels(many)
        assert sorted(spark_hash(each) % many for each in found) == list(range(many))
        assert [partition_called(each, many) for each in found] == list(range(many))
