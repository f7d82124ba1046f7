"""How commands fail: an exit code, a line that says what is wrong, and a hint.

Exit codes: 0 done, 1 it failed, 2 the command line or a setting is wrong, 130 interrupted.
"""

import sys

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


class CommandError(Exception):
    """A command cannot do what it was asked; shown as one line, with a hint if there is one."""

    def __init__(self, message: str, hint: str = "", *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code


def complain(message: str, *, allowed: str = "", hint: str = "", exit_code: int = FAILED) -> int:
    """Say on stderr what is wrong, what would be right, and what to try; return the exit code."""
    print(f"error: {message}", file=sys.stderr)
    if allowed:
        print(f"allowed: {allowed}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)
    return exit_code
