"""Text checkpoints, as Kafka writes and reads them."""

import pytest

from ottla.log.checkpoint import CheckpointError, read_offsets, write_offsets
from ottla.world.disk import RealDisk


def test_the_format_is_kafkas(tmp_path):
    path = tmp_path / "recovery-point-offset-checkpoint"
    write_offsets(RealDisk(), str(path), {("orders", 0): 12, ("my-topic", 31): 1 << 40})
    assert path.read_text() == f"0\n2\norders 0 12\nmy-topic 31 {1 << 40}\n"
    assert read_offsets(RealDisk(), str(path)) == {("orders", 0): 12, ("my-topic", 31): 1 << 40}


def test_an_absent_or_empty_file_has_no_entries(tmp_path):
    path = tmp_path / "x"
    assert read_offsets(RealDisk(), str(path)) == {}
    for content in ("", "0\n", "0\n0\n"):
        path.write_text(content)
        assert read_offsets(RealDisk(), str(path)) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"x\n0\n",
        b"1\n",
        b"0\n2\na 0 1\n",
        b"0\nx\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 1 2\n",
        b"0\n1\na zero 1\n",
        b"0\n1\na 0 one\n",
        b"0\n1\na 0 12",
        b"\xff\xfe\n",
    ],
)
def test_a_wrong_file_is_told(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(CheckpointError):
        read_offsets(RealDisk(), str(path))
