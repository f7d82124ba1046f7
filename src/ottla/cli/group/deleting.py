"""`ottla group delete`."""

import argparse

from ottla.cli.error import FAILED, OK
from ottla.cli.group.progress import forget
from ottla.cli.output.printer import remark
from ottla.cli.running import run_admin
from ottla.cli.terminal import confirm
from ottla.client import Admin
from ottla.client.errors import Refused
from ottla.wire.errors import ErrorCode


def delete_groups(options: argparse.Namespace) -> int:
    """Delete groups, or what they have committed in some topics, once that is confirmed."""

    async def command(admin: Admin) -> int:
        there = await admin.groups.list()
        for name in options.groups:
            if name not in there:
                raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, "there is no such group", about=f"group {name}")
        names = ", ".join(options.groups)
        what = (
            f"delete what {names} has committed in {', '.join(options.topics)}"
            if options.topics
            else f"delete {names}"
        )
        if options.dry_run:
            remark(f"would {what}")
            return OK
        if not await confirm(what, yes=options.yes):
            return FAILED
        if not options.topics:
            await admin.groups.delete(options.groups)
        for name in options.groups if options.topics else ():
            await forget(admin, name, there[name].kind, options.topics)
        remark("done: " + what)
        return OK

    return run_admin(options, command)
