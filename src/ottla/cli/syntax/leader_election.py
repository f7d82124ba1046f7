"""`ottla leader-election`."""

from ottla.cli.syntax.kinds import partitions
from ottla.cli.syntax.parser import Commands, command, naming


def add_leader_election(commands: Commands, name: str, help: str) -> None:
    """Add `ottla leader-election`."""
    this = command(
        commands,
        name,
        help,
        "ottla.cli.leader_election:elect_leaders",
        more="The preferred leader is the first of a partition's replicas; it leads if it is in sync.",
        examples="  ottla leader-election --all\n  ottla leader-election orders -p 0,2 --unclean --yes\n",
    )
    topics = this.add_argument("topics", metavar="TOPIC", nargs="*", default=[], help="of these topics")
    naming(topics, "topic")
    this.add_argument("-a", "--all", action="store_true", help="of every topic")
    this.add_argument(
        "-p", "--partitions", metavar="N,...", type=partitions, help="only these partitions, as 0,2-4"
    )
    this.add_argument(
        "--unclean",
        action="store_true",
        help="where nobody in sync is left, take whoever is there: records may be lost",
    )
    this.add_argument("-y", "--yes", action="store_true", help="do not ask")
