"""One line of a history: a client begins something, or learns what became of it.

    {"index": 7, "time_ns": 33, "process": 2, "type": "invoke", "f": "send", "value": [["send", "t-0", "2.9", null]]}

O1  Each process has one operation under way at a time: `invoke`, then `ok`, `fail` or `info`. Without an end it is
    `info`.
O2  `fail` is proof that nothing was applied, `ok` that all of it was. Whatever leaves a doubt is `info`: a timeout, a
    lost connection, NOT_LEADER_OR_FOLLOWER after the request was sent (KAFKA-13574).
O3  A send outside of a transaction that has an offset was acknowledged, whatever became of its companions.
O4  Every value is written once in its key, which is a partition: so a value names its writer.
"""

import json
from dataclasses import dataclass
from typing import Literal

Kind = Literal["invoke", "ok", "fail", "info"]
Deed = Literal["send", "poll", "txn", "assign", "crash"]
Seen = tuple[str, int, str]  # key, offset, value


@dataclass(frozen=True, slots=True)
class Send:
    """A value for a key; the offset is what the broker said, once it did."""

    key: str
    value: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """What a consumer was given, in that order."""

    seen: tuple[Seen, ...] = ()


Step = Send | Poll


@dataclass(frozen=True, slots=True)
class Op:
    """One line. `steps` are those of send, poll and txn; `keys` those that a consumer reads from their beginning on."""

    index: int
    time_ns: int
    process: int
    kind: Kind
    deed: Deed
    steps: tuple[Step, ...] = ()
    keys: tuple[str, ...] = ()
    error: str | None = None

    def to_line(self) -> str:
        """Write it as a line of JSON, without the end of the line."""
        value: object = list(self.keys) if self.deed == "assign" else [_to_value(step) for step in self.steps]
        found = {
            "index": self.index,
            "time_ns": self.time_ns,
            "process": self.process,
            "type": self.kind,
            "f": self.deed,
            "value": value,
        }
        return json.dumps(found | ({"error": self.error} if self.error is not None else {}))

    @classmethod
    def from_line(cls, line: str) -> "Op":
        """Read what `to_line` wrote; ValueError, KeyError or TypeError when it is something else."""
        found = json.loads(line)
        is_assignment = found["f"] == "assign"
        return cls(
            found["index"],
            found["time_ns"],
            found["process"],
            found["type"],
            found["f"],
            () if is_assignment else tuple(_from_value(each) for each in found["value"]),
            tuple(found["value"]) if is_assignment else (),
            found.get("error"),
        )


def _to_value(step: Step) -> list[object]:
    if isinstance(step, Send):
        return ["send", step.key, step.value, step.offset]
    return ["poll", [list(each) for each in step.seen]]


def _from_value(value: list[object]) -> Step:
    match value:
        case ["send", str(key), str(text), (int() | None) as offset]:
            return Send(key, text, offset)
        case ["poll", list(seen)]:
            return Poll(tuple((str(key), int(offset), str(text)) for key, offset, text in seen))
    raise ValueError(f"not a step: {value!r}")
