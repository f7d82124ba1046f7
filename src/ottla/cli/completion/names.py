"""Names for completion: topics and groups of the cluster that the line so far is about, and profiles.

The cluster is asked for a second at most. Whatever goes wrong, there are no names.
"""

import argparse
from collections.abc import Sequence

from ottla.cli.connection import Connection
from ottla.cli.error import CommandError
from ottla.cli.profiles import read_profiles

PATIENCE_MS = 1000
RESOURCES = ("broker/default", "broker/", "broker-logger/", "client-metrics/")


def names(what: str, before: Sequence[str]) -> list[str]:
    """Return the names of topics, groups, profiles or resources."""
    try:
        if what == "profile":
            return sorted(read_profiles().named)
        return _ask(what, before)
    except (CommandError, OSError):
        return []


def _ask(what: str, before: Sequence[str]) -> list[str]:
    from ottla.cli.running import run
    from ottla.client.admin import Admin
    from ottla.client.errors import ClientError
    from ottla.metadata.settings.error import SettingError

    found: list[str] = []
    connection = Connection(_options(before))

    async def main() -> int:
        patience = {"default.api.timeout.ms": PATIENCE_MS, "request.timeout.ms": PATIENCE_MS}
        async with Admin(connection.bootstrap, connection.settings("admin") | patience) as admin:
            if what == "group":
                found.extend(await admin.groups.list())
                return 0
            topics = list(await admin.topics.list(internal=any(word.startswith("__") for word in before)))
            if what == "topic":
                found.extend(topics)
            else:
                found.extend(f"topic/{each}" for each in topics)
                found.extend(f"group/{each}" for each in await admin.groups.list())
                found.extend(RESOURCES)
        return 0

    try:
        run(main())
    except (ClientError, SettingError):
        return []
    return found


def _options(before: Sequence[str]) -> argparse.Namespace:
    """Return what the line says of the cluster; the rest of it may be unfinished."""
    this = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    this.add_argument("-b", "--bootstrap")
    this.add_argument("--profile")
    this.add_argument("-X", action="append", default=[], dest="settings")
    try:
        options, _ = this.parse_known_args(list(before))
    except argparse.ArgumentError:
        options = argparse.Namespace(bootstrap=None, profile=None, settings=[])
    options.first_settings = []
    return options
