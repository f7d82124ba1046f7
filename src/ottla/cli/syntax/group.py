"""`ottla group`: groups, their members and their offsets."""

from ottla.cli.syntax.kinds import partitions
from ottla.cli.syntax.parser import Commands, Parser, command, group, naming
from ottla.cli.syntax.topic import add_yes

STATES = (
    "empty",
    "stable",
    "preparing-rebalance",
    "completing-rebalance",
    "assigning",
    "reconciling",
    "not-ready",
    "dead",
)
TYPES = ("classic", "consumer", "share", "streams")


def add_group(commands: Commands, name: str, help: str) -> None:
    """Add `ottla group`."""
    actions = group(commands, name, help)

    this = command(actions, "list", "list groups", "ottla.cli.group.listing:list_groups")
    this.add_argument(
        "--state",
        choices=STATES,
        action="append",
        default=[],
        help="only groups in this state; may be repeated",
    )
    this.add_argument(
        "--type", choices=TYPES, action="append", default=[], help="only groups of this type; may be repeated"
    )
    this.add_argument("-q", "--quiet", action="store_true", help="print names only")

    this = command(
        actions,
        "describe",
        "show groups: how far they have read, how much is left, and who their members are",
        "ottla.cli.group.describing:describe_groups",
    )
    _groups(this)

    this = command(
        actions,
        "reset",
        "move the offsets of a group",
        "ottla.cli.group.resetting:reset_group",
        more="The group must have no members.",
        examples="  ottla group reset billing --to start --topic orders\n"
        "  ottla group reset billing --to @2026-10-09T08:00:00Z --dry-run\n"
        "  ottla group reset billing --shift -100 --topic orders --partitions 0\n",
    )
    naming(this.add_argument("group", metavar="GROUP", help="the name of the group"), "group")
    place = this.add_mutually_exclusive_group(required=True)
    place.add_argument(
        "--to",
        metavar="PLACE",
        help="where to: start, end, an offset, +N (after the start), -N (before the end), @TIME",
    )
    place.add_argument("--shift", metavar="N", type=int, help="by how many records, back when below 0")
    naming(
        this.add_argument(
            "-t",
            "--topic",
            metavar="TOPIC",
            action="append",
            default=[],
            dest="topics",
            help="only in this topic (all that the group has read); may be repeated",
        ),
        "topic",
    )
    this.add_argument("-p", "--partitions", metavar="0,2-4", type=partitions, help="only in these partitions")
    add_yes(this)

    this = command(
        actions,
        "delete",
        "delete groups, or what they have committed in some topics",
        "ottla.cli.group.deleting:delete_groups",
    )
    _groups(this)
    naming(
        this.add_argument(
            "-t",
            "--topic",
            metavar="TOPIC",
            action="append",
            default=[],
            dest="topics",
            help="only the offsets in this topic; may be repeated",
        ),
        "topic",
    )
    add_yes(this)


def _groups(parser: Parser) -> None:
    naming(parser.add_argument("groups", metavar="GROUP", nargs="+", help="the name of a group"), "group")
