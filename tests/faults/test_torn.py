"""Files that end too early: every start succeeds, the log is cut to its longest valid prefix, nothing else is lost."""

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.log import Log
from ottla.node.storage import StartError
from ottla.wire.errors import ErrorCode
from ottla.world.entropy import SeededEntropy
from tests.faults.by_hand import batch, hand, headers
from tests.faults.estate import PARTITION, SETTINGS, TOPIC, Estate, boundaries, fill
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.node_thread import DATA, NodeThread

NOW_MS = 1 << 42
# Timestamps of the estate lie in the past of NOW_MS; none is refused for it.
CONFIG = LogConfig()


@pytest.fixture(scope="module")
def estate() -> Estate:
    """As a kill left it."""
    return fill(clean=False)


@pytest.fixture(scope="module")
def clean_estate() -> Estate:
    """As a clean stop left it."""
    return fill(clean=True)


@dataclass
class Torn:
    """The last segment of the estate, whole, and where its batches end."""

    data: bytes
    ends: list[int]
    offsets: list[int]  # the offset that follows so many batches


@pytest.fixture(scope="module")
def torn(estate: Estate) -> Torn:
    data = estate.disk.read_bytes(estate.last_segment)
    ends = boundaries(data)
    assert len(ends) == 65 and ends[-1] == len(data)
    starts = [each.base_offset for each in estate.sent]
    with_end = [*starts, _end_offset(estate)]
    return Torn(data, ends, with_end)


def _end_offset(estate: Estate) -> int:
    *_, last = headers(estate.content)
    return last[0] + last[6] + 1


def open_log(disk: ForgetfulDisk, recovery_point: int) -> Log:
    home = LogDirectory(DATA, disk, SeededEntropy(1), lambda _: None)
    log = Log(home, disk, PARTITION, TOPIC, 0, CONFIG)
    log.topic_id = bytes(16)
    log.open(clean=False, recovery_point=recovery_point)
    return log


def alone(estate: Estate) -> ForgetfulDisk:
    """A disk with nothing but the partition's directory on it."""
    disk = ForgetfulDisk()
    disk.make_dirs(PARTITION)
    for path in estate.disk.files(PARTITION):
        disk.put(path, estate.disk.read_bytes(path))
    return disk


def check_recovery(
    estate: Estate, torn: Torn, disk: ForgetfulDisk, spoiled: bytes, recovery_point: int
) -> None:
    """Recover a log whose last segment holds `spoiled`, and hold it against its longest valid prefix."""
    disk.put(estate.last_segment, spoiled)
    whole = max(n for n, end in enumerate(torn.ends) if spoiled[:end] == torn.data[:end])
    log = open_log(disk, recovery_point)
    assert log.end_offset == torn.offsets[whole]
    assert disk.size(estate.last_segment) == torn.ends[whole]
    assert bytes(log.read(0, 1 << 24, log.end_offset)) == estate.content[: boundaries(estate.content)[2]]
    if whole:
        assert (
            bytes(log.read(estate.last_base_offset, 1 << 24, log.end_offset)) == torn.data[: torn.ends[whole]]
        )
    # Producers are known as of the last batch that is left: it is a duplicate, and what was cut is taken again.
    for producer_id in {each.producer_id for each in estate.sent[:whole]} - {-1}:
        last = next(each for each in reversed(estate.sent[:whole]) if each.producer_id == producer_id)
        again = log.append(bytearray(last.data), 0, NOW_MS)
        assert again.duplicate and again.base_offset == last.base_offset
    for each in estate.sent[whole : whole + 4]:
        appended = log.append(bytearray(each.data), 0, NOW_MS)
        assert not appended.duplicate and appended.base_offset == each.base_offset
    log.close(clean=False)


def cuts(torn: Torn, every: int) -> Iterator[int]:
    """Every so many-th prefix, and those around each batch's end."""
    near = {end + step for end in torn.ends for step in (-1, 0, 1)}
    yield from sorted({*range(0, len(torn.data) + 1, every), *near} & set(range(len(torn.data) + 1)))


def test_every_prefix_recovers_to_its_longest_valid_prefix(estate: Estate, torn: Torn) -> None:
    disk = alone(estate)
    for cut in range(len(torn.data) + 1):
        check_recovery(estate, torn, disk.copy(), torn.data[:cut], estate.last_base_offset)


@pytest.mark.parametrize(
    "every", [pytest.param(13, id="short"), pytest.param(1, id="soak", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("rest", ["zeros", "garbage", "cut, all to be checked", "cut, half synced"])
def test_other_ends_recover_likewise(estate: Estate, torn: Torn, rest: str, every: int) -> None:
    disk = alone(estate)
    chance = random.Random(every)
    half = 32
    for cut in cuts(torn, every):
        tail = {"zeros": bytes(len(torn.data) - cut), "garbage": chance.randbytes(len(torn.data) - cut)}.get(
            rest, b""
        )
        recovery_point = 0 if rest == "cut, all to be checked" else estate.last_base_offset
        if rest == "cut, half synced":
            if cut < torn.ends[half]:
                continue
            recovery_point = torn.offsets[half]
        check_recovery(estate, torn, disk.copy(), torn.data[:cut] + tail, recovery_point)


def test_a_node_starts_on_a_torn_segment(estate: Estate, torn: Torn) -> None:
    chance = random.Random(7)
    around = [end + step for end in chance.sample(torn.ends[1:-1], 5) for step in (-1, 0, 1)]
    for cut in (0, 1, 60, *around, len(torn.data) - 1, len(torn.data)):
        disk = estate.disk.copy()
        disk.put(estate.last_segment, torn.data[:cut])
        # The checkpoint is of a time at which no more was synced than is left.
        whole = max(n for n, end in enumerate(torn.ends) if end <= cut)
        checkpoint(
            disk, "recovery-point-offset-checkpoint", min(torn.offsets[whole], estate.last_base_offset)
        )
        runner = NodeThread(disk, SETTINGS)
        with runner, hand(runner.port) as client:
            expected = estate.content[: boundaries(estate.content)[2] + torn.ends[whole]]
            assert client.read_all(TOPIC) == expected, cut
            assert client.end_offset(TOPIC) == torn.offsets[whole]
            for each in estate.sent[whole : whole + 3]:
                assert client.produce(TOPIC, each.data) == (ErrorCode.NONE, each.base_offset)
        assert not runner.errors


def checkpoint(disk: ForgetfulDisk, name: str, offset: int) -> None:
    path = f"{DATA}/{name}"
    text = re.sub(
        rf"^{TOPIC} 0 \d+$", f"{TOPIC} 0 {offset}", disk.read_bytes(path).decode(), flags=re.MULTILINE
    )
    disk.put(path, text.encode())


BESIDE = [
    rf"{PARTITION}/{'0' * 20}\.index",
    rf"{PARTITION}/{'0' * 20}\.timeindex",
    rf"{PARTITION}/{'0' * 19}2\.index",
    rf"{PARTITION}/{'0' * 19}2\.timeindex",
    rf"{PARTITION}/{'0' * 19}2\.snapshot",
    rf"{PARTITION}/0+[1-9]\d+\.snapshot",
    rf"{PARTITION}/leader-epoch-checkpoint",
    rf"{PARTITION}/partition\.metadata",
    rf"{DATA}/recovery-point-offset-checkpoint",
    rf"{DATA}/replication-offset-checkpoint",
    rf"{DATA}/log-start-offset-checkpoint",
    rf"{DATA}/bootstrap\.checkpoint",
    rf"{DATA}/\.kafka_cleanshutdown",
    rf"{DATA}/__cluster_metadata-0/quorum-state",
    rf"{DATA}/__cluster_metadata-0/leader-epoch-checkpoint",
    rf"{DATA}/__cluster_metadata-0/partition\.metadata",
    rf"{DATA}/__cluster_metadata-0/\d+\.index",
    rf"{DATA}/__cluster_metadata-0/\d+\.timeindex",
    rf"{DATA}/__cluster_metadata-0/\d+\.snapshot",
    rf"{DATA}/__cluster_metadata-0/0+[1-9]\d*-\d+\.checkpoint",
    rf"{DATA}/__cluster_metadata-0/0+-0+\.checkpoint",
]


@pytest.mark.parametrize("pattern", BESIDE)
@pytest.mark.parametrize("stop", ["clean", "killed"])
def test_files_beside_the_batches_may_be_torn(
    pattern: str, stop: str, estate: Estate, clean_estate: Estate
) -> None:
    before = clean_estate if stop == "clean" else estate
    paths = [path for path in before.disk.files() if re.fullmatch(pattern, path)]
    # A kill leaves no marker, and no files that only a roll or a clean stop writes.
    assert paths or stop == "killed"
    for path in paths:
        whole = before.disk.read_bytes(path)
        for torn_to in damages(whole):
            disk = before.disk.copy()
            if torn_to is None:
                disk.remove(path)
                disk = disk.copy()
            else:
                disk.put(path, torn_to)
            what = "removed" if torn_to is None else f"{len(torn_to)} bytes, {torn_to[-8:]!r} at the end"
            check_whole(before, disk, f"{path}: {what}")


def damages(whole: bytes) -> list[bytes | None]:
    """A file cut at various places, filled with zeros, and gone."""
    sizes = {0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 1, max(0, len(whole) - 13)}
    found: list[bytes | None] = [whole[:size] for size in sorted(sizes) if 0 <= size < len(whole)]
    half = len(whole) // 2
    return [*found, bytes(len(whole)), whole[:half] + bytes(len(whole) - half), None]


def check_whole(before: Estate, disk: ForgetfulDisk, what: str) -> None:
    """Start on a disk: all that was acknowledged is there, and writing goes on."""
    runner = NodeThread(disk, SETTINGS)
    try:
        runner.start()
    except Exception as error:
        raise AssertionError(f"{what}: the start fails with {error!r}") from error
    try:
        with hand(runner.port) as client:
            known = {topic.name for topic in client.metadata().topics}
            assert set(before.topics) <= known, f"{what}: topics are lost"
            assert client.read_all(TOPIC) == before.content, f"{what}: records are lost"
            producer_id = before.sent[-2].producer_id
            assert client.produce(TOPIC, before.sent[-2].data)[1] == before.sent[-2].base_offset, (
                f"{what}: producer {producer_id} is not known any more"
            )
            end_offset = client.end_offset(TOPIC)
            assert client.produce(TOPIC, batch(b"more")) == (ErrorCode.NONE, end_offset), what
            assert client.create_topic("one-more") is ErrorCode.NONE, what
    finally:
        runner.stop()
    assert not runner.errors, f"{what}: {runner.errors}"
    with runner, hand(runner.port) as client:  # and once more, after a clean stop
        assert client.read_all(TOPIC).startswith(before.content), (
            f"{what}: records are lost in the second start"
        )
        assert client.end_offset(TOPIC) == end_offset + 1


def test_a_torn_end_of_the_metadata_log_is_cut(estate: Estate) -> None:
    """What was being written to the metadata log when the power went was not acknowledged."""
    path = next(path for path in estate.disk.files(f"{DATA}/__cluster_metadata-0") if path.endswith(".log"))
    whole = estate.disk.read_bytes(path)
    ends = boundaries(whole)
    last = whole[ends[-2] :]
    for tail in [last[:size] for size in range(0, len(last), 7)] + [
        bytes(100),
        random.Random(1).randbytes(300),
    ]:
        disk = estate.disk.copy()
        disk.put(path, whole + tail)
        check_whole(estate, disk, f"the metadata log with {len(tail)} bytes more")


def test_partitions_of_lost_topics_are_put_aside(estate: Estate) -> None:
    """A metadata log that has lost its end, which a sound disk does not do, costs no data: it is only put aside."""
    folder = f"{DATA}/__cluster_metadata-0"
    path = next(path for path in estate.disk.files(folder) if path.endswith(".log"))
    whole = estate.disk.read_bytes(path)
    for end in boundaries(whole)[1:-1:3]:
        for cut in (end, end + 9):
            disk = estate.disk.copy()
            disk.put(path, whole[:cut])
            for snapshot in estate.disk.files(folder):
                if re.search(r"/0+[1-9]\d*-\d+\.checkpoint$", snapshot):
                    disk.remove(snapshot)
            disk = disk.copy()
            runner = NodeThread(disk, SETTINGS)
            runner.start()
            runner.stop()
            kept = [
                disk.read_bytes(each)
                for each in disk.files(DATA)
                if re.search(rf"/{TOPIC}-0[^/]*/.*\.log$", each)
            ]
            assert b"".join(kept) == estate.content, f"cut at {cut}"


def test_a_start_that_is_interrupted_can_be_repeated(estate: Estate, torn: Torn) -> None:
    """The power goes at any moment of a recovery: the next one finds all that was there."""
    chance = random.Random(11)
    for _ in range(40):
        disk = estate.disk.copy()
        disk.put(estate.last_segment, torn.data + chance.randbytes(chance.randrange(200)))
        checkpoint(disk, "recovery-point-offset-checkpoint", 0)
        left = chance.randrange(1, 150)

        def interrupt(what: str, path: str) -> None:
            nonlocal left
            if what != "read":
                left -= 1
                if left == 0:
                    raise OSError(5, "the power goes", path)

        disk.before = interrupt
        runner = NodeThread(disk, SETTINGS)
        with suppress(OSError, StartError):
            runner.start()
        disk.before = None
        runner.abandon()
        check_whole(estate, disk.power_loss(chance), "after an interrupted start")
