"""`ottla services`: run the HTTP services against a cluster until told to stop."""

import argparse
import logging
import sys
from collections.abc import Mapping

from ottla import __version__
from ottla.cli.connection import Connection
from ottla.cli.error import MISUSED, OK, UNAVAILABLE, CommandError
from ottla.cli.properties import overrides, read_properties
from ottla.cli.services.installed import INSTALL, are_installed
from ottla.world.parent import die_with


def run_services(options: argparse.Namespace) -> int:
    """Serve until told to stop, or until the process that started this one is gone."""
    if options.parent is not None and not die_with(options.parent):
        return OK
    if not are_installed():
        raise CommandError(
            "the HTTP services need packages that are not installed", INSTALL, exit_code=UNAVAILABLE
        )
    from ottla.http.settings import HttpSettings
    from ottla.services.process import PortTaken, Wish, run
    from ottla.services.table import SERVICES

    known = {service.name: service for service in SERVICES}
    unknown = [name for name in [*options.names, *ports(options.port)] if name not in known]
    if unknown:
        raise CommandError(
            f"there is no service {unknown[0]}", f"there is {', '.join(known)}", exit_code=MISUSED
        )
    properties = read_properties(options.config) if options.config else {}
    settings = HttpSettings(properties | overrides(options.override))
    chosen = tuple(known[name] for name in options.names or known)
    logging.basicConfig(
        level=logging.INFO if settings.has_access_log else logging.WARNING, format="%(asctime)s %(message)s"
    )
    try:
        run(Wish(chosen, Connection(options).bootstrap, settings, ports(options.port)), announce)
    except PortTaken as error:
        hint = (
            f"another process may have the port: choose another one with --port {error.service.name}=N, "
            "or with --services-port N under ottla dev"
        )
        raise CommandError(str(error), hint, exit_code=UNAVAILABLE) from None
    return OK


def ports(pairs: list[str]) -> dict[str, int]:
    """Return the ports behind `--port name=number`."""
    found = {}
    for pair in pairs:
        name, equals, number = pair.partition("=")
        if not equals or not number.isascii() or not number.isdigit() or int(number) > 65535:
            raise CommandError(f"--port {pair} is not name=number", "--port index=8080", exit_code=MISUSED)
        found[name] = int(number)
    return found


def announce(addresses: Mapping[str, str]) -> None:
    """One line to say that the services serve, and where."""
    places = ", ".join(f"{name} {address}" for name, address in addresses.items())
    print(f"Ottla {__version__}, services: {places}", file=sys.stdout, flush=True)
