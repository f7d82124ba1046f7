"""Reads what a task was told to read: takes what was fetched, and makes rows of it while more is on its way."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ottla.client.consumer.arrow_records import BYTES_MAX
from ottla.client.consumer.fetched_batches import FetchedBatches, ReadableBatches, read_batches
from ottla.client.errors import RecordTooLarge
from ottla.spark.connection import connected
from ottla.spark.source.feed import Feed
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.table import Table
from ottla.spark.source.task import Portion, Task
from ottla.wire.batch import Batch
from ottla.wire.columns import decode_columns, decode_headers
from ottla.wire.compression import Buffer
from ottla.wire.errors import ProtocolError

# So much of a portion is opened at once: what is compressed may hold many times its size, and less fits caches better.
_OPEN_BYTES_MAX = 2 << 20
# So many small ranges are asked for at once.
_AHEAD = 8


def read(options: SourceOptions, *tasks: Task) -> Iterator[pa.RecordBatch]:
    """Return the records of some ranges, of each in their order; the next few are fetched meanwhile."""
    table = Table(options.columns)
    for task in tasks:
        for portion in task.portions:
            yield from rows_of(portion, table, task.end)
    yield from _fetched(options, table, [each for each in tasks if not each.portions])


def _fetched(options: SourceOptions, table: Table, tasks: Sequence[Task]) -> Iterator[pa.RecordBatch]:
    if not tasks:
        return
    connection = connected(options.settings)
    feeds = [(Feed(connection, options, each), each.end) for each in tasks]
    started: list[Feed] = []
    try:
        for number, (feed, end) in enumerate(feeds):
            for each, _ in feeds[len(started) : number + _AHEAD]:
                started.append(each)
                connection.call(each.start)
            while (portion := feed.portions.get()) is not None:
                if isinstance(portion, Exception):
                    raise portion
                yield from rows_of(portion, table, end)
                del portion  # its buffer is used again once nobody has it
                connection.call(feed.took)
    finally:
        for each in started:
            connection.call(each.stop)


def rows_of(portion: Portion, table: Table, end: int) -> Iterator[pa.RecordBatch]:
    """Return the rows of a portion before an offset; raises what is wrong with a batch, after the rows before it."""
    chunk = portion.chunk
    while True:
        contents = _opened(chunk)
        rows = _tabled(contents, table, end)
        if rows is not None and rows.num_rows:
            yield rows
        next_offset = contents.next_offset
        if contents.fault is not None:
            if next_offset < end:
                raise contents.fault
            return
        if next_offset >= min(portion.end_offset, end) or next_offset <= chunk.start_offset:
            return
        chunk = chunk._replace(start_offset=next_offset)


def _opened(chunk: FetchedBatches) -> ReadableBatches:
    contents = read_batches(chunk, _OPEN_BYTES_MAX)
    if isinstance(contents.fault, RecordTooLarge) and not contents.batches:
        return read_batches(chunk, BYTES_MAX, 1)
    return contents


def _tabled(contents: ReadableBatches, table: Table, end: int) -> pa.RecordBatch | None:
    if not contents.batches:
        return None
    try:
        return table.rows(contents, end)
    except ProtocolError:
        contents.keep_readable(_prove)
        return table.rows(contents, end) if contents.batches else None


def _prove(batch: Batch, body: Buffer) -> None:
    decode_headers(decode_columns([batch], [body]))
