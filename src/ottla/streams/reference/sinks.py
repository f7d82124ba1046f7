"""Where records leave the topology, and what a test sees of them."""

from typing import Any, NamedTuple

from ottla.client.record import Record
from ottla.streams.errors import FunctionFailed, TypeMismatch
from ottla.streams.plan.node import Node
from ottla.streams.plan.sinks import ForEach, To
from ottla.streams.record_fields import partition_number, topic_name
from ottla.streams.reference.calling import loaded
from ottla.streams.reference.change import Change
from ottla.streams.reference.stateless import called
from ottla.streams.types.codec import decoder, encoder
from ottla.streams.types.serde import Serde


class Written(NamedTuple):
    """What came out at one end of the topology.

    `raw` is what a topic would get, with a partition of -1 where the hash of the key decides; where nothing is written
    it is None. `record` is the same with key and value as the user's functions have them.
    """

    node: Node
    record: Record
    raw: Record | None = None


class TopicSink:
    """Writes records to a topic."""

    def __init__(self, node: To) -> None:
        self._node = node
        self._extractor = None if node.extractor is None else called(node.extractor, node)
        self._partitioner = None if node.partitioner is None else called(node.partitioner, node)
        functions = [each for each in (self._extractor, self._partitioner) if each is not None]
        self._place = functions[0].place if functions else node.name
        self._key = _Half(node.key_serde, node.inputs[0].key)
        self._value = _Half(node.value_serde, node.inputs[0].value)

    def write(self, change: Change) -> Written:
        """Return what is written."""
        name, topic, partition = self._node.name, self._node.topic, None
        if self._extractor is not None:
            found = self._extractor.raw(change.key, change.value)
            topic = topic_name(found, name, self._extractor.place)
        if self._partitioner is not None:
            found = self._partitioner.raw(change.key, change.value)
            partition = partition_number(found, name, self._partitioner.place)
        try:
            key, value = self._key.encoded(change.key), self._value.encoded(change.value)
        except TypeMismatch as error:
            raise FunctionFailed(self._node.name, self._place, str(error.args[0])) from None
        raw = Record(
            str(topic),
            -1 if partition is None else partition,
            -1,
            change.timestamp,
            key,
            value,
            change.headers,
        )
        shown = raw._replace(key=self._key.decoded(key), value=self._value.decoded(value))
        return Written(self._node, shown, raw)


class _Half:
    """The keys or the values of records, on their way to a topic."""

    def __init__(self, serde: Serde, type: Any) -> None:
        self._type = type
        self._encode = encoder(serde)
        self._decode = decoder(serde)

    def encoded(self, given: Any) -> bytes | None:
        return None if given is None else self._encode(loaded(self._type, given))

    def decoded(self, data: bytes | None) -> Any:
        return None if data is None else self._decode(data)


class RecordSink:
    """Hands records to a function of the program, or only shows them: for_each, print, and operators nobody reads."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._action = called(node.action, node) if isinstance(node, ForEach) else None

    def write(self, change: Change) -> Written:
        """Call the function, and return the record."""
        if self._action is not None:
            self._action.raw(change.key, change.value)
        _, partition, offset = change.place
        key, value = loaded(self._node.key, change.key), loaded(self._node.value, change.value)
        return Written(
            self._node,
            Record(
                self._node.name, partition or 0, offset or 0, change.timestamp, key, value, change.headers
            ),
        )
