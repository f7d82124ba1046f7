"""`ottla reassign`: partitions on the move from broker to broker."""

from ottla.cli.syntax.kinds import count, size
from ottla.cli.syntax.parser import Commands, Parser, command, group, naming


def add_reassign(commands: Commands, name: str, help: str) -> None:
    """Add `ottla reassign`."""
    actions = group(commands, name, help)

    this = command(
        actions,
        "plan",
        "print where partitions should be, so that few move and all brokers carry as much",
        "ottla.cli.reassign.planning:print_plan",
        more="The plan is the JSON that kafka-reassign-partitions takes, too; -o yaml prints a table's worth of it.",
        examples="  ottla reassign plan orders --brokers 1,2,4 > plan.json\n"
        "  ottla reassign plan --all --brokers 1,2,3,4 > plan.json\n",
    )
    topics = this.add_argument("topics", metavar="TOPIC", nargs="*", default=[], help="the topics")
    naming(topics, "topic")
    this.add_argument("-a", "--all", action="store_true", help="every topic, internal ones too")
    this.add_argument(
        "--brokers", metavar="ID,...", help="the brokers that shall have the replicas (all that are there)"
    )
    this.add_argument("--replicas", metavar="N", type=count, help="how many replicas (as many as there are)")

    this = command(
        actions,
        "start",
        "begin to move partitions as a plan says, and show how far that is",
        "ottla.cli.reassign.moving:start_moves",
        more="It waits for the end, and then lifts the throttle; an interrupt leaves the moves going on.",
        examples="  ottla reassign start plan.json --throttle 50MB\n",
    )
    _plan(this)
    this.add_argument(
        "--throttle", metavar="BYTES", type=size, help="how much a second each broker may give, and take"
    )
    this.add_argument("--no-wait", action="store_true", help="return at once; `verify` tells the rest")

    this = command(
        actions,
        "verify",
        "show how far a plan is, and lift its throttle once it is carried out",
        "ottla.cli.reassign.moving:verify_moves",
    )
    _plan(this)
    this.add_argument("--keep-throttle", action="store_true", help="leave throttles as they are")

    this = command(
        actions,
        "cancel",
        "call moves off: replicas stay where they were",
        "ottla.cli.reassign.moving:cancel_moves",
    )
    plan = this.add_argument("plan", metavar="PLAN", nargs="?", help="the moves of this plan (all)")
    naming(plan, "file")
    this.add_argument("-y", "--yes", action="store_true", help="do not ask")

    command(
        actions, "list", "list the partitions that are on the move", "ottla.cli.reassign.moving:list_moves"
    )


def _plan(parser: Parser) -> None:
    plan = parser.add_argument("plan", metavar="PLAN", help="the file with the plan, - for stdin")
    naming(plan, "file")
