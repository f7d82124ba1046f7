"""The world that simulated clusters live in: time, processes, connections and disks behave as the real ones do."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.sim.cluster.clock import SimClock
from ottla.sim.cluster.disk import SimDisk
from ottla.sim.cluster.fabric import Fabric
from ottla.sim.cluster.network import SimNetwork
from ottla.sim.cluster.worker import SimWorker
from ottla.sim.loop import Process, Timeline
from ottla.sim.violation import Stuck
from ottla.world.entropy import SeededEntropy


class Stage:
    """A timeline and its network, with a process on each of two hosts."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.fabric = Fabric(self.timeline, SeededEntropy(1))
        self.here, self.there = Process(self.timeline, "here"), Process(self.timeline, "there")
        self.server = Server()

    def run(self, work: Coroutine[Any, Any, Any], process: Process | None = None, seconds: float = 60) -> Any:
        task = (process or self.here).create_task(work)
        self.timeline.run(task.done, seconds, 100_000)
        return task.result()

    def let_pass(self, seconds: float) -> None:
        end = self.timeline.now + seconds
        self.fabric.wire.call_at(end, lambda: None)
        self.timeline.run(lambda: self.timeline.now >= end, seconds + 1, 100_000)

    def connect(self) -> "Client":
        async def connect() -> Client:
            listening = await SimNetwork(self.fabric, self.there, "b").listen("b", 1, lambda: self.server)
            await listening.serve()
            return await SimNetwork(self.fabric, self.here, "a").connect("b", 1, Client)

        made: Client = self.run(connect())
        self.let_pass(0.1)
        return made


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.heard, self.lost = b"", None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = exc or "closed"


class Server(Client):
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.transport.write(data.upper())


@pytest.fixture
def stage() -> Stage:
    return Stage()


# Time


def test_nobody_sleeps_and_time_passes(stage: Stage) -> None:
    order = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        order.append((name, stage.timeline.now))

    async def both() -> None:
        await asyncio.gather(wait("late", 3600), wait("soon", 1))
        async with asyncio.timeout(5):
            await asyncio.wait_for(asyncio.sleep(1), 2)

    stage.run(both(), seconds=4000)
    assert order == [("soon", 1.0), ("late", 3600.0)]
    assert stage.timeline.now == 3601.0


def test_what_does_not_come_to_an_end_is_stuck(stage: Stage) -> None:
    async def for_ever() -> None:
        while stage.here.time() < 1:  # noqa: ASYNC110  # which it never is not
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="calls were not enough"):
        stage.run(for_ever())
    with pytest.raises(Stuck, match="nothing is left"):
        Timeline().run(lambda: False, 1, 10)


def test_a_stopped_process_takes_up_what_fell_due(stage: Stage) -> None:
    rung: list[tuple[str, float]] = []
    for name, moment in (("first", 1.0), ("second", 2.0), ("third", 9.0)):
        stage.there.call_at(moment, lambda name=name: rung.append((name, stage.timeline.now)))
    stage.there.pause()
    stage.let_pass(5)
    assert rung == []
    stage.there.go_on()
    stage.let_pass(5)
    assert rung == [("first", 5.0), ("second", 5.0), ("third", 9.0)]


def test_a_dead_process_does_nothing_any_more(stage: Stage) -> None:
    done: list[str] = []

    async def live() -> None:
        try:
            await asyncio.sleep(10)
            done.append("slept")
        finally:
            asyncio.get_running_loop().call_soon(done.append, "called")
            await asyncio.sleep(1)
            done.append("waited")

    task = stage.there.create_task(live())
    stage.there.call_later(2, done.append, "timer")
    stage.let_pass(1)
    stage.there.die()
    stage.let_pass(30)
    assert done == []
    assert task.get_coro().cr_frame is None


def test_an_exception_that_nobody_catches_is_noted(stage: Stage) -> None:
    stage.there.call_soon(lambda: 1 / 0)
    stage.let_pass(1)
    assert "ZeroDivisionError" in stage.there.faults[0]


def test_work_of_a_thread_happens_in_order_and_takes_time(stage: Stage) -> None:
    told: list[Any] = []
    worker = SimWorker(stage.here, SeededEntropy(1), lambda: (1.0, 1.0))
    for number in (1, 2):
        worker.run(
            lambda number=number: number, lambda result, error: told.append((result, stage.timeline.now))
        )
    worker.run(lambda: 1 / 0, lambda result, error: told.append(type(error)))
    stage.let_pass(2.2)
    assert told == [(1, 1.0), (2, 2.0)]
    worker.stop()
    stage.let_pass(0.01)
    assert told[-1] is ZeroDivisionError


# Connections


def test_bytes_arrive_in_order_whatever_the_pieces(stage: Stage) -> None:
    stage.fabric.pieces = 0.5
    client = stage.connect()
    for number in range(100):
        client.transport.write(b"%d," % number)
    stage.let_pass(5)
    assert client.heard == b"".join(b"%d," % number for number in range(100))


def test_a_cut_holds_back_one_direction(stage: Stage) -> None:
    client = stage.connect()
    stage.fabric.cut("b", "a")
    client.transport.write(b"word")
    stage.let_pass(5)
    assert (stage.server.heard, client.heard) == (b"word", b"")
    stage.fabric.heal("b", "a")
    stage.let_pass(5)
    assert client.heard == b"WORD"


def test_a_word_of_a_connection_that_was_given_up_may_still_arrive(stage: Stage) -> None:
    client = stage.connect()
    stage.fabric.cut("a", "b")
    client.transport.write(b"late")
    client.transport.abort()
    stage.let_pass(5)
    assert (client.lost, stage.server.heard) == ("closed", b"")
    stage.fabric.heal("a", "b")
    stage.let_pass(5)
    assert stage.server.heard == b"late"
    assert isinstance(stage.server.lost, ConnectionResetError)


def test_a_dead_process_is_a_reset_and_a_machine_without_power_is_silence(stage: Stage) -> None:
    client = stage.connect()
    stage.there.die()
    stage.fabric.process_died(stage.there)
    stage.let_pass(1)
    assert isinstance(client.lost, ConnectionResetError)
    stage.there = Process(stage.timeline, "there/2")
    client = stage.connect()
    stage.fabric.power_lost("b")
    stage.there.die()
    stage.fabric.process_died(stage.there)
    client.transport.write(b"hello?")
    stage.let_pass(60)
    assert client.lost is None
    stage.fabric.power_back("b")
    stage.let_pass(5)
    assert isinstance(client.lost, ConnectionResetError)


def test_a_stopped_process_is_connected_to_all_the_same(stage: Stage) -> None:
    stage.connect()
    stage.there.pause()
    network = SimNetwork(stage.fabric, stage.here, "a")
    client = stage.run(network.connect("b", 1, Client))
    client.transport.write(b"word")
    stage.let_pass(5)
    assert client.heard == b""
    stage.there.go_on()
    stage.let_pass(5)
    assert client.heard == b"WORD"


def test_nobody_there_is_a_refusal(stage: Stage) -> None:
    with pytest.raises(ConnectionRefusedError):
        stage.run(SimNetwork(stage.fabric, stage.here, "a").connect("b", 9, Client))


# Disks


def written(sync: Callable[[SimDisk], None]) -> set[bytes | None]:
    """What there may be of a new file after a power loss, over many seeds."""
    found: set[bytes | None] = set()
    for seed in range(60):
        disk = SimDisk()
        disk.make_dirs("/d")
        disk.sync_filesystem("/")
        disk.open("/d/f").append(b"abcdef")
        sync(disk)
        left = disk.after_power_loss(SeededEntropy(seed))
        found.add(left.read_bytes("/d/f") if left.exists("/d/f") else None)
    return found


def test_what_is_synced_stays_and_the_rest_may_not() -> None:
    def all_of_it(disk: SimDisk) -> None:
        disk.open("/d/f", size=0).sync()
        disk.sync_dir("/d")

    assert written(all_of_it) == {b"abcdef"}
    assert written(lambda disk: disk.open("/d/f", size=0).sync()) == {None, b"abcdef"}
    torn = written(lambda disk: disk.sync_dir("/d"))
    assert None not in torn
    assert {b"", b"abcdef"} < torn
    assert any(each and not b"abcdef".startswith(each) for each in torn)


def test_a_replaced_file_is_the_old_one_or_the_new_one() -> None:
    found = set()
    for seed in range(40):
        disk = SimDisk()
        disk.make_dirs("/d")
        disk.write_atomic("/d/f", b"old")
        disk.sync_filesystem("/")
        file = disk.open("/d/g")
        file.append(b"new")
        file.sync()
        disk.rename("/d/g", "/d/f")
        found.add(disk.after_power_loss(SeededEntropy(seed)).read_bytes("/d/f"))
    assert found == {b"old", b"new"}


def test_a_dead_process_writes_nothing_and_the_next_one_finds_what_was_written() -> None:
    disk = SimDisk()
    file = disk.open("/f")
    file.append(b"before")
    left = disk.after_death()
    with pytest.raises(OSError, match="dead"):
        file.append(b"after")
    assert left.read_bytes("/f") == b"before"


def test_a_full_disk_refuses_what_is_longer_and_leaves_the_file_as_it_was() -> None:
    disk = SimDisk()
    file = disk.open("/f")
    file.append(b"before")
    disk.room_bytes = 3
    with pytest.raises(OSError, match="No space left"):
        file.append(b"more")
    assert (file.size, disk.read_bytes("/f"), disk.free_bytes("/")) == (6, b"before", 3)
    file.write_at(0, b"BEFORE")
    file.append(b"now")
    with pytest.raises(OSError, match="No space left"):
        disk.open("/g")
    disk.room_bytes = None
    file.append(b"more")
    assert disk.read_bytes("/f") == b"BEFOREnowmore"


def test_a_window_holds_back_what_a_slow_reader_does_not_take(stage: Stage) -> None:
    client = stage.connect()
    told: list[str] = []
    client.pause_writing = lambda: told.append("pause")  # type: ignore[attr-defined]
    client.resume_writing = lambda: told.append("resume")  # type: ignore[attr-defined]
    stage.fabric.window_bytes, stage.fabric.read_bytes = 100, 10
    stage.fabric.slow_readers = {"b": None}
    data = bytes(range(250)) * 2
    assert client.transport.push([data[:300]]) == 100
    client.transport.write(data[100:])
    assert (told, client.transport.get_write_buffer_size()) == (["pause"], 400)
    stage.let_pass(0.5)
    assert len(stage.server.heard) < 350
    stage.let_pass(5)
    assert (stage.server.heard, told) == (data, ["pause", "resume"])
    client.transport.write(data)
    client.transport.close()
    stage.let_pass(5)
    assert stage.server.heard == data * 2
    assert stage.server.lost == "closed"


def test_a_wall_clock_that_jumps_measures_as_before() -> None:
    clock = SimClock(Timeline())
    wall, moment = clock.now_ms(), clock.monotonic()
    clock.ahead_ms = -3_600_000
    assert (clock.now_ms() - wall, clock.monotonic() - moment) == (-3_600_000, 0)
