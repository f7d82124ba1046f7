"""Which carriers are kept from one batch to the next, and for which."""

import asyncio
from typing import Any

from ottla.client.settings import resolve
from ottla.spark.sink.marker import Marker
from ottla.spark.sink.session import Sessions


class Carrier:
    """As much of one as is asked for."""

    closed = False

    async def close(self) -> None:
        self.closed = True


class Connection:
    """As much of one."""


HERE: Any = Connection()


def settings(name: str) -> Any:
    return resolve("producer", "localhost:9092", {"transactional.id": name})


def test_the_next_batch() -> None:
    async def test() -> None:
        sessions, carrier = Sessions(HERE), Carrier()
        assert await sessions.take(settings("a"), Marker("q", 0)) is None
        await sessions.keep(settings("a"), carrier, Marker("q", 0), None)  # type: ignore[arg-type]
        assert await sessions.take(settings("b"), Marker("q", 1)) is None
        kept = await sessions.take(settings("a"), Marker("q", 1))
        assert kept is not None and kept.carrier is carrier and kept.early is None
        assert not carrier.closed
        assert await sessions.take(settings("a"), Marker("q", 1)) is None, "it is in use"

    asyncio.run(test())


def test_batches_that_do_not_follow() -> None:
    async def test() -> None:
        for marker in (None, Marker("q", 3), Marker("q", 2), Marker("other", 4)):
            sessions, carrier = Sessions(HERE), Carrier()
            await sessions.keep(settings("a"), carrier, Marker("q", 3), None)  # type: ignore[arg-type]
            assert await sessions.take(settings("a"), marker) is None
            assert carrier.closed

    asyncio.run(test())


def test_what_has_no_marker_is_not_kept() -> None:
    async def test() -> None:
        sessions, carrier = Sessions(HERE), Carrier()
        await sessions.keep(settings("a"), carrier, None, None)  # type: ignore[arg-type]
        assert carrier.closed

    asyncio.run(test())


def test_no_more_than_a_few() -> None:
    async def test() -> None:
        sessions, carriers = Sessions(HERE), [Carrier() for _ in range(10)]
        for number, carrier in enumerate(carriers):
            await sessions.keep(settings(f"{number}"), carrier, Marker("q", 0), None)  # type: ignore[arg-type]
        assert [carrier.closed for carrier in carriers] == [True] * 2 + [False] * 8

    asyncio.run(test())


def test_a_name_that_others_use_is_not_kept_for_a_while() -> None:
    async def test() -> None:
        sessions = Sessions(HERE)
        sessions.is_shared(settings("a"))
        turns = 0
        while True:
            carrier = Carrier()
            await sessions.keep(settings("a"), carrier, Marker("q", turns), None)  # type: ignore[arg-type]
            if not carrier.closed:
                break
            turns += 1
        assert turns == 20

    asyncio.run(test())
