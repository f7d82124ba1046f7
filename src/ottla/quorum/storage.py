"""Formatting: what a node's directories must hold before its first start.

- `meta.properties`: whose directory it is, in every directory.
- `bootstrap.checkpoint`: the features a new cluster begins with, in every directory.
- `__cluster_metadata-0/00000000000000000000-0000000000.checkpoint`: the voters of a dynamic quorum, in the metadata
  directory alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.log.identity import Identity, IdentityError, read_identity, write_identity
from ottla.metadata.content import feature_records
from ottla.metadata.feature import (
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_MAX,
    METADATA_VERSIONS,
    SUPPORTED,
    default_levels,
    missing_requirement,
)
from ottla.quorum.bootstrap import write_bootstrap
from ottla.quorum.checkpoint import checkpoint_batches
from ottla.raft.settings import TOPIC
from ottla.raft.snapshot import BOOTSTRAP_ID
from ottla.raft.voters import Address, Voter, Voters
from ottla.world.clock import Clock
from ottla.world.disk import Disk
from ottla.world.entropy import Entropy


class FormatError(Exception):
    """The directories cannot be formatted as asked; `hint` says what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Format:
    """What to format, and how.

    `standalone` are the controller's own addresses: it becomes the only voter of a dynamic quorum. `voters` are the
    first voters of one, each with its directory id. With neither, the quorum is static (`controller.quorum.voters`), or
    `dynamic` says that its voters are found later.
    """

    cluster_id: str
    node_id: int
    directories: Sequence[str]
    metadata_directory: str
    standalone: tuple[Address, ...] = ()
    voters: Voters | None = None
    dynamic: bool = False
    metadata_version: int | None = None
    features: Mapping[str, int] = field(default_factory=dict)
    ignore_formatted: bool = False

    @property
    def is_dynamic(self) -> bool:
        """True when the voters stand in the log."""
        return bool(self.standalone) or self.voters is not None or self.dynamic


def format_storage(disk: Disk, clock: Clock, entropy: Entropy, wish: Format) -> list[str]:
    """Format the directories that are not formatted yet, and say in sentences what was done."""
    if wish.node_id < 0:
        raise FormatError("You must specify a valid non-negative node ID.")
    if wish.metadata_directory not in wish.directories:
        raise FormatError(
            f"The specified metadata log directory, {wish.metadata_directory} was not one of the given directories: "
            f"{', '.join(wish.directories)}"
        )
    levels = _levels(wish)
    identities = _check_directories(disk, wish)
    empty = [directory for directory in sorted(set(wish.directories)) if identities[directory] is None]
    if not empty:
        return ["All of the log directories are already formatted."]
    taken = {identity.directory_id for identity in identities.values() if identity is not None}
    lines = []
    for directory in empty:
        directory_id = _directory_id(wish, directory, taken, entropy)
        taken.add(directory_id)
        kind = _format_one(disk, clock, wish, directory, directory_id, levels)
        release = next(each.release for each in METADATA_VERSIONS if each.level == levels[METADATA_VERSION])
        lines.append(f"Formatting {kind} {directory} with {METADATA_VERSION} {release}.")
    return lines


def _levels(wish: Format) -> dict[str, int]:
    metadata_version = wish.metadata_version
    if METADATA_VERSION in wish.features:
        if metadata_version is not None:
            raise FormatError(
                "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
            )
        metadata_version = wish.features[METADATA_VERSION]
    if metadata_version is None:
        metadata_version = METADATA_VERSION_MAX
    _check_level(METADATA_VERSION, metadata_version)
    levels = default_levels(metadata_version) | {KRAFT_VERSION: int(wish.is_dynamic)}
    for name, level in wish.features.items():
        if name not in SUPPORTED:
            known = ", ".join(sorted(FEATURES))
            raise FormatError(f"Unsupported feature: {name}. Supported features are: {known}")
        _check_level(name, level)
        if name == KRAFT_VERSION and level != int(wish.is_dynamic):
            needs = "unless" if level else "if"
            raise FormatError(
                f"Cannot set kraft.version to {level} {needs} controller.quorum.voters is empty and one of the flags "
                "--standalone, --initial-controllers, or --no-initial-controllers is used."
            )
        levels[name] = level
    for name, level in levels.items():
        reason = missing_requirement(name, level, levels)
        if reason is not None:
            raise FormatError(reason)
    return levels


def _check_level(name: str, level: int) -> None:
    low, high = SUPPORTED[name]
    if not low <= level <= high:
        raise FormatError(f"No feature:{name} with feature level {level}; known are {low} to {high}")


def _check_directories(disk: Disk, wish: Format) -> dict[str, Identity | None]:
    identities: dict[str, Identity | None] = {}
    for directory in wish.directories:
        try:
            identity = read_identity(disk, directory)
        except IdentityError as error:
            raise FormatError(str(error)) from None
        if identity is not None:
            if identity.cluster_id != wish.cluster_id:
                raise FormatError(
                    f"Invalid cluster.id in: {directory}/meta.properties. Expected {wish.cluster_id}, but read "
                    f"{identity.cluster_id}",
                    f"it is of the cluster {identity.cluster_id}: format the others for that one with "
                    "--ignore-formatted, or remove the directory with all its records",
                )
            if identity.node_id != wish.node_id:
                raise FormatError(
                    f"Invalid node.id in: {directory}/meta.properties. Expected {wish.node_id}, but read "
                    f"{identity.node_id}"
                )
            if not wish.ignore_formatted:
                raise FormatError(
                    f"Log directory {directory} is already formatted. Use --ignore-formatted to ignore this directory "
                    "and format the others.",
                    "to begin anew, remove the directory with all its records",
                )
        identities[directory] = identity
    return identities


def _directory_id(wish: Format, directory: str, taken: Iterable[bytes], entropy: Entropy) -> bytes:
    own = wish.voters.by_id.get(wish.node_id) if wish.voters is not None else None
    if own is not None and directory == wish.metadata_directory:
        return own.directory_id
    while (drawn := entropy.uuid()) in taken:
        pass
    return drawn


def _format_one(
    disk: Disk, clock: Clock, wish: Format, directory: str, directory_id: bytes, levels: dict[str, int]
) -> str:
    disk.make_dirs(directory)
    now_ms = clock.now_ms()
    first = {name: level for name, level in levels.items() if name != KRAFT_VERSION}
    write_bootstrap(disk, directory, feature_records(first), now_ms)
    kind = "data directory"
    if directory == wish.metadata_directory:
        voters = wish.voters
        if wish.standalone:
            voters = Voters.of([Voter(wish.node_id, directory_id, wish.standalone)])
        kind = "metadata directory"
        if voters is not None:
            kind = (
                "dynamic metadata voter directory"
                if wish.node_id in voters.by_id
                else "dynamic metadata directory"
            )
            _write_voters(disk, directory, voters, now_ms)
    # Last, since it is what makes a directory count as formatted.
    write_identity(disk, directory, Identity(wish.cluster_id, wish.node_id, directory_id))
    return kind


def _write_voters(disk: Disk, directory: str, voters: Voters, now_ms: int) -> None:
    path = f"{directory}/{TOPIC}-0"
    disk.make_dirs(path)
    batches = checkpoint_batches(
        (),
        metadata_version=METADATA_VERSION_MAX,
        now_ms=now_ms,
        contained_ms=now_ms,
        kraft_version=1,
        voters=voters,
    )
    disk.write_atomic(f"{path}/{BOOTSTRAP_ID.file_name}", b"".join(batches))
