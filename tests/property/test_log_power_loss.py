"""Appends and recovery on a disk that loses its power, under every topic setting: in C and in Python the same files.

The disk is the simulator's. After each loss the log is opened again, and what is left is compared byte for byte.
"""

import pytest

from ottla.log import plain
from ottla.sim.cluster.disk import Folder, SimDisk
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError
from ottla.world.entropy import SeededEntropy
from tests.faults.seeds import seeded
from tests.unit.log.topic_settings import CASES
from tests.unit.log.workbench import NOW, Workbench, batch

pytestmark = pytest.mark.skipif(plain.append is None, reason="the compiled append was not built")

HOUR_MS = 3_600_000
LIVES, BATCHES_A_LIFE = 3, 14


def draw(entropy):
    """What happens in one life of a log: batches, some of them odd, syncs, and room that runs out."""
    steps, following = [], {}
    for _ in range(BATCHES_A_LIFE):
        values = [bytes(entropy.below(200)) for _ in range(1 + entropy.below(3))]
        how = {"codec": (Codec.NONE, Codec.NONE, Codec.NONE, Codec.LZ4)[entropy.below(4)]}
        if entropy.below(2):
            producer = entropy.below(2)
            sequence = max(0, following.get(producer, 0) - (0, 0, 0, 1)[entropy.below(4)])
            following[producer] = sequence + len(values)
            how |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
        if entropy.below(4):
            how["keys"] = [b"k%d" % entropy.below(3) for _ in values]
        timestamp = NOW + (0, 0, 0, -1000, 400, 2 * HOUR_MS)[entropy.below(6)]
        data = bytes(batch(*values, timestamp=timestamp, **how))
        steps.append((data, entropy.below(5) == 0, (None, None, None, None, 0, 90)[entropy.below(6)]))
    return steps


def content(folder, path=""):
    found = {}
    for name, node in folder.names.items():
        if isinstance(node, Folder):
            found |= content(node, f"{path}/{name}")
        else:
            found[f"{path}/{name}"] = bytes(node.data)
    return found


def live(config, seed, *, compiled, monkeypatch):
    """Let a log live and lose its power some times; tell all that was answered, and all that was there each time."""
    monkeypatch.setattr("ottla.log.log._append_plain", plain.append if compiled else None)
    entropy, losses = SeededEntropy(seed), SeededEntropy(seed + 1)
    disk = SimDisk()
    disk.make_dirs("/d")
    bench, told, number, kept = Workbench("/d", disk, **config), [], 0, 0
    disk.sync_filesystem("/")
    for _ in range(LIVES):
        for data, sync, room in draw(entropy):
            number += 1
            disk.room_bytes = room
            try:
                told.append(tuple(bench.log.append(bytearray(data), 0, NOW + number)))
            except BrokerError as error:
                told.append((error.code, error.message))
            disk.room_bytes = None
            told.append((bench.log.end_offset, bench.log.is_sync_due))
            if sync or bench.log.is_sync_due:
                bench.log.sync()
                kept = bench.log.end_offset
        told.append(content(disk.root))
        if entropy.below(3) == 0:
            disk.sync_filesystem("/")
            kept = bench.log.end_offset
        disk = bench.disk = disk.after_power_loss(losses)
        bench.start()
        assert bench.log.end_offset >= kept, "what was synced is there"
        kept = bench.log.end_offset
        disk.sync_filesystem("/")
        told.append(content(disk.root))
        told.append([(each.producer_id, each.next_sequence, list(each.batches)) for each in bench.log.producers()])
    return told


@pytest.mark.parametrize("name", CASES)
def test_both_leave_the_same_files_after_a_power_loss(name, monkeypatch):
    random = seeded(__file__)
    for _ in range(3):
        seed = random.randrange(1 << 32)
        before = plain.stored()
        mine = live(CASES[name].log, seed, compiled=True, monkeypatch=monkeypatch)
        stored = plain.stored() - before
        theirs = live(CASES[name].log, seed, compiled=False, monkeypatch=monkeypatch)
        assert plain.stored() - before == stored, "the other one is Python's"
        assert mine == theirs
        assert (stored > 0) == CASES[name].is_plain
