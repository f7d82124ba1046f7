"""Whether somebody is there to look and to answer.

N1  Nothing is said by colour alone, and nothing is coloured where the output is not a terminal, where NO_COLOR is set,
    or where the terminal is dumb.
"""

import sys
from contextlib import aclosing
from typing import IO, Any

from ottla.cli.error import MISUSED, CommandError
from ottla.world.shell import variable

BOLD, RED = "1", "1;31"


def is_terminal(stream: IO[Any]) -> bool:
    """Say whether a stream leads to a terminal."""
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False


def has_colour(stream: IO[Any]) -> bool:
    """Say whether what goes into a stream may be coloured."""
    return is_terminal(stream) and variable("NO_COLOR") is None and variable("TERM") != "dumb"


def coloured(text: str, colour: str, stream: IO[Any]) -> str:
    """Return text in a colour, where there are colours."""
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colour(stream) else text


async def confirm(what: str, *, yes: bool) -> bool:
    """Ask whether to go on, unless that was said already; where nobody can be asked, that is a misuse."""
    from ottla.cli.stream import read_chunks

    if yes:
        return True
    if not is_terminal(sys.stdin) or not is_terminal(sys.stderr):
        raise CommandError(
            f"{what} needs a word more where nobody can be asked", "add --yes, or --dry-run to see what it would do",
            exit_code=MISUSED,
        )  # fmt: skip
    print(f"{what}? [y/N] ", end="", file=sys.stderr, flush=True)
    async with aclosing(read_chunks()) as typed:
        # A terminal hands over a line at a time.
        answer = await anext(typed, b"")
    return answer.strip().lower() in (b"y", b"yes")
