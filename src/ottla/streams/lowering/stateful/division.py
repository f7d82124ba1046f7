"""Which operator partition a key belongs to: that of Kafka's own partitioner, of so many partitions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ottla.spark.sink.hashing import partitions_of
from ottla.streams.lowering.stateful.keycode import KeyCode


def divided(code: KeyCode, keys: Sequence[bytes | None], partitions: int) -> NDArray[np.int64]:
    """Return the operator partition of each key. Records without a key are all in the first."""
    if partitions == 1 or not keys:
        return np.zeros(len(keys), np.int64)
    anchors = [b"" if key is None else code.anchor(key) for key in keys]
    sizes = np.fromiter(map(len, anchors), np.int64, len(anchors))
    starts = np.cumsum(sizes) - sizes
    found = partitions_of(np.frombuffer(b"".join(anchors), np.uint8), starts, sizes, partitions)
    found[[n for n, key in enumerate(keys) if key is None]] = 0
    return found
