"""Where a share group begins in a partition that it has never read: what share.auto.offset.reset says."""

import re
from collections.abc import Callable, Generator

from ottla.broker.broker import Broker
from ottla.log.lookup import Pause, UnreadableBatchError
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError

_BATCH_BYTES_MAX = 1 << 20
_BATCHES_MAX = 8
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?", re.IGNORECASE)


def find_reset_offset(
    broker: Broker, partition: Partition, wish: str, now: int, done: Callable[[int | BrokerError], None]
) -> None:
    """Find the offset of the first record, behind the last, or of the first that is not older than a duration.

    The last takes several turns of the loop where many batches have one time.
    """
    if wish == "earliest":
        done(partition.log.start_offset)
    elif wish == "latest":
        done(partition.high_watermark)
    else:
        timestamp = now - duration_ms(wish.partition(":")[2])
        _go_on(broker, partition, _search(partition, timestamp), done)


def _go_on(
    broker: Broker,
    partition: Partition,
    search: Generator[None, None, int | None],
    done: Callable[[int | BrokerError], None],
) -> None:
    try:
        next(search)
    except StopIteration as end:
        end_offset = partition.high_watermark
        done(end_offset if end.value is None else min(end.value, end_offset))
    except OSError as error:
        done(partition.log.storage_error(error))
    except BrokerError as error:
        done(error)
    else:
        broker.call_soon(lambda: _go_on(broker, partition, search, done))


def _search(partition: Partition, timestamp: int) -> Generator[None, None, int | None]:
    """Return the first record that is not older, or the beginning of its batch if that is too much for the loop.

    It yields when the loop should have its turn; the log may be another afterwards.
    """
    from_offset = batches = 0
    candidate = partition.log.candidate(timestamp)
    while candidate is not None:
        if isinstance(candidate, Pause):
            cuts = partition.cuts
            yield
            pause = candidate if partition.cuts == cuts else None
            candidate = partition.log.candidate(timestamp, from_offset, pause)
            continue
        batches += 1
        if batches > _BATCHES_MAX:
            break
        try:
            found = candidate.search(_BATCH_BYTES_MAX)
        except UnreadableBatchError:
            break
        if found is not None:
            return found.offset
        from_offset = candidate.end_offset
        candidate = partition.log.candidate(timestamp, from_offset)
    return None if candidate is None else max(candidate.header[0], partition.log.start_offset)


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration as ISO 8601 writes it: days, hours, minutes, seconds."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    fraction = (found.group(5) or "").ljust(3, "0")[:3]
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int(fraction)
