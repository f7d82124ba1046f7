"""`ottla topic`: topics, their partitions and their settings."""

from ottla.cli.syntax.kinds import count, partitions
from ottla.cli.syntax.parser import Commands, Parser, command, group, naming


def add_topic(commands: Commands, name: str, help: str) -> None:
    """Add `ottla topic`."""
    actions = group(commands, name, help)
    _add_list(actions)
    _add_create(actions)
    _add_describe(actions)
    _add_alter(actions)
    _add_delete(actions)
    _add_partitions(actions)
    _add_trim(actions)


def _topics(parser: Parser, *, nargs: str = "+") -> None:
    naming(parser.add_argument("topics", metavar="TOPIC", nargs=nargs, help="the name of a topic"), "topic")


def _settings(parser: Parser) -> None:
    parser.add_argument(
        "-c",
        "--config",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of the topic; may be repeated",
    )


def _add_list(actions: Commands) -> None:
    this = command(
        actions,
        "list",
        "list topics",
        "ottla.cli.topic.listing:list_topics",
        examples="  ottla topic list\n  ottla topic list 'orders-*' -o json\n",
    )
    this.add_argument(
        "patterns",
        metavar="PATTERN",
        nargs="*",
        default=[],
        help="only topics like this, * and ? for any letters",
    )
    this.add_argument("-a", "--all", action="store_true", help="internal topics, too")
    this.add_argument("-q", "--quiet", action="store_true", help="print names only")


def _add_create(actions: Commands) -> None:
    this = command(
        actions,
        "create",
        "make topics",
        "ottla.cli.topic.changing:create_topics",
        examples="  ottla topic create orders --partitions 6\n"
        "  ottla topic create states -c cleanup.policy=compact -c min.cleanable.dirty.ratio=0.1\n",
    )
    this.add_argument("topics", metavar="TOPIC", nargs="+", help="the name of a topic to make")
    this.add_argument(
        "-p",
        "--partitions",
        metavar="N",
        type=count,
        help="how many partitions (num.partitions of the broker)",
    )
    this.add_argument(
        "-r",
        "--replication",
        metavar="N",
        type=count,
        help="how many copies of each (default.replication.factor of the broker)",
    )
    _settings(this)
    this.add_argument("--if-not-exists", action="store_true", help="be content when a topic is there already")
    this.add_argument(
        "--dry-run", action="store_true", help="check whether it could be made, and make nothing"
    )


def _add_describe(actions: Commands) -> None:
    this = command(
        actions,
        "describe",
        "show topics: their partitions, where these begin and end, and settings of their own",
        "ottla.cli.topic.describing:describe_topics",
    )
    _topics(this)


def _add_alter(actions: Commands) -> None:
    this = command(
        actions,
        "alter",
        "change settings of topics",
        "ottla.cli.topic.changing:alter_topics",
        examples="  ottla topic alter orders -c retention.ms=86400000 --unset segment.bytes\n",
    )
    _topics(this)
    _settings(this)
    this.add_argument(
        "-u",
        "--unset",
        metavar="KEY",
        action="append",
        default=[],
        help="a setting to go back to its default; may be repeated",
    )
    this.add_argument("--dry-run", action="store_true", help="check the change, and change nothing")


def _add_delete(actions: Commands) -> None:
    this = command(
        actions, "delete", "delete topics with all their records", "ottla.cli.topic.deleting:delete_topics",
        more="A name may be a pattern, with * and ? for any letters; the topics that brokers keep for themselves are "
        "only deleted by name.",
        examples="  ottla topic delete orders\n  ottla topic delete 'test-*' --dry-run\n",
    )  # fmt: skip
    _topics(this)
    this.add_argument("--if-exists", action="store_true", help="be content when a topic is not there")
    add_yes(this)


def _add_partitions(actions: Commands) -> None:
    this = command(
        actions,
        "add-partitions",
        "give topics more partitions",
        "ottla.cli.topic.changing:add_partitions",
        more="Records with a key may go elsewhere from then on.",
        examples="  ottla topic add-partitions orders --total 12\n  ottla topic add-partitions orders --add 2\n",
    )
    _topics(this)
    how_many = this.add_mutually_exclusive_group(required=True)
    how_many.add_argument("--total", metavar="N", type=count, help="how many there shall be")
    how_many.add_argument("--add", metavar="N", type=count, help="how many to add")
    this.add_argument("--dry-run", action="store_true", help="check the change, and change nothing")


def _add_trim(actions: Commands) -> None:
    this = command(
        actions,
        "trim",
        "delete the oldest records of topics",
        "ottla.cli.topic.deleting:trim_topics",
        examples="  ottla topic trim orders --before @-7d\n"
        "  ottla topic trim orders --before 1000 --partitions 0\n"
        "  ottla topic trim orders --before end --yes\n",
    )
    _topics(this)
    this.add_argument(
        "--before",
        metavar="PLACE",
        required=True,
        help="records before this go: an offset, end, +N (after the start), -N (before the end), @TIME",
    )
    this.add_argument("-p", "--partitions", metavar="0,2-4", type=partitions, help="only in these partitions")
    add_yes(this)


def add_yes(this: Parser) -> None:
    """Add what stands for the answer to `Go on?`."""
    this.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    this.add_argument("-y", "--yes", action="store_true", help="do it without asking")
