"""The parser of the command line: argparse, with our way of saying what is wrong, and no guessing of options."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ottla.cli.error import MISUSED

Commands = Any  # argparse's name for it is private
CLUSTER_OPTIONS = "options of every command that talks to a cluster"


class Parser(argparse.ArgumentParser):
    """A command, or the root of them all."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", Formatter)
        super().__init__(**options)
        self._mixes = False

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; what is left over is an error of the command that was named, which its hint speaks of."""
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            self._named(found).error(f"unrecognized arguments: {' '.join(rest)}")
        return found

    def _named(self, found: argparse.Namespace) -> "Parser":
        for each in self._actions:
            if isinstance(each, argparse._SubParsersAction):
                below = each.choices.get(getattr(found, each.dest, ""))
                if isinstance(below, Parser):
                    return below._named(found)
        return self

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        """Refuse an option that this command does not have before anything else that may be wrong because of it."""
        below = next((each for each in self._actions if isinstance(each, argparse._SubParsersAction)), None)
        for word in words:
            if word == "--" or (below is not None and word in below.choices):
                return
            name = word.partition("=")[0]
            if word.startswith("--") and " " not in word and name not in self._option_string_actions:
                from ottla.cli.syntax.foreign import meant

                hint = meant(self, name) or f"{self.prog} --help"
                self.exit(MISUSED, f"error: there is no option {name} here\nhint: {hint}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; names that come in any number may stand before, between and behind options."""
        if not self._mixes:
            self._refuse_unknown(sys.argv[1:] if args is None else args)
        many = any(not each.option_strings and each.nargs in ("*", "+") for each in self._actions)
        if self._mixes or not many:
            return super().parse_known_args(args, namespace)
        self._mixes = True  # it parses in two rounds, by way of this method
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixes = False

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where to read what would be right."""
        hint = f"{self.prog} --help"
        given, _, offered = message.partition(" (choose from ")
        if offered and "invalid choice: " in given:
            message = given
            hint = _nearest(given, offered) or hint
        self.exit(MISUSED, f"error: {message}\nhint: {hint}\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Leave, with a message on stderr where there is one."""
        if message:
            sys.stderr.write(message)
        sys.exit(status)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help with room for the names of options, and examples as they are written."""

    def __init__(self, prog: str, **options: Any) -> None:
        options.setdefault("max_help_position", 32)
        super().__init__(prog, **options)


def _nearest(given: str, offered: str) -> str:
    import difflib

    word = given.rpartition("invalid choice: ")[2].strip("'")
    choices = [each.strip(" '") for each in offered.rstrip(")").split(",")]
    near = difflib.get_close_matches(word, choices, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(choices)}"


def group(commands: Commands, name: str, help: str) -> Commands:
    """Add a command that has actions, and return what those are added to."""
    parser = commands.add_parser(name, help=help, description=sentence(help))
    return parser.add_subparsers(dest="action", metavar="action", required=True, parser_class=Parser)


def command(
    commands: Commands,
    name: str,
    help: str,
    run: str,
    *,
    more: str = "",
    examples: str = "",
    cluster: bool = True,
) -> Parser:
    """Add a command that does something, with the options that reach a cluster unless it needs none."""
    parser: Parser = commands.add_parser(
        name,
        help=help,
        description=f"{sentence(help)} {more}".rstrip(),
        epilog=f"examples:\n{examples.rstrip()}" if examples else None,
    )
    parser.set_defaults(run=run)
    if cluster:
        add_cluster_options(parser)
    return parser


def naming(action: argparse.Action, what: str) -> None:
    """Say that an argument names a topic, a group, a profile or a file, so that a shell can complete it."""
    action.naming = what  # type: ignore[attr-defined]


def sentence(help: str) -> str:
    """Return the words of a list of commands as a sentence."""
    return f"{help[0].upper()}{help[1:]}."


def add_cluster_options(parser: argparse.ArgumentParser, *, root: bool = False) -> None:
    """Add what every command has that talks to a cluster; at the root they may stand before the command, too."""
    default: Any = None if root else argparse.SUPPRESS
    options = parser.add_argument_group(CLUSTER_OPTIONS)
    options.add_argument(
        "-b", "--bootstrap", metavar="HOST:PORT,...", default=default,
        help="where the cluster is (OTTLA_BOOTSTRAP, or the profile's, or localhost:9092)",
    )  # fmt: skip
    options.add_argument(
        "--profile",
        metavar="NAME",
        default=default,
        help="the profile to use (OTTLA_PROFILE, or the current one)",
    )
    options.add_argument(
        "-X", metavar="KEY=VALUE", action="append", default=[], dest="first_settings" if root else "settings",
        help="a setting of the client, by Kafka's name; may be repeated",
    )  # fmt: skip
    add_output_option(options, root=root)


def add_output_option(parser: Any, *, root: bool = False) -> None:
    """Add the choice of form."""
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default=None if root else argparse.SUPPRESS,
        help="the form of what is printed (the profile's, or table)",
    )  # fmt: skip
