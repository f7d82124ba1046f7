"""The `ottla` command: finds the subcommand, runs it, and turns errors into words.

Nothing but words is imported until a subcommand is chosen, so `ottla --help` answers at once.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from ottla.cli.error import CUT_OFF, INTERRUPTED, MISUSED, CommandError, complain
from ottla.cli.syntax.root import parser

COMPLETE = "__complete"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _be_lenient()
    try:
        if given[:1] == [COMPLETE]:
            from ottla.cli.completion.words import print_words

            return print_words(given[1:])
        code = _run(parser(given).parse_args(given))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _cut_off()
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(options: argparse.Namespace) -> int:
    try:
        module, _, function = options.run.partition(":")
        code: int = getattr(importlib.import_module(module), function)(options)
        return code
    except BrokenPipeError:
        raise
    except CommandError as error:
        return complain(str(error), hint=error.hint, exit_code=error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return complain(f"{where}{error.strerror or error}")
    except Exception as error:
        explained = _explain(error, options)
        if explained is None:
            raise
        return explained


def _explain(error: Exception, options: argparse.Namespace) -> int | None:
    """Say what a client or a setting complains of; anything else is a fault of this program."""
    from ottla.metadata.settings.error import SettingError, UnknownSetting

    if isinstance(error, SettingError):
        is_client = "settings" in options or options.command == "profile"
        page = f"docs/reference/{'client-settings.md' if is_client else 'settings.md'}"
        is_unknown = isinstance(error, UnknownSetting)
        hint = error.hint or (
            f"{page} lists all there are" if is_unknown else f"{page} describes {error.name}"
        )
        return complain(str(error), allowed=error.allowed, hint=hint, exit_code=MISUSED)

    from ottla.client.errors import ClientError

    if isinstance(error, ClientError):
        return complain(error.args[0], hint=error.hint)
    return None


def _be_lenient() -> None:
    """Print what cannot be encoded as escapes, and let no name of a stranger end a command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _cut_off() -> int:
    """Whoever read our output has gone, as `head` does when it has enough."""
    from ottla.world.shell import cut_off

    cut_off(sys.stdout)
    return CUT_OFF


if __name__ == "__main__":
    sys.exit(main())
