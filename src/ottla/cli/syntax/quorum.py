"""`ottla quorum`: the controllers that keep the cluster's metadata."""

from ottla.cli.syntax.parser import Commands, Parser, command, group


def add_quorum(commands: Commands, name: str, help: str) -> None:
    """Add `ottla quorum`."""
    actions = group(commands, name, help)
    command(
        actions,
        "describe",
        "show who votes, who leads, and how far each has come",
        "ottla.cli.quorum:describe_quorum",
    )
    this = command(
        actions,
        "add-voter",
        "let a controller vote that has caught up",
        "ottla.cli.quorum:add_voter",
        more="Start it first, formatted with --no-initial-controllers: it then follows along as an observer.",
        examples="  ottla quorum add-voter 4 CONTROLLER://four.example:9093\n",
    )
    _node(this)
    this.add_argument(
        "endpoints", metavar="NAME://HOST:PORT", nargs="+", help="where its controller listeners are"
    )
    this = command(
        actions,
        "remove-voter",
        "take a controller's vote away",
        "ottla.cli.quorum:remove_voter",
        more="Stop it before, or right after: it goes on as an observer.",
    )
    _node(this)
    this.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _node(parser: Parser) -> None:
    parser.add_argument("node", metavar="NODE", type=int, help="its node id")
    parser.add_argument(
        "--directory", metavar="ID", help="the id of its metadata directory (as the quorum tells it)"
    )
