"""Features: what a cluster has agreed to use, and which levels this software knows.

F1  No level is ever written that Apache Kafka 4.3 does not know, so it can start on a directory of ours.
F2  `kraft.version` is a level like the others to users, but lives in the quorum's control records, never in a
    FeatureLevelRecord.
"""

from collections.abc import Mapping
from typing import NamedTuple

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"


class MetadataVersion(NamedTuple):
    """One level of metadata.version; `changed` when it brought new records or fields over the level below."""

    level: int
    release: str
    changed: bool


METADATA_VERSIONS: tuple[MetadataVersion, ...] = (
    MetadataVersion(7, "3.3-IV3", True),
    MetadataVersion(8, "3.4-IV0", True),
    MetadataVersion(9, "3.5-IV0", False),
    MetadataVersion(10, "3.5-IV1", False),
    MetadataVersion(11, "3.5-IV2", True),
    MetadataVersion(12, "3.6-IV0", False),
    MetadataVersion(13, "3.6-IV1", True),
    MetadataVersion(14, "3.6-IV2", True),
    MetadataVersion(15, "3.7-IV0", True),
    MetadataVersion(16, "3.7-IV1", False),
    MetadataVersion(17, "3.7-IV2", True),
    MetadataVersion(18, "3.7-IV3", False),
    MetadataVersion(19, "3.7-IV4", False),
    MetadataVersion(20, "3.8-IV0", False),
    MetadataVersion(21, "3.9-IV0", False),
    MetadataVersion(22, "4.0-IV0", False),
    MetadataVersion(23, "4.0-IV1", True),
    MetadataVersion(24, "4.0-IV2", False),
    MetadataVersion(25, "4.0-IV3", False),
    MetadataVersion(26, "4.1-IV0", False),
    MetadataVersion(27, "4.1-IV1", False),
    MetadataVersion(28, "4.2-IV0", False),
    MetadataVersion(29, "4.2-IV1", False),
    MetadataVersion(30, "4.3-IV0", True),
)
METADATA_VERSION_MIN = METADATA_VERSIONS[0].level
METADATA_VERSION_MAX = METADATA_VERSIONS[-1].level

# The levels from which records carry what their name says.
MIGRATION_SINCE = 8
EPOCH_BUMP_ON_SHRINK_UNTIL = 11
TRANSACTIONS_SINCE = 13
CONTROLLERS_SINCE = 15
DIRECTORIES_SINCE = 17
ELR_SINCE = 23
CORDONED_SINCE = 30


class Level(NamedTuple):
    """One level of a feature: the metadata.version that makes it the default, and what it cannot do without."""

    level: int
    default_since: int
    requires: Mapping[str, int] = {}


FEATURES: Mapping[str, tuple[Level, ...]] = {
    KRAFT_VERSION: (Level(0, 7), Level(1, 21)),
    TRANSACTION_VERSION: (Level(0, 7), Level(1, 24), Level(2, 24)),
    GROUP_VERSION: (Level(0, 7), Level(1, 22)),
    ELR_VERSION: (Level(0, 7), Level(1, 26, {METADATA_VERSION: 23})),
    SHARE_VERSION: (Level(0, 7), Level(1, 28)),
    STREAMS_VERSION: (Level(0, 7), Level(1, 29)),
}

SUPPORTED: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    **{name: (levels[0].level, levels[-1].level) for name, levels in FEATURES.items()},
}


class Features(NamedTuple):
    """The finalized levels. `levels` leaves out metadata.version and features at level zero."""

    metadata_version: int = 0
    levels: Mapping[str, int] = {}

    def level(self, name: str) -> int:
        """The finalized level of a feature; zero when it is off."""
        return self.metadata_version if name == METADATA_VERSION else self.levels.get(name, 0)

    @property
    def elr(self) -> bool:
        """True when eligible leader replicas are kept (KIP-966)."""
        return self.levels.get(ELR_VERSION, 0) >= 1

    def all(self) -> dict[str, int]:
        """Every finalized feature by name, metadata.version among them."""
        return {METADATA_VERSION: self.metadata_version, **self.levels}


def default_levels(metadata_version: int = METADATA_VERSION_MAX) -> dict[str, int]:
    """The levels a new cluster starts with, kraft.version aside."""
    levels = {METADATA_VERSION: metadata_version}
    for name, known in FEATURES.items():
        if name != KRAFT_VERSION:
            levels[name] = max(level.level for level in known if level.default_since <= metadata_version)
    return levels


def release_level(release: str) -> int | None:
    """The metadata.version of a release such as `4.3`, `4.3.1` or `4.3-IV0`; None when there is none."""
    key = ".".join(release.split(".")[:2])
    found = [
        version.level
        for version in METADATA_VERSIONS
        if key in {version.release, version.release.split("-")[0]}
    ]
    return found[-1] if found else None


def metadata_changed_between(low: int, high: int) -> bool:
    """True when a level above `low`, up to `high`, brought something that `low` cannot hold."""
    return any(version.changed for version in METADATA_VERSIONS if low < version.level <= high)


def missing_requirement(name: str, level: int, proposed: Mapping[str, int]) -> str | None:
    """Why `name` cannot have `level` beside the `proposed` levels, as Kafka words it; None when it can."""
    if level >= 1 and proposed.get(METADATA_VERSION, 0) < METADATA_VERSION_MIN:
        release = METADATA_VERSIONS[0].release
        least = f"metadata.version={METADATA_VERSION_MIN} ({release})"
        return f"{name} could not be set to {level} because it depends on {least}"
    for known in FEATURES.get(name, ()):
        if known.level == level:
            for other, needed in known.requires.items():
                if proposed.get(other, 0) < needed:
                    return f"{name} could not be set to {level} because it depends on {other} level {needed}"
    return None
