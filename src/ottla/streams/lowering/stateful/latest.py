"""One change a key and micro-batch: the last one, from what was there before the first.

That is what the record cache of Kafka Streams does between commits. A row that has come and gone again says nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ottla.streams.lowering.stateful.record import Output


def latest(out: Iterable[Output], encode: Callable[[Any], bytes]) -> list[Output]:
    """Return the last change of each key, in the order in which they were made."""
    kept: dict[bytes, Output] = {}
    for change in out:
        name = encode(change.key)
        before = kept.pop(name, None)
        kept[name] = change if before is None else change._replace(old=before.old)
    return [change for change in kept.values() if change.value is not None or change.old is not None]
