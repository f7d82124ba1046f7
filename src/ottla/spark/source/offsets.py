"""How far a stream has come, in the words of its checkpoint and of its progress reports.

The JSON is that of Spark's own Kafka source, `{"orders": {"0": 42, "1": 40}}`, with some entries more:

    "#ids"      the id of each topic, so that one that was deleted and made anew is not taken for the old one
    "#tasks"    into what tasks the batch that ends here is divided, so that it is divided alike when it is run again
    "#initial"  in the very first offset alone, when it depends on the moment it was worked out

J1  The same place is the same text: Spark finds out by comparing texts whether there is something new.
J2  A `#` is in no topic's name, so nothing else can be called like that; a text without these entries is fine, too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.client.record import TopicPartition

_IDS, _INITIAL, _TASKS = "#ids", "#initial", "#tasks"


class Division(NamedTuple):
    """What a batch is divided by: the options minPartitions, maxRecordsPerPartition and minRecordsPerPartition."""

    partitions_min: int | None
    records_max: int | None
    records_min: int


@dataclass(frozen=True, slots=True)
class Reached:
    """The offset that is next in each partition, and the ids of the topics as far as brokers have some."""

    offsets: Mapping[TopicPartition, int]
    ids: Mapping[str, str] = field(default_factory=dict)
    is_initial: bool = False
    division: Division | None = field(default=None, compare=False)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Reached":
        """Read what `json` wrote."""
        offsets = {
            TopicPartition(topic, int(number)): int(offset)
            for topic, numbers in given.items()
            if not topic.startswith("#")
            for number, offset in numbers.items()
        }
        tasks = given.get(_TASKS)
        division = None if tasks is None else Division(*tasks)
        return cls(offsets, dict(given.get(_IDS, {})), bool(given.get(_INITIAL)), division)

    def json(self, *, plain: bool = False) -> dict[str, Any]:
        """Return what is to be written; `plain` is without our own entries."""
        found: dict[str, Any] = {}
        for partition in sorted(self.offsets):
            found.setdefault(partition.topic, {})[str(partition.partition)] = self.offsets[partition]
        if plain:
            return found
        ids = {topic: self.ids[topic] for topic in sorted(self.ids) if topic in found}
        if ids:
            found[_IDS] = ids
        if self.division is not None:
            found[_TASKS] = list(self.division)
        if self.is_initial:
            found[_INITIAL] = True
        return found


def lag(
    end: str | Mapping[str, Any] | None, latest: str | Mapping[str, Any] | None
) -> dict[TopicPartition, int]:
    """Return how many offsets each partition is behind, from `endOffset` and `latestOffset` of a progress report."""
    ends, ours = _reached(latest), _reached(end)
    return {partition: max(offset - ours.get(partition, 0), 0) for partition, offset in ends.items()}


def _reached(given: str | Mapping[str, Any] | None) -> Mapping[TopicPartition, int]:
    read: Any = json.loads(given) if isinstance(given, str) else given
    return Reached.of(read or {}).offsets
