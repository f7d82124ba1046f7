"""Features: what a new cluster begins with, and what depends on what."""

from ottla.metadata.directory import LOST, MIGRATING, UNASSIGNED, is_online, is_reserved
from ottla.metadata.feature import (
    FEATURES,
    METADATA_VERSION_MAX,
    METADATA_VERSIONS,
    default_levels,
    metadata_changed_between,
    missing_requirement,
    release_level,
)


def test_a_new_cluster_begins_as_kafka_4_3_does() -> None:
    assert default_levels() == {
        "metadata.version": 30,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
        "streams.version": 1,
    }


def test_an_older_release_begins_with_less() -> None:
    assert default_levels(21) == {
        "metadata.version": 21,
        "transaction.version": 0,
        "group.version": 0,
        "eligible.leader.replicas.version": 0,
        "share.version": 0,
        "streams.version": 0,
    }


def test_releases_have_levels() -> None:
    assert release_level("4.3") == release_level("4.3.1") == release_level("4.3-IV0") == 30
    assert release_level("3.7") == 19
    assert release_level("3.7-IV2") == 17
    assert release_level("9.9") is None


def test_levels_are_dense_and_end_where_kafka_4_3_ends() -> None:
    assert [each.level for each in METADATA_VERSIONS] == list(range(7, METADATA_VERSION_MAX + 1))
    assert all(levels[0].level == 0 for levels in FEATURES.values())


def test_a_downgrade_over_a_change_of_metadata_is_seen() -> None:
    assert metadata_changed_between(29, 30)
    assert not metadata_changed_between(26, 29)
    assert metadata_changed_between(21, 29)


def test_requirements() -> None:
    assert missing_requirement("eligible.leader.replicas.version", 1, {"metadata.version": 23}) is None
    reason = missing_requirement("eligible.leader.replicas.version", 1, {"metadata.version": 22})
    assert reason is not None
    assert reason.endswith("because it depends on metadata.version level 23")


def test_reserved_directories() -> None:
    real = bytes([7] * 16)
    assert is_reserved(LOST)
    assert not is_reserved(real)
    assert is_online(UNASSIGNED, [real])
    assert is_online(MIGRATING, [real])
    assert not is_online(LOST, [real])
    assert is_online(real, [real])
    assert not is_online(bytes([8] * 16), [real])
    assert is_online(real, [])
