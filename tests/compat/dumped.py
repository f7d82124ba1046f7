"""The records of internal topics as kafka-dump-log reads them, without what differs from run to run.

Ids drawn by chance, moments, and hashes over them are taken out, and the clan's own name, so that two clans that
went through the same have the same records.
"""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.peers.kafka import tool

DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
_BATCH = re.compile(r"^baseOffset: .* producerId: (-?\d+) .* isTransactional: (\w+) .* isvalid: true$")
_RECORD = re.compile(r"^\| offset: .* key: (\{.*\}) payload: (.*)$")
_MARKER = re.compile(r"^\| offset: .* endTxnMarker: (\w+) ")
_PRODUCERS = frozenset({"producerId", "previousProducerId", "nextProducerId"})
_BY_CHANCE = frozenset({"topicId", "metadataHash"})

# What was written under each key, in the order of the log: the value, and whether it is part of a transaction.
Written = dict[str, list[tuple[Any, bool]]]


class Dump:
    """All internal topics of a directory, read once by Kafka's own tool."""

    def __init__(self, log_dir: Path) -> None:
        self._printed = {}
        for topic, decoder in DECODERS.items():
            files = sorted(str(path) for path in log_dir.glob(f"{topic}-*/*.log"))
            printed = tool("DumpLogSegments", decoder, "--files", ",".join(files))
            assert "isvalid: false" not in printed
            assert "Exception" not in printed, printed
            self._printed[topic] = printed

    def written(self, clan: str, names: dict[str, Any]) -> Written:
        """The records of a clan; `names` are those that were given to ids."""
        found: Written = {}
        known = {
            value: name
            for name, value in names.items()
            if clan in name and name.startswith(("producer of", "member of"))
        }
        for topic, printed in self._printed.items():
            for key, value, transactional in _records(printed):
                if _owner(key).startswith(clan) or key.get("producerId") in known:
                    place = f"{topic} {json.dumps(_plain(key, known))}".replace(clan, "clan")
                    said = json.loads(json.dumps(_plain(value, known)).replace(clan, "clan"))
                    found.setdefault(place, []).append((said, transactional))
        return found


def _owner(key: Any) -> str:
    """Whose record it is: a group's, or that of a transactional id."""
    data = key.get("data", {})
    owner: str = data.get("group") or data.get("groupId") or data.get("transactionalId") or ""
    return owner


def _records(printed: str) -> Any:
    producer, transactional = -1, False
    for line in printed.splitlines():
        if batch := _BATCH.match(line):
            producer, transactional = int(batch[1]), batch[2] == "true"
        elif marker := _MARKER.match(line):
            yield {"producerId": producer}, marker[1], transactional
        elif record := _RECORD.match(line):
            value = record[2] if record[2] == "<DELETE>" else json.loads(record[2])
            yield json.loads(record[1]), value, transactional


def _plain(value: Any, known: dict[Any, str], name: str = "") -> Any:
    if isinstance(value, dict):
        if value.get("topic") == "__consumer_offsets":  # which partition it is depends on the clan's name
            return "offsets"
        return {key: _plain(each, known, key) for key, each in value.items()}
    if isinstance(value, list):
        return sorted((_plain(each, known, name) for each in value), key=str)
    if name in _BY_CHANCE:
        return "by chance"
    if "imestamp" in name:
        return "a moment" if value > 0 else value
    if name == "leaderEpoch":  # how much it grows is up to whoever starts after a stop, or after a crash
        return min(value, 1)
    if name in _PRODUCERS or isinstance(value, str):
        return known.get(value, value)
    return value


def differences(one: Written, other: Written) -> list[str]:
    """Where two clans have not written the same."""
    found = []
    for key in sorted(one.keys() | other.keys()):
        for number, pair in enumerate(zip_longest(one.get(key, []), other.get(key, []))):
            if pair[0] != pair[1]:
                found.append(f"{key}, {number}: {pair[0]} and {pair[1]}")
    return found
