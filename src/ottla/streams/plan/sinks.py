"""Where records go. Nothing flows out of a sink."""

from dataclasses import dataclass
from typing import ClassVar

from ottla.streams.plan.function import Function
from ottla.streams.plan.node import StreamNode
from ottla.streams.types.serde import Serde


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class To(StreamNode):
    """Writes each record to a topic: a given one, or the one that `extractor` names."""

    kind: ClassVar[str] = "to"
    topic: str | None = None
    extractor: Function | None = None  # (key, value) -> topic
    partitioner: Function | None = (
        None  # (key, value) -> partition; None: by the hash of the key, as Kafka does
    )
    key_serde: Serde
    value_serde: Serde
    compacted: bool = False  # whether it is the changelog of a table, and its topic made so


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ForEach(StreamNode):
    """Hands each record to a function of the driver, and that is the end of it."""

    kind: ClassVar[str] = "for_each"
    action: Function  # (key, value) -> ignored


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Print(StreamNode):
    """Shows each record on the driver's standard output."""

    kind: ClassVar[str] = "print"
    label: str = ""


SINKS = (To, ForEach, Print)
