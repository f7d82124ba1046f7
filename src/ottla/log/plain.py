"""The append of plain batches in C, where it could be built: what it has to know of our classes.

`append(log, batch, leader_epoch, now_ms)` returns the offset that the batch has got, or None when it is one that
`Log.append` has to look at. Without the compiled part there is none, and `Log.append` does it all.
"""

from collections.abc import Callable

from crc32c import crc32c

from ottla.log.epoch_cache import EpochCache
from ottla.log.inspection import PLAIN_BYTES_MAX
from ottla.log.producer_state import BatchSpan, ProducerEntry, Producers
from ottla.log.segment import Segment
from ottla.log.tail import NEWEST_BYTES_MAX, Tail
from ottla.world.disk import Bytes, RealFile

try:
    from ottla.log import _plain
except ImportError:  # no compiler when Ottla was installed
    _plain = None  # type: ignore[assignment]

append: Callable[[object, Bytes, int, int], int | None] | None = None if _plain is None else _plain.append


def stored() -> int:
    """How many batches the compiled append has stored since the process began."""
    return 0 if _plain is None else _plain.stored()


def teach(log: type) -> None:
    """Say where everything is in a log."""
    if _plain is not None:
        classes = (log, Segment, RealFile, Tail, EpochCache, Producers, ProducerEntry, BatchSpan)
        _plain.learn({cls.__name__: cls for cls in classes}, crc32c, NEWEST_BYTES_MAX, PLAIN_BYTES_MAX)
