"""`ottla dump-log`: what it says of sound files, and what it finds in others."""

import json
import struct
from pathlib import Path

import pytest

from ottla.cli.error import FAILED, MISUSED, OK
from ottla.cli.main import main
from ottla.log.checkpoint import format_lines
from ottla.log.producer_snapshot import SnapshotEntry, encode_snapshot
from ottla.metadata.frame import encode
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.batch import build_batch, restamp_crc
from ottla.wire.compression import Codec
from ottla.wire.control import end_transaction_batch
from ottla.wire.record import Record
from ottla.wire.records.metadata import TopicRecord
from ottla.wire.records.offset import OffsetCommitKey, OffsetCommitValue
from ottla.wire.records.transaction import TransactionLogKey, TransactionLogValue

NOW = 1_760_000_000_000
Printed = pytest.CaptureFixture[str]


def records(start: int, count: int) -> list[Record]:
    return [Record(start + n, NOW + start + n, b"k%d" % n, b"v" * n, (("h", b"x"),)) for n in range(count)]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A segment of three batches, with its indexes, in the directory of a partition."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    batches = [
        build_batch(records(0, 3), leader_epoch=2),
        build_batch(
            records(3, 2), base_offset=3, codec=Codec.ZSTD, producer_id=7, producer_epoch=1, base_sequence=5,
            transactional=True, leader_epoch=2,
        ),
        end_transaction_batch(
            commit=False, producer_id=7, producer_epoch=1, coordinator_epoch=4, timestamp_ms=NOW + 9, base_offset=5
        ),
    ]  # fmt: skip
    log = directory / f"{0:020d}.log"
    log.write_bytes(b"".join(batches))
    second = len(batches[0])
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 4, second))
    log.with_suffix(".timeindex").write_bytes(struct.pack(">qi", NOW + 4, 4) + struct.pack(">qi", NOW + 9, 5))
    log.with_suffix(".txnindex").write_bytes(struct.pack(">hqqqq", 0, 7, 3, 5, 6))
    (directory / f"{6:020d}.snapshot").write_bytes(
        encode_snapshot([SnapshotEntry(7, 1, 6, 4, 1, NOW, 4, -1)])
    )
    (directory / "leader-epoch-checkpoint").write_bytes(format_lines(["2 0"]))
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: 5Zl4Wz8RQm2Cw0m1b4c0Xw\n")
    return log


def dump(capsys: Printed, *arguments: str | Path) -> tuple[int, list[dict[str, object]]]:
    code = main(["dump-log", *map(str, arguments), "-o", "json"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_batches(segment: Path, capsys: Printed) -> None:
    code, found = dump(capsys, segment)
    assert code == OK
    assert [each["kind"] for each in found] == ["batch"] * 3
    names = (
        "base_offset",
        "last_offset",
        "count",
        "codec",
        "leader_epoch",
        "producer_id",
        "base_sequence",
        "notes",
    )
    assert [tuple(each[name] for name in names) for each in found] == [
        (0, 2, 3, "none", 2, -1, -1, []),
        (3, 4, 2, "zstd", 2, 7, 5, ["transactional"]),
        (5, 5, 1, "none", -1, 7, -1, ["transactional", "control"]),
    ]
    assert found[0]["position"] == 0 and found[1]["position"] == found[0]["size"]


def test_records(segment: Path, capsys: Printed) -> None:
    code, found = dump(capsys, segment, "--values")
    shown = [each for each in found if each["kind"] == "record"]
    assert code == OK
    assert [each["offset"] for each in shown] == [0, 1, 2, 3, 4, 5]
    assert shown[2]["key"] == "k2" and shown[2]["value"] == "vv"
    assert shown[2]["headers"] == [{"key": "h", "value": "x"}]
    assert shown[5]["type"] == "abort" and shown[5]["data"] == {"coordinator_epoch": 4}
    code, found = dump(capsys, segment, "--records")
    assert "value" not in found[1] and found[1]["value_size"] == 0


def test_a_directory_is_all_its_files(segment: Path, capsys: Printed) -> None:
    code, found = dump(capsys, segment.parent)
    assert code == OK
    kinds = {Path(str(each["file"])).name: each["kind"] for each in found}
    assert kinds == {
        segment.name: "batch",
        f"{0:020d}.index": "entry",
        f"{0:020d}.timeindex": "entry",
        f"{0:020d}.txnindex": "aborted",
        f"{6:020d}.snapshot": "producer",
        "leader-epoch-checkpoint": "entry",
        "partition.metadata": "partition",
    }


def test_for_people(segment: Path, capsys: Printed) -> None:
    assert main(["dump-log", str(segment.parent), "--values"]) == OK
    out = capsys.readouterr().out
    assert f"{segment}:\n        FIRST         LAST    COUNT" in out
    assert '| 2  2025-10-09T08:53:20.002Z  key 2 B  value 2 B  headers 1  {"key": "k2", "value": "vv"' in out
    assert "topic_id: 5Zl4Wz8RQm2Cw0m1b4c0Xw" in out
    assert "problem" not in out


def test_only_so_many(segment: Path, capsys: Printed) -> None:
    code, found = dump(capsys, segment, "-n", "1", "--records")
    assert code == OK
    assert [each["kind"] for each in found] == ["batch", "record", "record", "record"]


def damage(path: Path, at: int, new: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(new)] = new
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("suffix", "at", "new", "complaint"),
    [
        (".log", 90, b"\xee", "the checksum of the batch at offset 0 is wrong"),
        (".log", 16, b"\1", "record format 1 is no longer supported"),
        (".log", 8, struct.pack(">i", 5), "batch claims a length of 5 bytes"),
        (".index", 4, struct.pack(">i", 11), "no batch that ends with offset 4 begins at 11"),
        (".timeindex", 0, struct.pack(">q", NOW + 7), "the greatest timestamp up to offset 4"),
        (".timeindex", 12, struct.pack(">q", NOW), "is not behind"),
        (".txnindex", 10, struct.pack(">q", 9), "a transaction from 9 to 5 cannot be here"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    suffix: str, at: int, new: bytes, complaint: str, segment: Path, capsys: Printed
) -> None:
    damage(segment.with_suffix(suffix), at, new)
    assert main(["dump-log", str(segment.with_suffix(suffix)), "--verify"]) == FAILED
    out = capsys.readouterr().out
    assert complaint in out and "sound" not in out


def test_a_tail_that_is_cut_off(segment: Path, capsys: Printed) -> None:
    segment.write_bytes(segment.read_bytes()[:-10])
    code, found = dump(capsys, segment)
    assert code == FAILED
    assert "is cut off" in str(found[-1]["problem"])
    assert [each["kind"] for each in found] == ["batch", "batch", "problem"]


def test_records_that_do_not_fit_their_batch(tmp_path: Path, capsys: Printed) -> None:
    batch = build_batch(records(0, 2))
    struct.pack_into(">i", batch, 57, 3)
    restamp_crc(batch, 0, len(batch))
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(batch + build_batch(records(1, 1), base_offset=1))
    code, found = dump(capsys, path)
    problems = [str(each["problem"]) for each in found if each["kind"] == "problem"]
    assert code == FAILED
    assert len(problems) == 2
    assert "the records of the batch at offset 0" in problems[0]
    assert "offset 1 comes where at least 2 should" in problems[1]


def test_verify_says_that_all_is_well(segment: Path, capsys: Printed) -> None:
    assert main(["dump-log", str(segment.parent), "--verify"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7 and all(line.endswith(" entries, sound") for line in lines)


def test_room_that_kafka_set_aside_is_no_entry(segment: Path, capsys: Printed) -> None:
    index = segment.with_suffix(".index")
    index.write_bytes(index.read_bytes() + bytes(800))
    code, found = dump(capsys, index)
    assert code == OK and len(found) == 1


def keyed_log(directory: Path, *entries: KeyedRecord) -> Path:
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    encoded = [each.encode() for each in entries]
    path.write_bytes(build_batch([Record(n, NOW, key, value) for n, (key, value) in enumerate(encoded)]))
    return path


def test_offsets_of_groups(tmp_path: Path, capsys: Printed) -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    value = OffsetCommitValue(offset=42, metadata="m", commit_timestamp=NOW)
    log = keyed_log(tmp_path / "__consumer_offsets-3", KeyedRecord(key, value, 3), KeyedRecord(key, None))
    code, found = dump(capsys, log, "--records")
    assert code == OK
    assert found[1]["type"] == "OffsetCommit"
    assert found[1]["key"] == {"group": "g", "topic": "t", "partition": 1}
    data = found[1]["data"]
    assert isinstance(data, dict) and data["offset"] == 42
    assert found[2]["data"] is None
    # The name of the directory says what records mean, and the user may know better.
    _, found = dump(capsys, log, "--values", "--decode", "none")
    assert "type" not in found[1] and "value" in found[1]


def test_transactions(tmp_path: Path, capsys: Printed) -> None:
    value = TransactionLogValue(producer_id=9, transaction_status=1, transaction_partitions=None)
    log = keyed_log(tmp_path / "copy", KeyedRecord(TransactionLogKey(transactional_id="x"), value, 1))
    _, found = dump(capsys, log, "--decode", "transactions")
    assert found[1]["type"] == "TransactionLog" and found[1]["key"] == {"transactional_id": "x"}


def test_records_of_no_known_type(tmp_path: Path, capsys: Printed) -> None:
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    path = directory / f"{0:020d}.log"
    path.write_bytes(build_batch([Record(0, NOW, b"\x7f\xff", b""), Record(1, NOW, b"", b"")]))
    code, found = dump(capsys, path, "--records")
    assert code == OK
    assert "type 32767 are not known" in str(found[1]["unreadable"])
    assert "names no type" in str(found[2]["unreadable"])


def test_metadata(tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "00000000000000000010-0000000002.checkpoint"
    frame = encode(TopicRecord(name="orders", topic_id=bytes(15) + b"\1"))
    path.write_bytes(build_batch([Record(0, NOW, None, frame), Record(1, NOW, None, b"\xff")]))
    code, found = dump(capsys, path, "--records")
    assert code == OK
    assert found[1]["type"] == "TopicRecord"
    assert found[1]["data"] == {"name": "orders", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    assert "unreadable" in found[2]


def test_small_files(tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "replication-offset-checkpoint").write_bytes(format_lines(["orders 0 42"]))
    (tmp_path / "meta.properties").write_text("#comment\nversion=1\nnode.id=7\n")
    (tmp_path / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":3}')
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n2\norders 0 1\n")
    code, found = dump(capsys, tmp_path)
    assert code == FAILED
    by_file = {Path(str(each.pop("file"))).name: each for each in found}
    assert by_file["replication-offset-checkpoint"] == {
        "kind": "entry",
        "topic": "orders",
        "partition": 0,
        "offset": 42,
    }
    assert by_file["meta.properties"] == {"kind": "identity", "version": "1", "node.id": "7"}
    assert by_file["quorum-state"] == {"kind": "vote", "leaderId": 1, "leaderEpoch": 3}
    assert "promises '2' entries" in str(by_file["recovery-point-offset-checkpoint"]["problem"])


def test_a_torn_snapshot(segment: Path, capsys: Printed) -> None:
    snapshot = segment.parent / f"{6:020d}.snapshot"
    damage(snapshot, 20, b"\xee")
    code, found = dump(capsys, snapshot)
    assert code == FAILED and found[0]["problem"] == "the CRC does not match"


def test_yaml_is_one_list(segment: Path, capsys: Printed) -> None:
    assert main(["dump-log", str(segment), "-o", "yaml"]) == OK
    out = capsys.readouterr().out
    assert out.count("\n- file: ") + out.startswith("- file: ") == 3


@pytest.mark.parametrize("name", ["nowhere.log", "notes.txt", ""])
def test_what_is_no_file_of_a_log(name: str, tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert main(["dump-log", str(tmp_path / name)]) == MISUSED
    assert capsys.readouterr().err.startswith("error: ")


def test_a_log_of_another_name(segment: Path, tmp_path: Path, capsys: Printed) -> None:
    other = tmp_path / "copy of orders.log"
    other.write_bytes(segment.read_bytes())
    code, found = dump(capsys, other)
    assert code == OK and len(found) == 3
    (tmp_path / "notes.txt").write_text("")
    assert main(["dump-log", str(tmp_path / "notes.txt")]) == MISUSED
