"""Moves between directories, and what becomes of them when the power goes or descriptors run out."""

import errno
import os
import resource
from types import SimpleNamespace

import pytest

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.identity import Identity
from ottla.partition.flusher import AckFlusher
from ottla.partition.move import Mover
from ottla.partition.partition import Partition
from ottla.partition.table import PartitionTable
from ottla.sim.cluster.disk import SimDisk
from ottla.world.disk import RealDisk
from ottla.world.entropy import SeededEntropy
from tests.unit.log.workbench import NOW, batch, read_all
from tests.unit.partition.test_flusher import HeldWorker


class NothingLeft(SeededEntropy):
    """Of what was not synced nothing survives."""

    def below(self, bound):
        return 0


class Site:
    """Two directories, a partition in the first, and a mover whose timers and threads work when told."""

    def __init__(self, disk, path):
        self.disk, self.path = disk, path
        self.calls, self.reports, self.moved, self.acknowledged = [], [], [], []
        self.copying, self.syncing = HeldWorker(), HeldWorker()
        self.directories = [self.open(number, fresh=True) for number in (1, 2)]
        later = self.calls.append
        flusher = AckFlusher([self.syncing], later, pytest.fail)
        table = PartitionTable(1, self.directories, flusher, lambda _: {}, lambda: bytes(16))
        log = self.directories[0].create_log("t", 0, bytes(16), LogConfig())
        self.partition = table.partitions["t", 0] = Partition(log, bytes(16), 0, flusher)
        timers = SimpleNamespace(call_later=lambda _, callback: later(callback))
        self.mover = Mover(table, self.copying, timers, lambda *_: self.moved.append(1), self.reports.append)

    def open(self, number, *, fresh=False):
        directory = LogDirectory(f"{self.path}/{number}", self.disk, SeededEntropy(number), self.reports_of)
        if fresh:
            directory.format(Identity("c", 1, bytes(15) + bytes([number])))
        directory.open()
        directory.load(lambda _: LogConfig())
        return directory

    def reports_of(self, text):
        self.reports.append(text)

    def turn(self):
        while self.calls:
            self.calls.pop(0)()

    def produce(self, count):
        for _ in range(count):
            appended = self.partition.append(batch(b"v%d" % self.partition.log.end_offset), NOW)
            offset = appended.base_offset
            self.partition.when_durable(
                appended.end_offset, lambda error, at=offset: self.acknowledged.append((at, error))
            )
        self.turn()
        while self.syncing.jobs:
            self.syncing.finish()
            self.turn()

    def finish(self):
        while self.copying.jobs:
            self.copying.finish()
            self.turn()


def test_retention_that_passes_the_copy_by_while_it_is_synced_costs_no_acknowledged_record():
    disk = SimDisk()
    disk.make_dirs("/d")
    site = Site(disk, "/d")
    disk.sync_filesystem("/")
    site.produce(5)
    site.mover.start(site.partition, site.directories[1])
    site.turn()
    assert site.copying.jobs, "the copy is being synced"
    site.produce(5)
    site.partition.log.raise_start_offset(7)
    site.finish()
    assert site.moved == [1]
    site.produce(3)
    assert site.acknowledged == [(offset, None) for offset in range(13)]
    site.disk = disk.after_power_loss(NothingLeft(1))
    assert site.open(1).logs == {}
    log = site.open(2).logs["t", 0]
    assert read_all(log) == [(offset, b"v%d" % offset) for offset in range(7, 13)]


class Starved:
    """No descriptor is left meanwhile."""

    def __enter__(self):
        self._before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._taken = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 5, self._before[1]))
        try:
            while True:
                self._taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.EMFILE

    def __exit__(self, *_):
        for descriptor in self._taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, self._before)


@pytest.fixture
def site(tmp_path):
    return Site(RealDisk(), str(tmp_path))


def test_a_copy_that_is_being_synced_needs_no_further_descriptors(site):
    site.produce(3)
    site.mover.start(site.partition, site.directories[1])
    site.turn()
    work, done = site.copying.jobs.pop()
    with Starved():
        work()
    done(None, None)
    site.turn()
    assert site.moved == [1]
    assert [directory.offline for directory in site.directories] == [None, None]


def test_a_sync_of_the_copy_that_could_not_begin_takes_no_directory_offline(site):
    site.produce(3)
    site.mover.start(site.partition, site.directories[1])
    site.turn()
    _, done = site.copying.jobs.pop()
    done(None, OSError(errno.EMFILE, "Too many open files"))
    site.turn()
    assert [directory.offline for directory in site.directories] == [None, None]
    assert site.partition.log is site.directories[0].logs["t", 0]


@pytest.mark.parametrize("step", ["before", "target", "source"])
def test_a_swap_for_which_descriptors_run_out_is_whole_or_not_begun(site, monkeypatch, step):
    site.produce(3)
    source, target = site.directories
    site.mover.start(site.partition, target)
    site.turn()
    work, done = site.copying.jobs.pop()
    work()
    starved = Starved()
    if step == "before":
        starved.__enter__()
    else:
        where, name = (target, "promote_future") if step == "target" else (source, "delete_log")
        change = getattr(where, name)

        def change_and_starve(*arguments):
            changed = change(*arguments)
            starved.__enter__()
            return changed

        monkeypatch.setattr(where, name, change_and_starve)
    done(None, None)
    starved.__exit__()
    assert [directory.offline for directory in site.directories] == [None, None]
    home = target if site.moved else source
    assert step == "before" or site.moved
    assert site.partition.log is home.logs["t", 0]
    site.produce(1)
    assert site.acknowledged[-1] == (3, None)
