"""The rows of a small micro-batch, written before Spark has called its tasks done, and ended only when it has.

Between the end of a task and `commit` lie some milliseconds in which Spark counts. The process that has committed the
batch before still has its producer (`session`): a task tells it by a letter what it has encoded, and it opens the
transaction and writes meanwhile. What is left for `commit` is the end.

E1  `commit` alone ends a transaction, and only if the rows in it are those of the attempts that Spark has accepted, of
    all of them and of no other. Else it is aborted and the batch is written anew, from the messages, which have it all.
E2  Only a batch that follows the one that was ended last is begun: nobody else can have written it (V1).
E3  Rows are in the order of their tasks, as they are when `commit` writes them: those of a task wait for all before it.
E4  What nobody has asked for after a while is aborted, so that readers do not wait for it.
E5  No task waits for it, and whatever goes wrong with it is left to `commit`, which begins again and meets it there.
E6  A batch that turns out to be large, or to have other attempts, is written twice. The next few are not begun early.
"""

import asyncio
import hashlib
import json
import struct
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from ottla.client.errors import ClientError
from ottla.client.producer.batch import EncodedRecords
from ottla.client.shared_task import start_shared
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


def tell(name: str, marker: Marker, part: int, token: str, spool: Spool) -> None:
    """Tell whoever will commit a batch what a task has for it, or that it is much; `token` is this attempt's alone."""
    path = box_of(name)
    if path is None:
        return
    few = spool.file is None and sum(len(each.filled.buffer) for each in spool.sealed) <= _BYTES_MAX
    sealed = spool.sealed if few else []
    heads = [
        [each.topic, each.partition, len(each.filled.buffer), *each.filled[1:4], each.filled.codec.value]
        for each in sealed
    ]
    head = json.dumps([str(marker), part, token, heads if few else None]).encode()
    post(path, b"".join([_HEAD.pack(len(head)), head, *(each.filled.buffer for each in sealed)]))


class Told(NamedTuple):
    """What a task has told: of which batch it is which part, its token, and its rows, unless they are too many."""

    marker: Marker
    part: int
    token: str
    batches: list[Sealed] | None
    size: int


def read(letter: bytes) -> Told | None:
    """Return what a letter says; None if it is not one of ours."""
    try:
        (size,) = _HEAD.unpack_from(letter)
        place = _HEAD.size + size
        mark, part, token, heads = json.loads(letter[_HEAD.size : place])
        batches = []
        for topic, partition, length, count, first_time, last_time, codec in heads or ():
            buffer = bytearray(letter[place : place + length])
            filled = EncodedRecords(buffer, count, first_time, last_time, Codec(codec))
            batches.append(Sealed(topic, partition, filled))
            place += length
    except (ValueError, TypeError, struct.error):
        return None
    marker = Marker.parse(mark)
    if marker is None or place != len(letter):
        return None
    return Told(marker, part, token, None if heads is None else batches, place - _HEAD.size - size)


class Early:
    """The transaction of the batch that comes next, as far as tasks have told of it; every call is made on the loop."""

    def __init__(
        self, carrier: Carrier, connection: Connection, name: str, marker: Marker, checkpoint: str | None
    ) -> None:
        self.marker = marker
        self.source: Ends = {}
        self.is_begun = False
        self._carrier, self._connection, self._name, self._checkpoint = carrier, connection, name, checkpoint
        self._told: dict[int, Told] = {}
        self._next = 0  # the first part that is not written
        self._size = 0
        self._is_spoilt = False
        self._queue: list[Sealed] = []
        self._rows: asyncio.Task[Ends] | None = None
        self._work: list[asyncio.Task[Ends]] = []
        self._abort: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def take(self, told: Told) -> None:
        """Take in what a task has told, and write what may be written by now."""
        self._size += told.size
        if told.batches is None or told.part in self._told or self._size > _BYTES_MAX:
            self._spoil()
        if self._is_spoilt:
            return
        self._told[told.part] = told
        while (due := self._told.get(self._next)) is not None:
            if due.batches:
                self._begin()
                self._queue += due.batches
            self._next += 1
        # One after another: whoever waits for news of a topic must not be overtaken.
        if self._queue and (self._rows is None or self._rows.done()):
            self._rows = start_shared(self._write())
            self._work.append(self._rows)

    def has(self, marker: Marker | None, tokens: Collection[str]) -> bool:
        """Whether the rows of these attempts are in it, of all of them and of no other (E1)."""
        return (
            self.is_begun
            and not self._is_spoilt
            and self.marker == marker
            and self._next == len(tokens) == len(self._told)
            and {each.token for each in self._told.values()} == set(tokens)
        )

    def _begin(self) -> None:
        if not self.is_begun:
            self._carrier.transactor.begin()
            self.is_begun = True
            self._work.append(start_shared(self._commit_offsets()))
            self._timer = asyncio.get_running_loop().call_later(_PATIENCE_S, self._spoil)

    def _spoil(self) -> None:
        self._is_spoilt = True
        if self.is_begun and self._abort is None:
            self._abort = start_shared(self._end())

    async def settled(self) -> Ends:
        """Wait until everything is written; return where the rows end, or raise what went wrong first."""
        self._cancel_timer()
        await asyncio.wait(self._work)
        ends: Ends = {}
        for each in self._work:
            for place, end in each.result().items():
                ends[place] = max(ends.get(place, 0), end)
        return ends

    async def undo(self) -> None:
        """Abort it, unless that was done; ClientError when that fails."""
        self._cancel_timer()
        self._spoil()
        if self._abort is not None:
            await asyncio.wait([self._abort])
            self._abort.result()

    async def drop(self) -> None:
        """Abort it; if that fails, the next beginning or the time does it."""
        with suppress(ClientError):
            await self.undo()

    def forsake(self) -> None:
        """Wait for nothing any more: its carrier is closed."""
        self._cancel_timer()
        for task in (*self._work, *filter(None, (self._abort,))):
            task.cancel()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def _end(self) -> None:
        await asyncio.wait(self._work)
        await self._carrier.transactor.abort()

    async def _write(self) -> Ends:
        ends: Ends = {}
        while self._queue:
            batches, self._queue = self._queue, []
            ends |= await self._carrier.carry(batches)
        return ends

    async def _commit_offsets(self) -> Ends:
        """Put the marker on the offsets of the source, where they are known already."""
        if self._checkpoint is not None:
            found = source_offsets(RealDisk(), self._checkpoint, self.marker.batch_id)
            self.source = await here(self._connection.cluster, found)
            if self.source:
                await self._carrier.offsets(self._name, marked(self.marker, self.source))
        return {}
