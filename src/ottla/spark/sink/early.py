"""The rows of a small micro-batch, written before Spark has called its tasks done, and ended only when it has.

Between the end of a task and `commit` lie some milliseconds in which Spark counts. The process that has committed the
batch before still has its producer (`session`): a task tells it by a letter what it has encoded, and it opens the
transaction and writes meanwhile. What is left for `commit` is the end.

E1  `commit` alone ends a transaction, and only if the rows in it are those of the attempts that Spark has accepted, of
    all of them and of no other. Else it is aborted and the batch is written anew, from the messages, which have it all.
E2  Only a batch that follows the one that was ended last is begun: nobody else can have written it (V1).
E3  What nobody has asked for after a while is aborted, so that readers do not wait for it.
E4  No task waits for it, and whatever goes wrong with it is left to `commit`, which begins again and meets it there.
"""

import asyncio
import hashlib
import json
import struct
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import NamedTuple

from ottla.client.errors import ClientError
from ottla.client.joint import begin
from ottla.client.producer.batch import Filled
from ottla.spark.connection import Connection
from ottla.spark.sink.carrier import Carrier, Ends
from ottla.spark.sink.checkpoint import here, source_offsets
from ottla.spark.sink.encoding import Sealed
from ottla.spark.sink.marker import Marker, marked
from ottla.spark.sink.spool import Spool, local_directory
from ottla.wire.compression import Codec
from ottla.world.disk import RealDisk
from ottla.world.mailbox import post

_BYTES_MAX = 64 << 10
_PATIENCE_S = 1.0
_HEAD = struct.Struct(">I")


def box_of(name: str) -> str | None:
    """Where the process is told that commits under a transactional id; None where tasks cannot reach it."""
    local = local_directory()
    return None if local is None else f"{local}/.{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}"


def tell(name: str, marker: Marker, token: str, spool: Spool) -> None:
    """Tell whoever will commit a batch what a task has for it, if that is little; `token` is this attempt's alone."""
    path = box_of(name)
    size = sum(len(each.filled.buffer) for each in spool.sealed)
    if path is None or spool.file is not None or not 0 < size <= _BYTES_MAX:
        return
    heads = [
        [each.topic, each.partition, len(each.filled.buffer), *each.filled[1:4], each.filled.codec.value]
        for each in spool.sealed
    ]
    head = json.dumps([str(marker), token, heads]).encode()
    post(path, b"".join([_HEAD.pack(len(head)), head, *(each.filled.buffer for each in spool.sealed)]))


class Told(NamedTuple):
    """What a task has told: which batch it is of, its token, and its rows."""

    marker: Marker
    token: str
    batches: list[Sealed]


def read(letter: bytes) -> Told | None:
    """Return what a letter says; None if it is not one of ours."""
    try:
        (size,) = _HEAD.unpack_from(letter)
        place = _HEAD.size + size
        mark, token, heads = json.loads(letter[_HEAD.size : place])
        batches = []
        for topic, partition, length, count, first_time, last_time, codec in heads:
            buffer = bytearray(letter[place : place + length])
            filled = Filled(buffer, count, first_time, last_time, Codec(codec))
            batches.append(Sealed(topic, partition, filled))
            place += length
    except (ValueError, TypeError, struct.error):
        return None
    marker = Marker.parse(mark)
    return None if marker is None or place != len(letter) else Told(marker, token, batches)


class Early:
    """The transaction of the batch that comes next, as far as tasks have told of it; every call is made on the loop."""

    def __init__(
        self, carrier: Carrier, connection: Connection, name: str, marker: Marker, checkpoint: str | None
    ) -> None:
        self.marker = marker
        self.source: Ends = {}
        self._carrier, self._connection, self._name, self._checkpoint = carrier, connection, name, checkpoint
        self._tokens: set[str] = set()
        self._rows: list[asyncio.Task[Ends]] = []
        self._abort: asyncio.Task[None] | None = None
        carrier.transactor.begin()
        self._mark = begin(self._commit_offsets())
        self._timer = asyncio.get_running_loop().call_later(_PATIENCE_S, self._expire)

    def take(self, token: str, batches: Iterable[Sealed]) -> None:
        """Write the rows of a task."""
        if self._abort is None:
            self._tokens.add(token)
            self._rows.append(begin(self._carrier.carry(batches)))

    def has(self, marker: Marker | None, tokens: Collection[str]) -> bool:
        """Whether these attempts' rows are in it, all of them and nothing else (E1)."""
        return (
            self._abort is None
            and self.marker == marker
            and len(self._rows) == len(tokens)
            and self._tokens == set(tokens)
        )

    async def settled(self) -> Ends:
        """Wait until everything is written; return where the rows end, or raise what went wrong first."""
        self._timer.cancel()
        await asyncio.wait([self._mark, *self._rows])
        self._mark.result()
        ends: Ends = {}
        for each in self._rows:
            for place, end in each.result().items():
                ends[place] = max(ends.get(place, 0), end)
        return ends

    async def undo(self) -> None:
        """Abort it, unless that was done; ClientError when that fails."""
        self._timer.cancel()
        if self._abort is None:
            self._abort = begin(self._end())
        await asyncio.wait([self._abort])
        self._abort.result()

    async def drop(self) -> None:
        """Abort it; if that fails, the next beginning or the time does it."""
        with suppress(ClientError):
            await self.undo()

    def forsake(self) -> None:
        """Wait for nothing any more: its carrier is closed."""
        self._timer.cancel()
        for task in (self._mark, *self._rows, *filter(None, (self._abort,))):
            task.cancel()

    def _expire(self) -> None:
        if self._abort is None:
            self._abort = begin(self._end())

    async def _end(self) -> None:
        await asyncio.wait([self._mark, *self._rows])
        await self._carrier.transactor.abort()

    async def _commit_offsets(self) -> None:
        """Put the marker on the offsets of the source, where they are known already."""
        if self._checkpoint is None:
            return
        found = source_offsets(RealDisk(), self._checkpoint, self.marker.batch_id)
        self.source = await here(self._connection.cluster, found)
        if self.source:
            await self._carrier.offsets(self._name, marked(self.marker, self.source))
