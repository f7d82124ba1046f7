"""Rows of questions, each with the codes of its answer, asked of a server and of Apache Kafka beside it.

A row stands for one case at several versions. Its code is checked on each side, so a row means something without
Java; where there are two sides, their answers are compared field by field, too. Ids drawn by chance are called by the
name that the scene gave them, or by what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.wire.apis import BY_NAME
from ottla.wire.errors import ErrorCode
from tests.compat.answers import Answer, Fields, Side, build, differing, plain, short
from tests.peers.connection import Connection
from tests.peers.deadline import eventually

UNKNOWN_ID = bytes(range(16))
CLOSED = "the connection was closed"

# One code for the whole answer, several in the order in which they stand in it, or the word for a closed connection.
Code = ErrorCode | tuple[ErrorCode, ...] | str
# The same at every version, or by the first version at which it holds.
Expected = Code | Mapping[int, Code]

_CODES = frozenset({"error_code", "partition_error_code", "acknowledge_error_code"})
_IDS = frozenset({"member_id", "leader", "producer_id"})
_KEYS = (
    "group_id",
    "transactional_id",
    "member_id",
    "name",
    "topic",
    "topic_name",
    "partition_index",
    "partition",
)
_BY_CHANCE = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[A-Za-z0-9_-]{22})$")
# What a coordinator says before it can say anything else.
_NOT_YET = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


@dataclass
class Scene:
    """One server, and what was set up on it: names that stand for ids which differ from server to server."""

    side: Side
    names: dict[str, Any] = field(default_factory=dict)
    lines: list[Connection] = field(default_factory=list)
    _versions: dict[int, range] = field(default_factory=dict)

    def __getitem__(self, name: Any) -> Any:
        """What a name stands for; a name that stands for nothing is meant as it is."""
        return self.names.get(name, name) if isinstance(name, str) else name

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """Ask, whatever the answer."""
        return self.side.ask(api, version, fields)

    def do(self, api: str, version: int, **fields: Any) -> Any:
        """Ask until the coordinator is there and has ended what it was at; the answer must be without an error."""
        found: list[Any] = []

        def done() -> bool:
            found[:] = [self.ask(api, version, **fields)]
            return not any(code in _NOT_YET for code in codes(plain(found[0])))

        eventually(done)
        assert not codes(plain(found[0])), f"{api} v{version} {short(fields)}: {short(plain(found[0]))}"
        return found[0]

    def send(self, api: str, version: int, **fields: Any) -> Connection:
        """Ask over a line of its own, and leave the answer there."""
        line = Connection(self.side.server.port)
        self.lines.append(line)
        request: Any = build(BY_NAME[api].request, fields)
        line.send(request, version)
        return line

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic, or one that no topic has."""
        key = f"id of {topic}"
        if key not in self.names:
            found = self.side.topic_id(topic)
            if not any(found):
                return UNKNOWN_ID
            self.names[key] = found
        known: bytes = self.names[key]
        return known

    def make_topic(self, topic: str, partitions: int = 1, **settings: object) -> str:
        """Make a topic, and wait until the broker leads it."""
        configs = [{"name": key.replace("_", "."), "value": str(value)} for key, value in settings.items()]
        new = {"name": topic, "num_partitions": partitions, "replication_factor": 1, "configs": configs}
        self.ask("CreateTopics", 7, topics=[new])
        places = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]

        def led() -> bool:
            found = self.ask("ListOffsets", 7, replica_id=-1, topics=[{"name": topic, "partitions": places}])
            return all(each.error_code == 0 for each in found.topics[0].partitions)

        eventually(led)
        return topic

    def called(self, answer: Answer, name: str = "") -> Answer:
        """An answer in which ids drawn by chance are called by their names."""
        if isinstance(answer, dict):
            return {key: self.called(value, key) for key, value in answer.items()}
        if isinstance(answer, list):
            called = [self.called(each, name) for each in answer]
            if name == "partitions" and all(isinstance(each, int) for each in called):
                return sorted(called)
            # Kafka gathers parts in hash maps, and they come from several coordinators.
            return sorted(called, key=_whose)
        if name not in _IDS:
            return answer
        for known, value in self.names.items():
            if value == answer and type(value) is type(answer):
                return known
        return "a new id" if isinstance(answer, str) and _BY_CHANCE.search(answer) else answer

    def versions(self, api: str) -> range:
        """The versions of an API that this server speaks."""
        if not self._versions:
            answer = self.ask("ApiVersions", 0)
            for each in answer.api_keys:
                self._versions[each.api_key] = range(each.min_version, each.max_version + 1)
        return self._versions[BY_NAME[api].key]

    def close(self) -> None:
        for line in self.lines:
            line.close()


Ask = Fields | Callable[[Scene, int], Fields]


class Row(NamedTuple):
    """A case: what is asked, at which versions (all that both sides speak, unless it says so), and what comes back."""

    what: str
    api: str
    code: Expected
    fields: Ask
    versions: Sequence[int] | None = None
    hide: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.api}, {self.what}"


class Scenes(list[Scene]):
    """The sides, Apache Kafka first where it runs; the server under test is the last."""

    def versions(self, api: str) -> list[int]:
        """The versions of an API that every side speaks."""
        return [each for each in self[-1].versions(api) if all(each in scene.versions(api) for scene in self)]

    def play(self, row: Row) -> None:
        """Ask the row at each of its versions on each side."""
        wrong: dict[str, list[int]] = {}
        for version in self.versions(row.api) if row.versions is None else row.versions:
            answers = []
            for scene in self:
                asked = row.fields(scene, version) if callable(row.fields) else row.fields
                answer = hidden(scene.called(plain(scene.side.ask(row.api, version, asked))), row.hide)
                answers.append(answer)
                found, wanted = outcome(answer), at_version(row.code, version)
                if found != (wanted if isinstance(wanted, tuple | str) else (wanted,)):
                    said = found if isinstance(found, str) else ", ".join(code.name for code in found)
                    wrong.setdefault(f"{scene.side.server.name} said {said}", []).append(version)
            for place, kafka, other in differing(answers[0], answers[-1]):
                if (kafka, other) == ("no words", "words"):
                    continue  # Ottla may say why where Kafka does not.
                words = f"{place}: Kafka {short(kafka)}, here {short(other)}"
                wrong.setdefault(words, []).append(version)
        lines = [f"v{versions} {words}" for words, versions in wrong.items()]
        assert not lines, f"{row} should be {row.code!r}\n" + "\n".join(lines)

    def ask(self, api: str, version: int, code: Code, fields: Ask, *hide: str) -> None:
        """One question of a longer story."""
        self.play(Row("in a story", api, code, fields, (version,), hide))

    def do(self, api: str, version: int, fields: Ask) -> None:
        """Have each side do what it must be able to do."""
        for scene in self:
            scene.do(api, version, **(fields(scene, version) if callable(fields) else fields))


def at_version(expected: Expected, version: int) -> Code:
    """The code that holds at a version."""
    if not isinstance(expected, Mapping):
        return expected
    return expected[max(first for first in expected if first <= version)]


def codes(answer: Answer) -> tuple[ErrorCode, ...]:
    """Every code in an answer that is not NONE, in its order, each run of the same one once."""
    found: list[ErrorCode] = []
    for name, value in _leaves(answer):
        if name in _CODES and value and (not found or found[-1] != value):
            found.append(ErrorCode(value))
    return tuple(found)


def outcome(answer: Answer) -> tuple[ErrorCode, ...] | str:
    """The codes of an answer, NONE if there is no other; the words for an answer that did not come."""
    return answer if isinstance(answer, str) else codes(answer) or (ErrorCode.NONE,)


def hidden(answer: Answer, names: tuple[str, ...]) -> Answer:
    """An answer without the values of some fields."""
    if isinstance(answer, dict):
        return {key: "hidden" if key in names else hidden(value, names) for key, value in answer.items()}
    return [hidden(each, names) for each in answer] if isinstance(answer, list) else answer


def _whose(answer: Answer) -> str:
    """What a part of an answer is about, by which parts are ordered."""
    if isinstance(answer, dict):
        for name in _KEYS:
            if isinstance(answer.get(name), str | int):
                return f"{answer[name]:>9}"
    return ""


def _leaves(answer: Answer, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield from _leaves(value, key)
    elif isinstance(answer, list):
        for each in answer:
            yield from _leaves(each, name)
    else:
        yield name, answer
