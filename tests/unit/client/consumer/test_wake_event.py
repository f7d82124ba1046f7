"""Waiting for news."""

import asyncio

from ottla.client.consumer.wake_event import WakeEvent


def test_heard_when_rung():
    async def main():
        wake_event = WakeEvent()
        waiting = asyncio.create_task(wake_event.wait(10))
        await asyncio.sleep(0)
        wake_event.set()
        wake_event.set()
        assert await waiting
        assert not await wake_event.wait(0)

    asyncio.run(main())


def test_rung_before_anybody_waits_is_heard_once():
    async def main():
        wake_event = WakeEvent()
        wake_event.set()
        wake_event.set()
        assert await wake_event.wait(10)
        assert not await wake_event.wait(0.001)

    asyncio.run(main())


def test_all_who_wait_hear_it():
    async def main():
        wake_event = WakeEvent()
        waiting = [asyncio.create_task(wake_event.wait(10)) for _ in range(3)]
        await asyncio.sleep(0)
        wake_event.set()
        assert await asyncio.gather(*waiting) == [True, True, True]

    asyncio.run(main())


def test_who_was_cancelled_is_forgotten():
    async def main():
        wake_event = WakeEvent()
        waiting = asyncio.create_task(wake_event.wait(10))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        wake_event.set()
        assert await wake_event.wait(10)

    asyncio.run(main())
