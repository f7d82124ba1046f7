"""Formatting: the very bytes that `kafka-storage format` of Apache Kafka 4.3.1 writes."""

from pathlib import Path

import pytest

from ottla.log.identity import read_identity
from ottla.metadata.error import MetadataError
from ottla.quorum.bootstrap import read_bootstrap, write_bootstrap
from ottla.quorum.checkpoint import checkpoint_batches, read_checkpoint
from ottla.quorum.election_state import TornState, read_election_state, write_election_state
from ottla.quorum.storage import Format, FormatError, format_storage
from ottla.raft.election_state import ElectionState
from ottla.raft.voters import Address, Voter, Voters
from ottla.wire.records.metadata import FeatureLevelRecord
from ottla.wire.uuid import uuid_bytes
from ottla.world.disk import RealDisk
from ottla.world.entropy import SeededEntropy
from tests.unit.quorum.workshop import CLUSTER_ID, SetClock

DISK = RealDisk()
ADDRESSES = (Address("CONTROLLER", "127.0.0.1", 39093),)

# Written by Apache Kafka 4.3.1: `kafka-storage format --standalone` with that listener.
BOOTSTRAP = bytes.fromhex(
    "000000000000000000000047000000000249b1a180002000000000000001a1e1c479b4000001a1e1c479b4ffffffffffffff"
    "ffffffffffffff000000012a0000000800000003160000000000000000000000000000000000000001000000f10000000002"
    "59f235cd000000000005000001a1e1c479cb000001a1e1c479cbffffffffffffffffffffffffffff000000063a000000012e"
    "010c00116d657461646174612e76657273696f6e001e00005a000002014e010c0021656c696769626c652e6c65616465722e"
    "7265706c696361732e76657273696f6e00010000340000040128010c000e67726f75702e76657273696f6e00010000340000"
    "060128010c000e73686172652e76657273696f6e0001000038000008012c010c001073747265616d732e76657273696f6e00"
    "0100004000000a0134010c00147472616e73616374696f6e2e76657273696f6e0002000000000000000000070000003f0000"
    "0000024af97221002000000000000001a1e1c479cc000001a1e1c479ccffffffffffffffffffffffffffff000000011a0000"
    "0008000000040600000000"
)
VOTERS = bytes.fromhex(
    "00000000000000000000009a00000000028811bf1b002000000002000001a1e1c479e0000001a1e1c479e0ffffffffffffff"
    "ffffffffffffff000000032a0000000800000003160000000001a1e1c479d700001e00000208000000050a00000001000082"
    "0100000408000000066e00000200000001229e8e5de3de4eff8fbe199451cb781f020b434f4e54524f4c4c45520a3132372e"
    "302e302e3198b500000000010000000000000000000000030000003f0000000002b226526d002000000000000001a1e1c479"
    "e5000001a1e1c479e5ffffffffffffffffffffffffffff000000011a00000008000000040600000000"
)


def test_kafkas_bootstrap_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "bootstrap.checkpoint").write_bytes(BOOTSTRAP)
    records = list(read_bootstrap(DISK, str(tmp_path)))
    assert all(isinstance(record, FeatureLevelRecord) for record in records)
    assert {
        record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)
    } == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    write_bootstrap(DISK, str(tmp_path), records, 0)
    assert stripped((tmp_path / "bootstrap.checkpoint").read_bytes()) == stripped(BOOTSTRAP)


def test_kafkas_voters_are_read_and_written_alike() -> None:
    checkpoint = read_checkpoint(VOTERS, "voters")
    directory_id = uuid_bytes("Ip6OXePeTv-PvhmUUct4Hw")
    assert checkpoint.kraft_version == 1
    assert checkpoint.voters == Voters.of([Voter(1, directory_id, ADDRESSES)])
    ours = b"".join(
        checkpoint_batches(
            (),
            metadata_version=30,
            now_ms=5,
            contained_ms=checkpoint.timestamp_ms,
            kraft_version=1,
            voters=checkpoint.voters,
        )
    )
    assert stripped(ours) == stripped(VOTERS)


def stripped(data: bytes) -> bytes:
    """The batches of a file without their times and checksums."""
    from ottla.wire.batch import scan

    parts = []
    for position, batch in scan(data):
        batch_bytes = bytearray(data[position : position + batch.size])
        batch_bytes[17:21] = bytes(4)
        batch_bytes[27:43] = bytes(16)
        parts.append(bytes(batch_bytes))
    return b"".join(parts)


def wish(*directories: str, **options: object) -> Format:
    return Format(CLUSTER_ID, 1, directories, directories[0], **options)  # type: ignore[arg-type]


def run(request: Format) -> list[str]:
    return format_storage(DISK, SetClock(), SeededEntropy(1), request)


def test_a_standalone_node_is_its_only_voter(tmp_path: Path) -> None:
    data, more = str(tmp_path / "data"), str(tmp_path / "more")
    assert run(wish(data, more, standalone=ADDRESSES)) == [
        f"Formatting dynamic metadata voter directory {data} with metadata.version 4.3-IV0.",
        f"Formatting data directory {more} with metadata.version 4.3-IV0.",
    ]
    identity, other = read_identity(DISK, data), read_identity(DISK, more)
    assert identity is not None
    assert other is not None
    assert (identity.cluster_id, identity.node_id) == (CLUSTER_ID, 1)
    assert identity.directory_id != other.directory_id
    snapshot = tmp_path / "data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    checkpoint = read_checkpoint(snapshot.read_bytes(), "snapshot")
    assert checkpoint.voters == Voters.of([Voter(1, identity.directory_id, ADDRESSES)])
    assert not (tmp_path / "more/__cluster_metadata-0").exists()
    assert (tmp_path / "more/bootstrap.checkpoint").exists()


def test_a_static_quorum_has_no_voters_on_disk(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    assert run(wish(data)) == [f"Formatting metadata directory {data} with metadata.version 4.3-IV0."]
    assert not (tmp_path / "data/__cluster_metadata-0").exists()


def test_the_first_voters_bring_their_directories(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    voters = Voters.of([Voter(1, bytes([1] * 16), ADDRESSES), Voter(2, bytes([2] * 16), ADDRESSES)])
    run(wish(data, voters=voters))
    identity = read_identity(DISK, data)
    assert identity is not None
    assert identity.directory_id == bytes([1] * 16)


def test_what_is_formatted_is_left_alone(tmp_path: Path) -> None:
    data, more = str(tmp_path / "data"), str(tmp_path / "more")
    run(wish(data))
    before = read_identity(DISK, data)
    with pytest.raises(FormatError, match="already formatted"):
        run(wish(data))
    assert run(wish(data, ignore_formatted=True)) == ["All of the log directories are already formatted."]
    run(wish(data, more, ignore_formatted=True))
    assert read_identity(DISK, data) == before
    with pytest.raises(FormatError, match="Invalid cluster.id"):
        run(Format("other", 1, [data], data, ignore_formatted=True))
    with pytest.raises(FormatError, match="Invalid node.id"):
        run(Format(CLUSTER_ID, 2, [data], data, ignore_formatted=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"features": {"no.such": 1}}, "Unsupported feature: no.such"),
        ({"features": {"group.version": 5}}, "No feature:group.version with feature level 5"),
        ({"features": {"kraft.version": 1}}, "Cannot set kraft.version to 1"),
        ({"features": {"kraft.version": 0}, "standalone": ADDRESSES}, "Cannot set kraft.version to 0"),
        ({"features": {"metadata.version": 21}, "metadata_version": 21}, "to avoid ambiguity"),
        ({"metadata_version": 99}, "No feature:metadata.version with feature level 99"),
        (
            {"metadata_version": 22, "features": {"eligible.leader.replicas.version": 1}},
            "depends on metadata.version",
        ),
    ],
)
def test_formats_that_cannot_be(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        run(wish(str(tmp_path / "data"), **options))
    assert not (tmp_path / "data").exists()


def test_an_older_release_can_be_begun_with(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    (line,) = run(wish(data, metadata_version=21, features={"group.version": 1}))
    assert line.endswith("metadata.version 3.9-IV0.")
    records = read_bootstrap(DISK, data)
    assert [record.feature_level for record in records if isinstance(record, FeatureLevelRecord)] == [21, 1]


def test_without_a_bootstrap_file_the_defaults_are_used(tmp_path: Path) -> None:
    assert len(list(read_bootstrap(DISK, str(tmp_path)))) == 6


@pytest.mark.parametrize("cut", [0, 1, 83, 84, 240])
def test_a_checkpoint_that_is_not_whole_is_refused(cut: int) -> None:
    with pytest.raises(MetadataError):
        read_checkpoint(VOTERS[:cut], "cut")


def test_a_damaged_checkpoint_is_refused() -> None:
    damaged = bytearray(VOTERS)
    damaged[70] ^= 1
    with pytest.raises(MetadataError, match="fails its checksum"):
        read_checkpoint(bytes(damaged), "damaged")


def test_the_election_state_of_both_forms(tmp_path: Path) -> None:
    # As Apache Kafka 4.3.1 leaves it.
    kafkas = b'{"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    path = tmp_path / "quorum-state"
    path.write_bytes(kafkas)
    state = read_election_state(DISK, str(tmp_path))
    assert state == ElectionState(7, 1)
    write_election_state(state, DISK, str(tmp_path), 1, Voters({}))
    assert path.read_bytes() == kafkas
    write_election_state(state, DISK, str(tmp_path), 0, Voters.of([Voter(1)]))
    assert read_election_state(DISK, str(tmp_path)) == state
    for broken in (b"", b"[]", bytes(99), kafkas[:50], b'{"data_version":1}', kafkas.replace(b"7", b"null")):
        path.write_bytes(broken)
        with pytest.raises(TornState):
            read_election_state(DISK, str(tmp_path))
    path.write_bytes(b'{"data_version":7}')
    with pytest.raises(MetadataError, match="data_version 7") as newer:
        read_election_state(DISK, str(tmp_path))
    assert not isinstance(newer.value, TornState)
