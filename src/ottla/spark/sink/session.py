"""Carriers that go on from one micro-batch to the next, in a driver's process that commits them all.

Whoever has begun with a transactional id, and was not fenced since, need not begin again nor ask the marker: nobody
else can have written in that name. That spares most of the questions of a commit. A process of Spark's may also be one
of several that commit for a query, taking turns; each then finds itself fenced by the one before.

V1  A carrier that is kept has no open transaction, and knows which batch it was that it has ended last.
V2  It is taken out to be used, and kept again only after it has ended well.
V3  A name under which a kept carrier was found fenced is not kept for a while: it would be fenced again.
"""

from collections import OrderedDict
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ottla.client.settings.resolve import Settings
from ottla.spark.connection import Connection
from ottla.spark.sink.carrier import Carrier
from ottla.spark.sink.marker import Marker

_KEPT_MAX = 8
_TURNS_WITHOUT = 20

Key = tuple[object, ...]


class Kept(NamedTuple):
    """A carrier between two batches."""

    carrier: Carrier
    last: Marker


class Sessions:
    """The carriers that one connection keeps; every call is made on the loop."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self._shared: dict[Key, int] = {}

    async def take(self, settings: Settings, marker: Marker | None) -> Carrier | None:
        """Return a carrier that may go on with this batch, if one is kept."""
        kept = self._kept.pop(_key(settings), None)
        if kept is None:
            return None
        if marker is not None and kept.last.precedes(marker):
            return kept.carrier
        await kept.carrier.close()
        return None

    async def keep(self, settings: Settings, carrier: Carrier, last: Marker | None) -> None:
        """Keep a carrier that has ended a batch, or close it."""
        key = _key(settings)
        turns = self._shared.get(key, 0)
        if last is None or turns:
            if turns:
                self._shared[key] = turns - 1
            await carrier.close()
            return
        self._kept[key] = Kept(carrier, last)
        while len(self._kept) > _KEPT_MAX:
            _, oldest = self._kept.popitem(last=False)
            await oldest.carrier.close()

    def is_shared(self, settings: Settings) -> None:
        """Take in that another process writes in the same name."""
        self._shared[_key(settings)] = _TURNS_WITHOUT


_sessions: "WeakKeyDictionary[Connection, Sessions]" = WeakKeyDictionary()


def sessions_of(connection: Connection) -> Sessions:
    """Return what a connection keeps."""
    found = _sessions.get(connection)
    if found is None:
        found = _sessions[connection] = Sessions()
    return found


def _key(settings: Settings) -> Key:
    return tuple(sorted((name, repr(settings[name])) for name in settings.given))
