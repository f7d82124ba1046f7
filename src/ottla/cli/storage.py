"""`ottla storage`: prepare data directories, say what they hold, and make ids, as kafka-storage does."""

import argparse
import re

from ottla.cli.error import FAILED, MISUSED, OK, CommandError
from ottla.cli.properties import read_properties
from ottla.log.identity import IdentityError, read_identity
from ottla.metadata.feature import METADATA_VERSIONS, release_level
from ottla.node.settings import Settings
from ottla.quorum.storage import Format, FormatError, format_storage
from ottla.raft.voters import Address, Voter, Voters
from ottla.wire.errors import ProtocolError
from ottla.wire.uuid import uuid_bytes, uuid_text
from ottla.world.clock import RealClock
from ottla.world.disk import RealDisk
from ottla.world.entropy import RealEntropy


def run_storage(options: argparse.Namespace) -> int:
    """Run one of the storage actions."""
    if options.action == "random-uuid":
        print(uuid_text(RealEntropy().uuid()))
        return OK
    settings = Settings.from_properties(read_properties(options.config))
    if options.action == "info":
        return show(settings)
    return prepare(settings, options)


def show(settings: Settings) -> int:
    """Print whose directories these are, then every problem with them; fail when there is one."""
    disk = RealDisk()
    problems: list[str] = []
    found = []
    for path in settings.directories:
        if not disk.is_dir(path):
            problems.append(f"{path} is not a directory" if disk.exists(path) else f"{path} does not exist")
            continue
        try:
            identity = read_identity(disk, path)
        except IdentityError as error:
            problems.append(str(error))
            continue
        if identity is None:
            problems.append(f"{path} is not formatted")
            continue
        found.append(identity)
        print(f"{path}: cluster {identity.cluster_id}, node {identity.node_id}, ", end="")
        print(f"directory {uuid_text(identity.directory_id)}")
    if len({each.cluster_id for each in found}) > 1:
        problems.append("the directories belong to different clusters")
    if {each.node_id for each in found} - {settings.node_id}:
        problems.append(f"a directory belongs to another node than {settings.node_id}")
    for problem in problems:
        print(f"problem: {problem}")
    return FAILED if problems else OK


def features(pairs: list[str]) -> dict[str, int]:
    """The levels behind `--feature name=level`."""
    levels = {}
    for pair in pairs:
        name, _, level = (part.strip() for part in pair.partition("="))
        if not name or not level.isascii() or not level.isdigit() or int(level) > 32767:
            raise CommandError(
                f"--feature {pair} is not name=level", "--feature metadata.version=29", exit_code=MISUSED
            )
        levels[name] = int(level)
    return levels


def prepare(settings: Settings, options: argparse.Namespace) -> int:
    """Format the directories as the options say, and print what was done."""
    fixed = bool(settings.voters)
    chosen = options.standalone or options.initial_controllers or options.no_initial_controllers
    if fixed and chosen:
        raise CommandError(
            "controller.quorum.voters fixes the voters, so they cannot be chosen here as well",
            "for a quorum that can change, set controller.quorum.bootstrap.servers instead",
            exit_code=MISUSED,
        )
    if settings.is_controller and not fixed and not chosen:
        raise CommandError(
            "controller.quorum.voters is not set, so it must be said who votes",
            "--standalone makes this node the only voter",
            exit_code=MISUSED,
        )
    wish = Format(
        cluster_id=options.cluster_id,
        node_id=settings.node_id,
        directories=settings.directories,
        metadata_directory=settings.metadata_log_dir,
        standalone=own_addresses(settings) if options.standalone else (),
        voters=initial_voters(options.initial_controllers, settings) if options.initial_controllers else None,
        dynamic=not fixed,
        metadata_version=level_of(options.release_version) if options.release_version else None,
        features=features(options.feature),
        ignore_formatted=options.ignore_formatted,
    )
    try:
        for line in format_storage(RealDisk(), RealClock(), RealEntropy(), wish):
            print(line)
    except FormatError as error:
        raise CommandError(str(error), error.hint) from None
    return OK


def own_addresses(settings: Settings) -> tuple[Address, ...]:
    """Where this node's controller can be reached."""
    return tuple(
        Address(each.name, each.host or "localhost", each.port) for each in settings.advertised_controllers
    )


def initial_voters(text: str, settings: Settings) -> Voters:
    """The voters behind `--initial-controllers id@host:port:directory-id,...`."""
    listener = settings.controller_names[0]
    voters = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d+)@\[?([^\s@\[\]]+)\]?:(\d+):([\w-]+)", entry, re.ASCII)
        try:
            if not match:
                raise ProtocolError("not a voter")
            voter_id, host, port, directory = match.groups()
            voters.append(Voter(int(voter_id), uuid_bytes(directory), (Address(listener, host, int(port)),)))
        except ProtocolError as error:
            raise CommandError(
                f"--initial-controllers {entry}: {error}",
                "a voter is written id@host:port:directory-id",
                exit_code=MISUSED,
            ) from None
    return Voters.of(voters)


def level_of(release: str) -> int:
    """The metadata.version of a Kafka release."""
    level = release_level(release)
    if level is None:
        newest = METADATA_VERSIONS[-1].release
        raise CommandError(
            f"--release-version {release} is not a release", f"the newest is {newest}", exit_code=MISUSED
        )
    return level
