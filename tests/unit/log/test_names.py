"""Names of files and directories, read and written."""

import pytest

from ottla.log import names


def test_a_segment_has_twenty_digits():
    assert names.segment_stem(0) == "0" * 20
    assert names.segment_stem(123_456_789_012) == "00000000123456789012"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000042.log", (42, ".log", "")),
        ("00000000000000000042.timeindex.swap", (42, ".timeindex", ".swap")),
        ("00000000000000000042.index.cleaned", (42, ".index", ".cleaned")),
        ("00000000000000000042.txnindex.deleted", (42, ".txnindex", ".deleted")),
        ("00000000000000000042.snapshot", (42, ".snapshot", "")),
        ("00000000000000000042-0000000003.checkpoint", None),
        ("partition.metadata", None),
        ("leader-epoch-checkpoint", None),
        ("42.log", None),
    ],
)
def test_a_file_name_is_read(name, expected):
    assert names.parse_segment_file(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", ("orders", 0, "")),
        ("my-topic.v2-17", ("my-topic.v2", 17, "")),
        ("orders-3.0f1e2d-delete", ("orders", 3, "-delete")),
        ("orders-3.0f1e2d-future", ("orders", 3, "-future")),
        ("my-topic.v2-3.0f1e2d-stray", ("my-topic.v2", 3, "-stray")),
        ("orders-delete", None),
        ("orders", None),
        ("-0", None),
        ("orders-x", None),
        ("recovery-point-offset-checkpoint", None),
        ("meta.properties", None),
        (".lock", None),
    ],
)
def test_a_directory_name_is_read(name, expected):
    assert names.parse_partition_dir(name) == expected


def test_a_marked_directory_fits_the_file_system():
    topic = "t" * 249
    name = names.marked_dir(topic, 12, bytes(16), names.DELETE_DIR)
    assert len(name) == 255
    assert name.endswith("-12." + "00" * 16 + "-delete")
    assert names.parse_partition_dir(name).mark == names.DELETE_DIR
