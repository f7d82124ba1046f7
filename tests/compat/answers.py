"""The same question to two servers, and what differs in their answers.

Questions are plain data: an API's name, a version, and the request's fields by name, with dictionaries for nested
structures. What must differ is taken out of the answers first: addresses, ids drawn by chance, wall time, and
the words of messages, of which only their presence counts. Nothing else may differ.
"""

import contextlib
import functools
import sys
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ottla.wire.apis import BY_NAME
from ottla.wire.batch import scan
from ottla.wire.message import Message, Struct
from tests.peers.connection import Connection, Disconnected
from tests.peers.deadline import eventually
from tests.peers.server import Server

Fields = dict[str, Any]
Answer = Any  # dictionaries, lists and scalars; a string when there was none

ANSWER_SECONDS_MAX = 10.0

WORDS = frozenset(
    {
        "error_message",
        "acknowledge_error_message",
        "batch_index_error_message",
        "documentation",
        "error_string",
    }
)
BY_CHANCE = frozenset(
    {"topic_id", "directory_id", "replica_directory_id", "incarnation_id", "leader_directory_id"}
)
PLACES = frozenset({"port", "log_dir"})
MOMENTS = frozenset({"last_fetch_timestamp", "last_caught_up_timestamp", "total_bytes", "usable_bytes"})


def build(kind: type[Struct], fields: Fields) -> Struct:
    """A message, or a part of one, from plain data."""
    values = {}
    for name, value in fields.items():
        declared, _ = vars(kind)["__declared__"][name]
        values[name] = _convert(declared, value, kind.__module__)
    return kind(**values)


def _convert(declared: Any, value: Any, module: str) -> Any:
    if isinstance(declared, str):  # a structure that is declared further down, by its path in the module
        path = declared.removesuffix(" | None").split(".")
        declared = functools.reduce(getattr, path, sys.modules[module])
        return None if value is None else build(declared, value)
    if isinstance(declared, types.UnionType):
        if value is None:
            return None
        [declared] = [each for each in typing.get_args(declared) if each is not type(None)]
    if typing.get_origin(declared) is list:
        [inner] = typing.get_args(declared)
        return [_convert(inner, each, module) for each in value]
    return build(declared, value) if isinstance(value, dict) else value


def plain(value: Any, name: str = "") -> Answer:
    """An answer as plain data, without what cannot be the same."""
    if isinstance(value, Struct):
        return {each: plain(getattr(value, each), each) for each in value.__slots__}
    if isinstance(value, list):
        return [plain(each, name) for each in value]
    if isinstance(value, (bytes, bytearray, memoryview)) and name == "records":
        # Kafka may send a part of a batch last, which clients drop; others need not send it.
        return [bytes(value[start : start + each.size]) for start, each in scan(value)]
    if name in WORDS:
        return "words" if value else "no words"
    if name in BY_CHANCE and isinstance(value, bytes):
        return "an id" if any(value) else "no id"
    if name in PLACES:
        return "a place" if value else value
    return "a moment" if name in MOMENTS else value


@dataclass
class Side:
    """One of the two servers, and a connection to it."""

    server: Server
    line: Connection | None = None

    def ask(self, api: str, version: int, fields: Fields) -> Message | str:
        """The answer, or the word that the connection was closed instead."""
        row = BY_NAME[api]
        request = build(row.request, fields)
        assert isinstance(request, Message)
        if self.line is None:
            self.line = Connection(self.server.port, seconds_max=ANSWER_SECONDS_MAX)
        try:
            return self.line.ask(request, row.response, version)
        except Disconnected:
            self.line = None
            return "the connection was closed"
        except TimeoutError:
            self.line.close()
            self.line = None
            return "no answer"

    def topic_id(self, topic: str) -> bytes:
        answer: Any = self.ask(
            "Metadata", 12, {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        )
        found: bytes = answer.topics[0].topic_id
        return found


Ask = Fields | Callable[[Side], Fields]


@dataclass
class Pair:
    """Apache Kafka and the server under test."""

    kafka: Side
    other: Side
    differences: list[str] = field(default_factory=list)

    def same(
        self,
        api: str,
        versions: int | range | tuple[int, ...],
        fields: Ask,
        *,
        drop: Callable[[Answer], Answer] | None = None,
    ) -> None:
        """Ask both at each version, and note what differs. `drop` takes more out of the answers beforehand."""
        found: dict[str, list[int]] = {}
        for version in [versions] if isinstance(versions, int) else versions:
            answers = []
            for side in (self.kafka, self.other):
                asked = fields(side) if callable(fields) else fields
                answer = plain(side.ask(api, version, asked))
                answers.append(drop(answer) if drop and isinstance(answer, dict) else answer)
            for place, kafka, other in differing(*answers):
                found.setdefault(f"{place}: Kafka {short(kafka)}, here {short(other)}", []).append(version)
        if found:
            question = short(fields(self.other) if callable(fields) else fields)
            self.differences += [f"{api} v{where} {question}\n    {words}" for words, where in found.items()]

    def both(self, api: str, version: int, fields: Ask) -> None:
        """Have both do something whose answer is compared elsewhere."""
        for side in (self.kafka, self.other):
            side.ask(api, version, fields(side) if callable(fields) else fields)

    def make_topic(self, topic: str, partitions: int = 1, **settings: object) -> str:
        """Make the topic on both, and wait until each broker leads it."""
        configs = [{"name": key.replace("_", "."), "value": str(value)} for key, value in settings.items()]
        new = {"name": topic, "num_partitions": partitions, "replication_factor": 1, "configs": configs}
        self.both("CreateTopics", 7, {"topics": [new]})
        self.wait_for(topic, partitions)
        return topic

    def wait_for(self, topic: str, partitions: int) -> None:
        """Wait until both brokers know so many partitions, and lead each: Kafka's learns the one before the other."""
        asked: Fields = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        places = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
        ends: Fields = {"replica_id": -1, "topics": [{"name": topic, "partitions": places}]}
        for side in (self.kafka, self.other):

            def led(side: Side = side) -> bool:
                known: Any = side.ask("Metadata", 12, asked)
                if [each.leader_id for each in known.topics[0].partitions] != [1] * partitions:
                    return False
                found: Any = side.ask("ListOffsets", 7, ends)
                return all(each.error_code == 0 for each in found.topics[0].partitions)

            eventually(led)


def differing(kafka: Answer, other: Answer, place: str = "answer") -> Iterator[tuple[str, Answer, Answer]]:
    """Where two answers differ, as deep inside as can be said."""
    if isinstance(kafka, dict) and isinstance(other, dict) and kafka.keys() == other.keys():
        for name in kafka:
            yield from differing(kafka[name], other[name], f"{place}.{name}")
    elif isinstance(kafka, list) and isinstance(other, list) and len(kafka) == len(other):
        for number, pair in enumerate(zip(kafka, other, strict=True)):
            yield from differing(*pair, f"{place}[{number}]")
    elif kafka != other or type(kafka) is not type(other):
        yield place, kafka, other


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 600 else text[:600] + " …"


@contextlib.contextmanager
def agreement(pair: Pair) -> Iterator[Pair]:
    """Collects the differences of a whole test, and fails with all of them at its end."""
    pair.differences.clear()
    yield pair
    assert not pair.differences, f"{len(pair.differences)} differences\n" + "\n".join(pair.differences)


def by_name(*path: str, key: str = "name") -> Callable[[Answer], Answer]:
    """Sorts the list at a path of fields, where the order means nothing."""

    def sort(answer: Answer) -> Answer:
        holder = answer
        for step in path[:-1]:
            holder = holder[step]
        if holder.get(path[-1]):
            holder[path[-1]] = sorted(holder[path[-1]], key=lambda each: str(each[key]))
        return answer

    return sort
