"""The operator that lets the first record of each key pass."""

from dataclasses import dataclass
from typing import ClassVar

from ottla.streams.plan.node import StreamNode


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Distinct(StreamNode):
    """Drops records whose key has passed already: ever, or no further away than `within_ms` of event time."""

    kind: ClassVar[str] = "distinct"
    stateful: ClassVar[bool] = True
    within_ms: int | None = None
