"""What the shell hands to a command: variables, a place for its settings, and streams that may be cut off."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any


def variable(name: str) -> str | None:
    """Return an environment variable; an empty one counts as none."""
    return os.environ.get(name) or None


def settings_home() -> str:
    """Return the directory under which programs keep their settings, as the XDG base directories say."""
    home = variable("XDG_CONFIG_HOME")
    # The specification has relative paths ignored.
    return home if home and os.path.isabs(home) else os.path.expanduser("~/.config")


def is_file(stream: IO[Any]) -> bool:
    """Say whether a stream leads into a file, and so neither to somebody's eyes nor to another program."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def cut_off(stream: IO[Any]) -> None:
    """Lead a stream whose reader has gone into nothing, so that the interpreter's last flush finds no fault."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # no descriptor behind it, as under a test
        return


def set_variable(name: str, value: str) -> None:
    """Set an environment variable, for this process and those it starts from now on."""
    os.environ[name] = value


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for as long as it takes to start somebody."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def is_executable(path: str) -> bool:
    """Say whether there is a file that may be run."""
    return os.path.isfile(path) and os.access(path, os.X_OK)
