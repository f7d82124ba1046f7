"""`ottla group list`."""

import argparse

from ottla.cli.connection import output_form
from ottla.cli.error import OK
from ottla.cli.output.printer import TABLE, show, show_rows
from ottla.cli.running import run_admin
from ottla.client import Admin
from ottla.client.admin.group import GroupKind


def list_groups(options: argparse.Namespace) -> int:
    """Print groups, all or those of some states and types."""
    form = output_form(options)
    # Brokers spell states in words run together: PreparingRebalance.
    states = ["".join(word.capitalize() for word in each.split("-")) for each in options.state]

    async def command(admin: Admin) -> int:
        groups = await admin.groups.list(kinds=[GroupKind(each) for each in options.type], states=states)
        if options.quiet and form == TABLE:
            print("".join(f"{each.id}\n" for each in groups.values()), end="")
            return OK
        rows = [
            {
                "group": each.id,
                "type": each.kind.value,
                "state": each.state,
                "protocol": each.protocol_type,
                "coordinator": each.coordinator,
            }
            for each in groups.values()
        ]
        if options.quiet:
            show(form, list(groups))
            return OK
        show_rows(form, rows, ("group", "type", "state", "protocol", "coordinator"), "no groups")
        return OK

    return run_admin(options, command)
