"""A table joined with the table that its rows refer to, by a key taken out of them.

The rows of both are in different partitions, so three operators do it, as in Kafka Streams:

    left table ──► Subscribing (by the left key)     a row tells the key it refers to now, and leaves the one before
                        │ subscriptions
    right table ─► Responding (by the right key)     who has subscribed hears of the right row, now and when it changes
                        │ responses
                   Resolving (by the left key)       of each row the newest version counts

F1  Every version of a left row has a number, growing within its operator partition. A response to an older version
    than the last one heard of is dropped: two right keys answer through different partitions, and so in any order.
F2  What flows out when is Kafka Streams': also deletions of results that never were, where it cannot know better.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.scattered import Scattered

if TYPE_CHECKING:
    from ottla.streams.lowering.context import Context
    from ottla.streams.lowering.stateful.record import Record
    from ottla.streams.lowering.stateful.stage import Stage
    from ottla.streams.lowering.stateful.store import Store
    from ottla.streams.plan.joins import ForeignKeyJoin as ForeignKeyJoinNode

# What a subscription asks for: an answer in any case, an answer if the right row is there, to be forgotten, to be
# forgotten and answered with nothing.
ANSWER, ANSWER_IF_THERE, FORGET, FORGET_AND_ANSWER = range(4)

_NUMBER = b""


class Subscribing(Operator):
    """rows: left key → the right key it refers to; counter: the number of the last version.

    Out of it flow (right key, (left key, left value, version, what is asked)).
    """

    stores = ("rows", "counter")

    def __init__(
        self, how: str, extract: Callable[[Any, Any], Any], is_same: Callable[[Any, Any], bool]
    ) -> None:
        self._left = how == "left"
        self._extract = extract
        self._is_same = is_same  # whether two right keys are one

    def open(self, stores: "Mapping[str, Store]") -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._counter = stores["counter"]

    def step(self, record: "Record") -> None:
        """Take a change of the left table. Rows are (right key,): one that refers to nothing is a row too."""
        if record.at is None:
            return
        row = self.rows.get(record.at)
        if row is None and record.value is None:
            return
        before = None if row is None else row[0]
        if record.value is None:
            now = None
            self.rows.delete(record.at)
        else:
            now = self._extract(record.key, record.value)
            self.rows.put(record.at, (now,))
        version = (self._counter.get(_NUMBER) or 0) + 1
        self._counter.put(_NUMBER, version)
        for key, asked in self._asked(before, now, there=record.value is not None):
            value = (record.key, record.value, version, asked)
            self.emit(key, value, None, record.timestamp, record.headers)

    def _asked(self, before: Any, now: Any, *, there: bool) -> list[tuple[Any, int]]:
        if self._left:
            left = [(before, FORGET)] if before is not None and not self._is_same(before, now) else []
            return [*left, (now, ANSWER)]
        if not there or now is None:
            return [(before, FORGET_AND_ANSWER)] if before is not None else []
        if before is None or self._is_same(before, now):
            return [(now, ANSWER_IF_THERE)]
        return [(before, FORGET), (now, ANSWER)]


class Responding(Operator):
    """rows: right key → (value, timestamp); subscribers: right key → {left key: (left key, left value, version)}.

    Side 0 are subscriptions, side 1 changes of the right table. Out of it flow
    (left key, (version, left value, right value, timestamp)).
    """

    stores = ("rows", "subscribers")

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode  # of left keys

    def open(self, stores: "Mapping[str, Store]") -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._subscribers = stores["subscribers"]

    def prepare(self, records: "Sequence[Record]") -> None:
        """Read the right rows, and those who have subscribed to them."""
        super().prepare(records)
        self._subscribers.fetch(Scattered.heads(record.at for record in records if record.at is not None))
        wanted: list[bytes] = []
        for record in records:
            if record.at is None:
                continue
            subscribers = Scattered(self._subscribers, record.at)
            if record.side == 1:
                wanted += subscribers.everything()
            else:
                wanted.append(subscribers.near(self._encode(record.value[0])))
        self._subscribers.fetch(wanted)

    def step(self, record: "Record") -> None:
        """Take a subscription, or a change of the right table."""
        if record.side == 1:
            if record.at is not None:
                self._changed(record)
            return
        key, value, version, asked = record.value
        row = None
        if record.at is not None:
            subscribers = Scattered(self._subscribers, record.at)
            if asked in (FORGET, FORGET_AND_ANSWER):
                subscribers.delete(self._encode(key))
            else:
                subscribers.put(self._encode(key), (key, value, version))
            row = self.rows.get(record.at)
        if asked == FORGET or (asked == ANSWER_IF_THERE and row is None):
            return
        time = record.timestamp if row is None else max(record.timestamp, row[1])
        right = None if row is None or asked == FORGET_AND_ANSWER else row[0]
        self.emit(key, (version, value, right, time), None, record.timestamp, record.headers)

    def _changed(self, record: "Record") -> None:
        assert record.at is not None
        if record.value is None:
            self.rows.delete(record.at)
        else:
            self.rows.put(record.at, (record.value, record.timestamp))
        for _, (key, value, version) in Scattered(self._subscribers, record.at).entries():
            answer = (version, value, record.value, record.timestamp)
            self.emit(key, answer, None, record.timestamp, record.headers)


class Resolving(Operator):
    """rows: left key → (version, result)."""

    def __init__(self, how: str, join: Callable[[Any, Any, Any], Any]) -> None:
        self._left = how == "left"
        self._join = join

    def open(self, stores: "Mapping[str, Store]") -> None:
        """Begin a micro-batch."""
        super().open(stores)
        self._empty: dict[bytes, None] = {}

    def step(self, record: "Record") -> None:
        """Take a response, unless it is to a version that is no more."""
        assert record.at is not None
        version, left, right, time = record.value
        last, old = self.rows.get(record.at) or (0, None)
        if version < last:
            return
        new = None
        if left is not None and (right is not None or self._left):
            new = self._join(record.key, left, right)
        self.rows.put(record.at, (version, new))
        if new is None:
            self._empty[record.at] = None
        else:
            self._empty.pop(record.at, None)
        self.emit(record.key, new, old, time, record.headers)

    def finish(self) -> None:
        """Forget rows without a result: responses to older versions come in the same micro-batch or never."""
        for at in self._empty:
            self.rows.delete(at)


def foreign_key_join_stages(node: "ForeignKeyJoinNode", context: "Context") -> "list[Stage]":
    """Return a join of tables by a foreign key: three operators, one after another."""
    from ottla.streams.lowering.calling import caller, dumper, loader
    from ottla.streams.lowering.stateful.joining import joiner
    from ottla.streams.lowering.stateful.keycode import key_code, same_key
    from ottla.streams.lowering.stateful.stage import stage
    from ottla.streams.plan.node import StreamNode
    from ottla.streams.types.struct import Pair
    from ottla.streams.types.type import Integer, Nullable

    left, right = node.inputs
    extracted = caller(node.extractor, ("key", "value"), node.name)
    load_key, load_value = loader(left.key), loader(left.value)
    dump = dumper(right.key, node.name, node.extractor.place)

    def extract(key: Any, value: Any) -> Any:
        return dump(extracted(load_key(key), load_value(value)))

    subscriptions = StreamNode(
        name=f"{node.name}-subscriptions",
        inputs=(left,),
        key=right.key,
        value=Pair((left.key, Nullable(left.value), Integer(), Integer(8))),
    )
    responses = StreamNode(
        name=f"{node.name}-responses",
        inputs=(subscriptions, right),
        key=left.key,
        value=Pair((Integer(), Nullable(left.value), Nullable(right.value), Integer())),
    )
    join = joiner(node, left.value, right.value)
    return [
        stage(subscriptions, Subscribing(node.how, extract, same_key(right.key))),
        stage(responses, Responding(key_code(left.key).encode)),
        stage(node, Resolving(node.how, join), inputs=(responses,)),
    ]
