"""The producer when brokers die and lines fail: nothing is lost, doubled or out of order, and everything ends."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.client.errors import BufferFull, ClientError, Closed, Disconnected, NoBroker, TimedOut
from ottla.client.producer import Delivery, Producer
from tests.client.bad_line import BadLine
from tests.client.conftest import BOTH, SETTINGS, create_topic
from tests.client.readback import values
from tests.compat.absence import need_kafka
from tests.compat.chosen import SERVERS
from tests.faults.seeds import seeded
from tests.peers.server import HOST, Server, free_ports

Run = Callable[..., Any]

# Try again soon: the tests are not to wait.
EAGER = {
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 100,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 100,
}


class Rig(NamedTuple):
    """A server of our own, and the line to it."""

    server: Server
    line: BadLine

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.line.port}"

    def topic(self, name: str, partitions: int = 1) -> str:
        return create_topic(self.bootstrap, name, partitions)


@pytest.fixture(scope="module", params=BOTH)
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    if request.param == "kafka":
        need_kafka()
    place: Path = tmp_path_factory.mktemp("mortal")
    (port,) = free_ports(1)
    # A controller that soon believes that a broker has died, and lets it come back.
    mortal = {
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "broker.session.timeout.ms": "1500",
        "broker.heartbeat.interval.ms": "300",
    }
    server = SERVERS[request.param](place, SETTINGS | mortal)
    with server, BadLine(port, server.port) as line:
        yield Rig(server, line)


@pytest.fixture
def rig(running: Rig) -> Iterator[Rig]:
    if running.server.process is None:
        running.server.start()
    yield running
    running.line.heal()


async def outcomes(deliveries: list[Delivery]) -> tuple[list[int], list[ClientError]]:
    """The offsets of those that were written, and the errors of the others."""
    offsets, errors = [], []
    for each in deliveries:
        try:
            offsets.append((await each).offset)
        except ClientError as error:
            errors.append(error)
    return offsets, errors


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_broker_that_dies_and_comes_back(rig: Rig, topic_name: str, run: Run, how: str) -> None:
    if rig.server.name == "kafka" and how == "stop":
        pytest.skip("one restart of Apache Kafka is enough")
    topic = rig.topic(topic_name, 3)
    # Something is under way at any moment.
    rig.line.delay(0.01)

    async def main() -> None:
        async with Producer(rig.bootstrap, batch_size=2000, **EAGER) as producer:
            deliveries: list[Delivery] = []
            stop = asyncio.Event()

            async def write() -> None:
                number = 0
                while not stop.is_set():
                    for _ in range(20):
                        deliveries.append(await producer.send(topic, b"%d" % number, partition=number % 3))
                        number += 1
                    await asyncio.sleep(0.002)

            writing = asyncio.create_task(write())
            await asyncio.sleep(0.5)
            await asyncio.to_thread(getattr(rig.server, how))
            await asyncio.sleep(0.3)
            await asyncio.to_thread(rig.server.start)
            await asyncio.sleep(0.7)
            stop.set()
            await writing
            await producer.flush()
            offsets, errors = await outcomes(deliveries)
            assert not errors
            assert producer.statistics().batches_retried > 0
            written.extend(offsets)

    written: list[int] = []
    run(main())
    for partition in range(3):
        expected = [b"%d" % number for number in range(partition, len(written), 3)]
        assert values(rig.bootstrap, topic, partition) == expected


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_line_that_is_cut_again_and_again(rig: Rig, topic_name: str, run: Run, codec: str) -> None:
    chance = seeded(__file__)
    topic = rig.topic(topic_name, 2)
    rig.line.cut_often(chance, 40_000 if codec == "none" else 15_000)

    async def main() -> Any:
        async with Producer(
            rig.bootstrap, batch_size=1500, linger_ms=1, compression_type=codec, **EAGER
        ) as producer:
            deliveries = []
            for number in range(8000):
                value = b"%d " % number + b"x" * chance.randrange(60)
                deliveries.append(await producer.send(topic, value, partition=number % 2))
                if not number % 50:
                    await asyncio.sleep(0.001)
            await producer.flush()
            offsets, errors = await outcomes(deliveries)
            assert not errors
            rig.line.heal()
            return offsets, producer.statistics()

    cuts = rig.line.cuts
    offsets, counts = run(main())
    assert rig.line.cuts - cuts > 3
    assert counts.batches_retried > 0
    for partition in range(2):
        assert offsets[partition::2] == list(range(4000))
        found = [int((value or b"").split()[0]) for value in values(rig.bootstrap, topic, partition)]
        assert found == list(range(partition, 8000, 2))


def test_answers_that_are_lost(rig: Rig, topic_name: str, run: Run) -> None:
    """The broker has written what it could not say that it has."""
    topic = rig.topic(topic_name)

    async def main() -> None:
        async with Producer(rig.bootstrap, batch_size=500, linger_ms=0, **EAGER) as producer:
            await producer.send_and_wait(topic, b"0")
            for turn in range(5):
                rig.line.eat_answers()
                numbers = range(turn * 100 + 1, turn * 100 + 101)
                deliveries = [await producer.send(topic, b"%d" % number) for number in numbers]
                await asyncio.sleep(0.1)
                assert not deliveries[-1].done()
                rig.line.cut()
                rig.line.heal()
                assert [(await each).offset for each in deliveries] == list(numbers)

    run(main())
    assert values(rig.bootstrap, topic) == [b"%d" % number for number in range(501)]


def test_a_silent_line(rig: Rig, topic_name: str, run: Run) -> None:
    """Requests that are not answered in time are sent again over another connection."""
    topic = rig.topic(topic_name)

    async def main() -> None:
        async with Producer(rig.bootstrap, request_timeout_ms=400, linger_ms=0, **EAGER) as producer:
            await producer.send_and_wait(topic, b"first")
            rig.line.hold()
            deliveries = [await producer.send(topic, b"%d" % number) for number in range(50)]
            await asyncio.sleep(1.0)
            assert not deliveries[0].done()
            rig.line.heal()
            offsets, errors = await outcomes(deliveries)
            assert (offsets, errors) == (list(range(1, 51)), [])
            assert producer.statistics().batches_retried > 0

    run(main())
    assert values(rig.bootstrap, topic) == [b"first", *(b"%d" % number for number in range(50))]


def test_a_slow_line(rig: Rig, topic_name: str, run: Run) -> None:
    topic = rig.topic(topic_name)

    async def main() -> None:
        async with Producer(rig.bootstrap, batch_size=1000, linger_ms=0) as producer:
            await producer.send_and_wait(topic, b"first")
            rig.line.delay(0.05)
            begun = time.monotonic()
            deliveries = [await producer.send(topic, b"x" * 100) for _ in range(200)]
            offsets, errors = await outcomes(deliveries)
            assert (offsets, errors) == (list(range(1, 201)), [])
            counts = producer.statistics()
            assert counts.request_seconds_max >= 0.05
            # Five requests share the way, so it takes far less than one after another would.
            assert time.monotonic() - begun < counts.requests * 0.1

    run(main())


def test_order_without_idempotence(rig: Rig, topic_name: str, run: Run) -> None:
    """With one request in flight a repetition may double a batch, but nothing overtakes it."""
    chance = seeded(__file__)
    topic = rig.topic(topic_name)

    async def main() -> None:
        async with Producer(
            rig.bootstrap,
            enable_idempotence=False,
            max_in_flight_requests_per_connection=1,
            acks=1,
            batch_size=1000,
            **EAGER,
        ) as producer:
            await producer.send_and_wait(topic, b"0")
            rig.line.cut_often(chance, 20_000)
            rig.line.cut()
            for number in range(1, 3000):
                await producer.send(topic, b"%d" % number)
                if not number % 50:
                    await asyncio.sleep(0.001)
            await producer.flush()
            assert producer.statistics().records_failed == 0
            rig.line.heal()

    run(main())
    seen: list[int] = []
    for value in map(int, values(rig.bootstrap, topic)):
        if value > (seen[-1] if seen else -1):
            seen.append(value)
    assert seen == list(range(3000))


def test_records_expire(rig: Rig, topic_name: str, run: Run) -> None:
    topic = rig.topic(topic_name)

    async def main() -> None:
        async with Producer(
            rig.bootstrap, delivery_timeout_ms=600, request_timeout_ms=500, linger_ms=0, **EAGER
        ) as producer:
            await producer.send_and_wait(topic, b"before")
            rig.line.hold()
            begun = time.monotonic()
            lost = [await producer.send(topic, b"lost %d" % number) for number in range(10)]
            offsets, errors = await outcomes(lost)
            assert 0.5 < time.monotonic() - begun < 3
            assert not offsets
            assert all(isinstance(each, TimedOut) and "delivery.timeout.ms" in each.hint for each in errors)
            rig.line.cut()
            rig.line.heal()
            after = [await producer.send(topic, b"after %d" % number) for number in range(10)]
            offsets, errors = await outcomes(after)
            assert not errors
            assert offsets == list(range(offsets[0], offsets[0] + 10))

    run(main())
    found = values(rig.bootstrap, topic)
    assert found[-10:] == [b"after %d" % number for number in range(10)]
    # What was given up may have been written, but not twice.
    assert len(set(found)) == len(found)


def test_room_while_nobody_answers(rig: Rig, topic_name: str, run: Run) -> None:
    topic = rig.topic(topic_name)

    async def main() -> None:
        async with Producer(
            rig.bootstrap, buffer_memory=50_000, max_block_ms=300, batch_size=5000, **EAGER
        ) as producer:
            await producer.send_and_wait(topic, b"before")
            rig.line.hold()
            # A batch that is begun takes five thousand bytes, one that has left as many as it has.
            taken = [await producer.send(topic, b"x" * 4000) for _ in range(10)]
            begun = time.monotonic()
            with pytest.raises(BufferFull):
                await asyncio.gather(*(producer.send(topic, b"x" * 4000) for _ in range(3)))
            assert 0.25 < time.monotonic() - begun < 3
            giving_up = asyncio.create_task(producer.send(topic, b"x" * 4000))
            await asyncio.sleep(0.05)
            assert producer.statistics().waiting == 1
            giving_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await giving_up
            assert producer.statistics().waiting == 0
            waiting = asyncio.create_task(producer.send(topic, b"patient"))
            await asyncio.sleep(0.05)
            rig.line.heal()
            taken.append(await waiting)
            offsets, errors = await outcomes(taken)
            assert (offsets, errors) == (list(range(1, len(taken) + 1)), [])
            assert producer.statistics().buffer_bytes_free == 50_000

    run(main())


def test_closing_in_time(rig: Rig, topic_name: str, run: Run) -> None:
    topic = rig.topic(topic_name)

    async def main() -> None:
        producer = Producer(rig.bootstrap, **EAGER)
        await producer.open()
        await producer.send_and_wait(topic, b"before")
        rig.line.hold()
        deliveries = [await producer.send(topic, b"%d" % number) for number in range(10)]
        flushing = asyncio.create_task(producer.flush())
        await asyncio.sleep(0)
        begun = time.monotonic()
        await producer.close(timeout=0.2)
        assert time.monotonic() - begun < 3
        offsets, errors = await outcomes(deliveries)
        assert not offsets
        assert all(isinstance(each, Closed) for each in errors)
        await flushing

    run(main())


def test_nobody_there(run: Run) -> None:
    (port,) = free_ports(1)

    async def main() -> None:
        begun = time.monotonic()
        with pytest.raises(NoBroker, match=r"bootstrap\.servers"):
            async with Producer(f"{HOST}:{port}", max_block_ms=300):
                pass
        assert time.monotonic() - begun < 5

    run(main())


@pytest.mark.parametrize("fault", ["cut", "restart"])
def test_transactions_over_faults(rig: Rig, topic_name: str, run: Run, fault: str) -> None:
    if rig.server.name == "kafka" and fault == "restart":
        pytest.skip("one restart of Apache Kafka is enough")
    topic = rig.topic(topic_name, 2)

    async def main() -> None:
        async with Producer(
            rig.bootstrap, transactional_id=topic_name, batch_size=300, linger_ms=0, **EAGER
        ) as producer:
            await producer.init_transactions()
            for turn in range(8):
                producer.begin_transaction()
                for number in range(50):
                    await producer.send(topic, b"%d %d" % (turn, number), partition=number % 2)
                if turn == 3 and fault == "restart":
                    await asyncio.to_thread(rig.server.kill)
                    await asyncio.to_thread(rig.server.start)
                elif fault == "cut":
                    await asyncio.sleep(0.002 * turn)
                    rig.line.cut()
                if turn % 3 == 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    run(main())
    kept = [turn for turn in range(8) if turn % 3 != 2]
    for partition in range(2):
        expected = [b"%d %d" % (turn, number) for turn in kept for number in range(partition, 50, 2)]
        assert values(rig.bootstrap, topic, partition, committed=True) == expected


def test_failures_without_retries(rig: Rig, topic_name: str, run: Run) -> None:
    topic = rig.topic(topic_name)

    async def main() -> None:
        async with Producer(rig.bootstrap, retries=0, linger_ms=0, **EAGER) as producer:
            while True:
                # Apache Kafka may refuse the first where it has just begun to lead.
                try:
                    await producer.send_and_wait(topic, b"before")
                    break
                except ClientError:
                    continue
            rig.line.hold()
            delivery = await producer.send(topic, b"lost")
            await asyncio.sleep(0.1)
            rig.line.cut()
            with pytest.raises(Disconnected):
                await delivery
            rig.line.heal()
            await producer.send_and_wait(topic, b"after")

    run(main())
