"""`ottla profile`: named clusters."""

from ottla.cli.syntax.parser import Commands, Parser, add_output_option, command, group, naming


def add_profile(commands: Commands, name: str, help: str) -> None:
    """Add `ottla profile`."""
    actions = group(commands, name, help)

    this = command(actions, "list", "list profiles", "ottla.cli.profile:list_profiles", cluster=False)
    add_output_option(this)

    this = command(
        actions, "show", "show what a profile says", "ottla.cli.profile:show_profile", cluster=False
    )
    naming(
        this.add_argument("name", metavar="NAME", nargs="?", help="the profile (the current one)"), "profile"
    )
    add_output_option(this)

    this = command(
        actions,
        "use",
        "choose the profile that counts from now on",
        "ottla.cli.profile:use_profile",
        cluster=False,
    )
    _name(this)

    this = command(
        actions,
        "set",
        "make a profile or change it",
        "ottla.cli.profile:set_profile",
        more="An empty value takes a setting away.",
        examples="  ottla profile set local bootstrap=localhost:9092\n"
        "  ottla profile set production bootstrap=kafka-1:9092,kafka-2:9092 output=json client.id=operations\n",
        cluster=False,
    )
    _name(this)
    this.add_argument(
        "pairs",
        metavar="KEY=VALUE",
        nargs="+",
        help="bootstrap, output, or any setting of a client by Kafka's name",
    )

    this = command(actions, "delete", "forget a profile", "ottla.cli.profile:delete_profile", cluster=False)
    _name(this)


def _name(parser: Parser) -> None:
    naming(parser.add_argument("name", metavar="NAME", help="the name of the profile"), "profile")
