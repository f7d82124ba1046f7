"""The admin client when brokers die, are slow, or are not there."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from ottla.client.admin import Admin, OffsetSpec
from ottla.client.errors import ClientError, NoBroker, Refused, TimedOut
from ottla.client.record import TopicPartition
from tests.peers.server import Server, free_ports


def test_a_call_outlives_a_restart(mortal: Server, topic_name: str, run: Callable[..., None]) -> None:
    key = TopicPartition(topic_name, 0)

    async def main() -> None:
        async with Admin(mortal.bootstrap) as admin:
            await admin.topics.create(topic_name, partitions=1)
            await admin.offsets.alter(topic_name, {key: 3})
            # Apache Kafka lets nobody take the place of a killed broker before its session is over.
            mortal.stop() if mortal.name == "kafka" else mortal.kill()
            calls = [
                asyncio.create_task(admin.offsets.list({key: OffsetSpec.LATEST})),
                asyncio.create_task(admin.offsets.committed(topic_name)),
                asyncio.create_task(admin.groups.list()),
                asyncio.create_task(admin.cluster.describe()),
            ]
            await asyncio.to_thread(mortal.start)
            listed, committed, groups, cluster = await asyncio.gather(*calls)
            assert listed[key].offset == 0
            assert committed[key].offset == 3
            assert topic_name in groups
            assert cluster.id == mortal.cluster_id

    run(main())


def test_time_is_up_when_nobody_answers(mortal: Server, run: Callable[..., None]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with Admin(mortal.bootstrap, request_timeout_ms=200) as admin:
            os.kill(mortal.pid, signal.SIGSTOP)
            try:
                begun = loop.time()
                with pytest.raises(TimedOut) as caught:
                    await admin.topics.list(timeout=0.7)
                assert 0.6 < loop.time() - begun < 3
                assert caught.value.retriable and "within 0.7 s" in str(caught.value)
            finally:
                os.kill(mortal.pid, signal.SIGCONT)
            assert isinstance(await admin.topics.list(), dict)

    run(main())


def test_nobody_is_there(run: Callable[..., None]) -> None:
    [port] = free_ports(1)

    async def main() -> None:
        with pytest.raises(NoBroker) as caught:
            async with Admin(f"127.0.0.1:{port}", default_api_timeout_ms=300, request_timeout_ms=300):
                pass
        assert f"127.0.0.1:{port}" in str(caught.value) and "hint:" in str(caught.value)

    run(main())


def test_a_call_may_be_given_up(mortal: Server, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(mortal.bootstrap) as admin:
            os.kill(mortal.pid, signal.SIGSTOP)
            try:
                calls = [
                    asyncio.create_task(admin.groups.list()),
                    asyncio.create_task(admin.topics.describe(["a", "b"])),
                ]
                await asyncio.sleep(0.05)
                for call in calls:
                    call.cancel()
                outcomes = await asyncio.gather(*calls, return_exceptions=True)
                assert all(isinstance(each, asyncio.CancelledError) for each in outcomes)
            finally:
                os.kill(mortal.pid, signal.SIGCONT)

    run(main())


def test_a_closed_client_answers_nobody(bootstrap: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        admin = Admin(bootstrap)
        await admin.open()
        call = asyncio.create_task(admin.topics.list())
        await asyncio.sleep(0)
        await admin.close()
        with pytest.raises(ClientError):
            await call
        with pytest.raises(ClientError, match="closed"):
            await admin.topics.list()

    run(main())


def test_tries_are_counted(bootstrap: str, topic_name: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with Admin(bootstrap, retries=1) as admin:
            begun = loop.time()
            with pytest.raises(Refused):
                await admin.offsets.list({TopicPartition(topic_name, 0): OffsetSpec.LATEST})
            assert loop.time() - begun < 1

    run(main())


def test_another_loop_does_as_well(bootstrap: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            assert (await admin.cluster.describe()).controller == 1

    run(main(), uvloop=True)
