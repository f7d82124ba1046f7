"""Waiting for news."""

import asyncio

from ottla.client.consumer.bell import Bell


def test_heard_when_rung():
    async def main():
        bell = Bell()
        waiting = asyncio.create_task(bell.heard(10))
        await asyncio.sleep(0)
        bell.ring()
        bell.ring()
        assert await waiting
        assert not await bell.heard(0)

    asyncio.run(main())


def test_rung_before_anybody_waits_is_heard_once():
    async def main():
        bell = Bell()
        bell.ring()
        bell.ring()
        assert await bell.heard(10)
        assert not await bell.heard(0.001)

    asyncio.run(main())


def test_all_who_wait_hear_it():
    async def main():
        bell = Bell()
        waiting = [asyncio.create_task(bell.heard(10)) for _ in range(3)]
        await asyncio.sleep(0)
        bell.ring()
        assert await asyncio.gather(*waiting) == [True, True, True]

    asyncio.run(main())


def test_who_was_cancelled_is_forgotten():
    async def main():
        bell = Bell()
        waiting = asyncio.create_task(bell.heard(10))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        bell.ring()
        assert await bell.heard(10)

    asyncio.run(main())
