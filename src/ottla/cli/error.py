"""How commands fail: an exit code, a line that says what is wrong, and a hint.

Exit codes: 0 done, 1 it failed, 2 the command line or a setting is wrong, 69 something it cannot do without is not
there, as a port or a package, 130 interrupted, 141 nobody reads its output
any more, 143 told to end. The last three are what a shell makes of the signals, and nothing is said about them.
"""

import sys

OK, FAILED, MISUSED = 0, 1, 2
UNAVAILABLE = 69
INTERRUPTED, CUT_OFF, TERMINATED = 130, 141, 143


class CommandError(Exception):
    """A command cannot do what it was asked; shown as one line, with a hint if there is one."""

    def __init__(self, message: str, hint: str = "", *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code


def complain(message: str, *, allowed: str = "", hint: str = "", exit_code: int = FAILED) -> int:
    """Say on stderr what is wrong, what would be right, and what to try; return the exit code."""
    from ottla.cli.terminal import BOLD, RED, coloured

    print(f"{coloured('error:', RED, sys.stderr)} {message}", file=sys.stderr)
    if allowed:
        print(f"{coloured('allowed:', BOLD, sys.stderr)} {allowed}", file=sys.stderr)
    if hint:
        print(f"{coloured('hint:', BOLD, sys.stderr)} {hint}", file=sys.stderr)
    return exit_code
