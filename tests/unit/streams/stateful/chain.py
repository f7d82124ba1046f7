"""A whole topology without Spark: passes, parcels, hosts with stores in memory, rows in their order.

What Spark does between them is done here: parcels are grouped by label, in any order.
"""

import pickle
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.streams import App
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.envelope import schema
from ottla.streams.lowering.execution import Execution
from ottla.streams.lowering.fan_out import paths_from
from ottla.streams.lowering.origin_pass import OriginPass
from ottla.streams.lowering.row_order import unpacked, unpacked_in_order
from ottla.streams.lowering.stateful.host import Host
from ottla.streams.lowering.stateful.parcels import Parcel, batch_of
from ottla.streams.plan.node import StreamNode
from ottla.streams.plan.old_values import wants_old
from ottla.streams.plan.topology import Plan
from ottla.streams.types.codec import decoder

T = TypeVar("T")
# topic, partition → records of (key, value, timestamp), plain
Given = Mapping[tuple[str, int], Sequence[tuple[Any, Any, int]]]


class State:
    """A MapState of one group, as PySpark has it."""

    def __init__(self, rows: dict[tuple[bytes], tuple[bytes]] | None = None) -> None:
        self.rows = {} if rows is None else rows
        self.getValue = self.rows.get

    def updateValue(self, key: tuple[bytes], value: tuple[bytes]) -> None:
        self.rows[key] = value

    def removeKey(self, key: tuple[bytes]) -> None:
        self.rows.pop(key, None)

    def iterator(self) -> list[tuple[tuple[bytes], tuple[bytes]]]:
        return list(self.rows.items())


def travelled(thing: T) -> T:
    """The same as a process of Spark's gets it: nothing that a task leaves in it is there for the next one."""
    found: T = pickle.loads(cloudpickle.dumps(thing))
    return found


class Chain:
    """A topology that runs."""

    def __init__(
        self, app: App | Plan, partitions: int = 1, updates: str = "all", seed: int = 0, **more: Any
    ) -> None:
        plan = app.plan() if isinstance(app, App) else app
        spark: Any = None
        more = {"given": {}, **more}
        context = Context(spark, "app", spark, partitions, updates, wants_old=wants_old(plan), **more)
        self.execution = Execution(plan, context)
        self._context = context
        self._states: dict[tuple[int, int, str], State] = {}
        self._chance = random.Random(seed)
        self.steps: list[str] = []  # which operators were run, once for each partition and micro-batch
        self._offsets: dict[tuple[str, int], int] = {}

    def batch(self, given: Given) -> list[tuple[int, str, Any, Any]]:
        """Run a micro-batch; return (output, topic, key, value) of what leaves, in the order of Spark's partitions."""
        rows: list[pa.RecordBatch] = []
        parcels: list[Parcel] = []
        flow = self.execution.flow
        for source in flow.sources:
            entry, is_alone = flow.entry(source), flow.is_alone(source)
            paths = paths_from(flow, entry, self._context)
            made = travelled(OriginPass(paths, self.execution.layout, not is_alone))
            for (topic, partition), records in given.items():
                if topic in source.topics:
                    found = list(made(self._batches(entry, topic, partition, records)))
                    if is_alone:
                        rows += found
                    else:
                        parcels += [Parcel(*row.values()) for each in found for row in each.to_pylist()]
        for (topic, partition), records in given.items():
            self._offsets[topic, partition] = self._offsets.get((topic, partition), 0) + len(records)
        for n, frame in enumerate(self.execution.frames()):
            parcels = self._staged(n, frame, parcels)
        leave = unpacked_in_order if self.execution.has_lineage else unpacked
        for label in dict.fromkeys(each.label for each in parcels):
            some = [each for each in parcels if each.label == label]
            rows += list(leave([batch_of(some)]))
        return [self._row(row) for each in rows for row in each.to_pylist()]

    def _batches(self, entry: Any, topic: str, partition: int, records: Any) -> list[pa.RecordBatch]:
        node = StreamNode(name="", key=entry.key, value=entry.value)
        fields = to_arrow_schema(schema(node), timezone="UTC")
        first = self._offsets.get((topic, partition), 0)
        rows = [
            {
                "key": key,
                "value": value,
                "timestamp": time,
                "headers": None,
                "topic": topic,
                "partition": partition,
                "offset": first + n,
            }
            for n, (key, value, time) in enumerate(records)
        ]
        return [pa.RecordBatch.from_pylist(rows[start:end], fields) for start, end in self._edges(len(rows))]

    def _edges(self, count: int) -> list[tuple[int, int]]:
        # Batches end anywhere.
        return list(pairwise(sorted({0, count, *(self._chance.randint(0, count) for _ in range(2))})))

    def _staged(self, n: int, frame: Any, parcels: list[Parcel]) -> list[Parcel]:
        shuffled = self._chance.sample(parcels, len(parcels))
        found: list[Parcel] = []
        for label in dict.fromkeys(each.label for each in shuffled):
            host = travelled(Host(self.execution.flow.stages[n].operator, frame))
            handle: Any = SimpleNamespace(
                getMapState=lambda name, *_, label=label: self._states.setdefault((n, label, name), State())
            )
            host.init(handle)
            timers: Any = SimpleNamespace(getCurrentProcessingTimeInMs=lambda: -1)
            if any(each.target in frame.sides for each in shuffled if each.label == label):
                self.steps.append(frame.name)
            rows: Any = iter([each for each in shuffled if each.label == label])
            sent = host.handleInputRows((label,), rows, timers)
            found += [Parcel(row.label, row.target, row.part, row.data) for row in sent]
        return found

    def _row(self, row: dict[str, Any]) -> tuple[int, str, Any, Any]:
        end = self.execution.flow.ends[row["output"]]
        seen = row.get(f"seen_{end.number}")
        if seen is not None:
            return end.number, end.node.name, seen["key"], seen["value"]
        node: Any = end.node
        key, value = (
            None if data is None else decoder(serde)(data)
            for data, serde in ((row["key"], node.key_serde), (row["value"], node.value_serde))
        )
        return end.number, row["topic"], key, value


def run(app: App, *batches: Given, **more: Any) -> list[tuple[str, Any, Any]]:
    """Run some micro-batches; return (topic, key, value)."""
    chain = Chain(app, **more)
    return [row[1:] for given in batches for row in chain.batch(given)]
