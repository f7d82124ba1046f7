"""`ottla storage`: prepare data directories, say what they hold, and make ids, as kafka-storage does."""

import argparse

from ottla.cli.main import FAILED, MISUSED, OK, CommandError
from ottla.cli.server import read_properties
from ottla.log.identity import IdentityError, read_identity
from ottla.node.settings import Settings
from ottla.wire.uuid import uuid_text
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
