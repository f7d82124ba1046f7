"""`ottla profile`: named clusters."""

import argparse

from ottla.cli.connection import addresses, output_form, pairs
from ottla.cli.error import MISUSED, OK, CommandError
from ottla.cli.output.printer import Facts, show, show_rows
from ottla.cli.profiles import NAME, Profile, assign, read_profiles
from ottla.metadata.settings.error import SettingError


def list_profiles(options: argparse.Namespace) -> int:
    """Print every profile, the current one marked."""
    profiles = read_profiles()
    rows = [
        {"name": name, "current": name == profiles.current, **profile.document()}
        for name, profile in sorted(profiles.named.items())
    ]
    columns = ("name", "current", "bootstrap", "output", "settings")
    show_rows(output_form(options), rows, columns, f"no profiles in {profiles.path}")
    return OK


def show_profile(options: argparse.Namespace) -> int:
    """Print one profile."""
    profiles = read_profiles()
    name = options.name or profiles.current
    if name is None:
        raise CommandError(
            f"no profile is current in {profiles.path}", "name one, or choose one with ottla profile use"
        )
    data = {"name": name, **profiles.get(name).document()}
    show(output_form(options), data, Facts(data))
    return OK


def use_profile(options: argparse.Namespace) -> int:
    """Make a profile the current one."""
    profiles = read_profiles()
    profiles.get(options.name)
    profiles.current = options.name
    profiles.save()
    return OK


def set_profile(options: argparse.Namespace) -> int:
    """Make a profile, or change one. The first of all becomes the current one."""
    if NAME.fullmatch(options.name) is None:
        hint = "letters, digits, dots, dashes and underscores make a name"
        raise CommandError(f"{options.name} is no name for a profile", hint, exit_code=MISUSED)
    profiles = read_profiles()
    if not profiles.named:
        profiles.current = options.name
    profile = profiles.named.setdefault(options.name, Profile())
    for name, value in pairs("a setting", options.pairs).items():
        _check(name, value)
        try:
            assign(profile, name, value or None)
        except ValueError as error:
            raise CommandError(str(error), exit_code=MISUSED) from None
    profiles.save()
    return OK


def delete_profile(options: argparse.Namespace) -> int:
    """Forget a profile; when it was the current one, none is."""
    profiles = read_profiles()
    profiles.get(options.name)
    del profiles.named[options.name]
    if profiles.current == options.name:
        profiles.current = None
    profiles.save()
    return OK


def _check(name: str, value: str) -> None:
    """Refuse what no client knows or takes, while it is easy to mend."""
    from ottla.cli.profiles import OWN
    from ottla.client.settings.resolve import TABLES, typed
    from ottla.metadata.settings.error import UnknownSetting
    from ottla.metadata.settings.rule import Servers

    tables = [table for table in TABLES.values() if name in table]
    if not tables and name not in OWN:
        raise UnknownSetting("client", name, [*OWN, *{each for table in TABLES.values() for each in table}])
    if not value:
        return
    if name in ("bootstrap", "bootstrap.servers"):
        Servers().check("bootstrap.servers", tuple(addresses(name, value).split(",")))
    elif name not in OWN:
        # It may be of a few kinds of clients, one of which takes it.
        refusals = []
        for table in tables:
            try:
                typed(table[name], value)
            except SettingError as error:
                refusals.append(error)
        if len(refusals) == len(tables):
            raise refusals[0]
