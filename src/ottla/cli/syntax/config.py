"""`ottla config`: settings of topics, brokers, groups and client metrics."""

from ottla.cli.syntax.parser import Commands, Parser, command, group, naming

RESOURCE = "topic/NAME, broker/ID, broker/default, group/NAME, client-metrics/NAME or broker-logger/ID"


def add_config(commands: Commands, name: str, help: str) -> None:
    """Add `ottla config`."""
    actions = group(commands, name, help)

    command(
        actions,
        "list",
        "list everything that has, or may have, settings of its own",
        "ottla.cli.config:list_resources",
    )

    this = command(
        actions,
        "describe",
        "show settings",
        "ottla.cli.config:describe_config",
        examples="  ottla config describe topic/orders\n  ottla config describe broker/1 --all --docs\n",
    )
    _resource(this)
    this.add_argument("keys", metavar="KEY", nargs="*", default=[], help="only these settings")
    this.add_argument("-a", "--all", action="store_true", help="also settings that have their default")
    this.add_argument("--docs", action="store_true", help="what each setting means")

    this = command(
        actions,
        "set",
        "change settings",
        "ottla.cli.config:set_config",
        more="Lists take += and -=, too.",
        examples="  ottla config set topic/orders retention.ms=86400000 cleanup.policy+=compact\n",
    )
    _resource(this)
    this.add_argument("pairs", metavar="KEY=VALUE", nargs="+", help="the settings")
    this.add_argument("--dry-run", action="store_true", help="check the change, and change nothing")

    this = command(
        actions, "unset", "let settings go back to their defaults", "ottla.cli.config:unset_config"
    )
    _resource(this)
    this.add_argument("keys", metavar="KEY", nargs="+", help="the settings")
    this.add_argument("--dry-run", action="store_true", help="check the change, and change nothing")


def _resource(parser: Parser) -> None:
    naming(parser.add_argument("resource", metavar="RESOURCE", help=RESOURCE), "resource")
