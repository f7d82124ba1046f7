"""Carriers that go on from one micro-batch to the next, in a driver's process that commits them all.

Whoever has begun with a transactional id, and was not fenced since, need not begin again nor ask the marker: nobody
else can have written in that name. That spares most of the questions of a commit. A process of Spark's may also be one
of several that commit for a query, taking turns; each then finds itself fenced by the one before.

V1  A carrier that is kept knows which batch it has ended last, and has no open transaction but the next one's (V4).
V2  It is taken out to be used, and kept again only after it has ended well.
V3  A name under which a kept carrier was found fenced is not kept for a while: it would be fenced again.
V4  Of the batch that comes next it may have begun the transaction, if tasks have told of it (`early`).
"""

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary, ref

from ottla.client.errors import ClientError
from ottla.client.settings.resolve import ClientSettings
from ottla.spark.connection import Connection
from ottla.spark.sink.carrier import Carrier
from ottla.spark.sink.early import Early, box_of, read
from ottla.spark.sink.marker import Marker
from ottla.world.mailbox import Box

_KEPT_MAX = 8
_TURNS_WITHOUT = 20
_TURNS_LATE = 20
_WITHDRAWAL_S = 5.0

Key = tuple[object, ...]


@dataclass(slots=True)
class Kept:
    """A carrier between two batches."""

    carrier: Carrier
    name: str
    last: Marker
    checkpoint: str | None
    early: Early | None = None

    async def close(self) -> None:
        """End everything; what is left open the next beginning aborts, or the time."""
        if self.early is not None:
            self.early.forsake()
        await self.carrier.close()


class Sessions:
    """The carriers that one connection keeps; every call is made on the loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = ref(connection)
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self._boxes: dict[Key, Box] = {}
        self._shared: dict[Key, int] = {}
        self._late: dict[Key, int] = {}

    async def take(self, settings: ClientSettings, marker: Marker | None) -> Kept | None:
        """Return a carrier that may go on with this batch, if one is kept."""
        kept = self._kept.pop(_key(settings), None)
        if kept is None:
            return None
        if marker is not None and kept.last.precedes(marker):
            return kept
        await kept.close()
        return None

    async def keep(
        self, settings: ClientSettings, carrier: Carrier, last: Marker | None, checkpoint: str | None
    ) -> None:
        """Keep a carrier that has ended a batch, or close it."""
        key = _key(settings)
        turns = self._shared.get(key, 0)
        if last is None or turns:
            if turns:
                self._shared[key] = turns - 1
            await carrier.close()
            return
        name = str(settings["transactional.id"])
        self._late[key] = max(self._late.get(key, 0) - 1, 0)
        self._kept[key] = Kept(carrier, name, last, checkpoint)
        await self._listen(key, name)
        while len(self._kept) > _KEPT_MAX:
            key, oldest = self._kept.popitem(last=False)
            if key in self._boxes:
                self._boxes.pop(key).take_down()
            if oldest.early is not None:
                await oldest.early.drop()
            await oldest.close()

    def is_shared(self, settings: ClientSettings) -> None:
        """Take in that another process writes in the same name."""
        self._shared[_key(settings)] = _TURNS_WITHOUT

    def was_in_vain(self, settings: ClientSettings) -> None:
        """Take in that a batch was begun early and had to be undone (E6)."""
        self._late[_key(settings)] = _TURNS_LATE

    async def withdraw(self, settings: ClientSettings) -> None:
        """Abort what was begun early under a name: its batch has failed."""
        key = _key(settings)
        kept = self._kept.get(key)
        if kept is None or kept.early is None:
            return
        try:
            async with asyncio.timeout(_WITHDRAWAL_S):
                await kept.early.undo()
        except TimeoutError:
            return  # it goes on, and whoever commits next waits for it
        except ClientError:
            if self._kept.pop(key, None) is kept:
                await kept.close()
        else:
            kept.early = None

    async def _listen(self, key: Key, name: str) -> None:
        box, path = self._boxes.get(key), box_of(name)
        if path is None or (box is not None and box.is_there):
            return
        if box is not None:
            self._boxes.pop(key).take_down()
        put_up = await Box.put_up(path, lambda letter: self._told(key, letter))
        if put_up is not None:
            self._boxes[key] = put_up

    def _told(self, key: Key, letter: bytes) -> None:
        """A task has told of its rows."""
        kept, connection = self._kept.get(key), self._connection()
        if kept is None or connection is None:
            return
        told = read(letter)
        if told is None or not kept.last.precedes(told.marker) or self._late.get(key):
            return
        early = kept.early
        if early is None or (early.marker != told.marker and not early.is_begun):
            early = Early(kept.carrier, connection, kept.name, told.marker, kept.checkpoint)
            kept.early = early
        if early.marker == told.marker:
            with suppress(ClientError):  # it cannot go on; `commit` finds out why
                early.take(told)


_sessions: "WeakKeyDictionary[Connection, Sessions]" = WeakKeyDictionary()


def sessions_of(connection: Connection) -> Sessions:
    """Return what a connection keeps."""
    found = _sessions.get(connection)
    if found is None:
        found = _sessions[connection] = Sessions(connection)
    return found


def _key(settings: ClientSettings) -> Key:
    return tuple(sorted((name, repr(settings[name])) for name in settings.given))
