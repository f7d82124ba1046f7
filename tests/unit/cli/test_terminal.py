"""Who is asked, what is coloured, and what cannot steer a terminal."""

import asyncio
import os
import pty
import select
import sys
import time
from collections.abc import Iterator

import pytest

from ottla.cli import terminal
from ottla.cli.consume.printing import visible
from ottla.cli.error import MISUSED, CommandError, complain
from ottla.cli.terminal import BOLD, coloured, confirm, has_colour


class Terminal:
    """A terminal with somebody at it, who types what is said beforehand."""

    def __init__(self) -> None:
        self.keyboard, theirs = pty.openpty()
        self.stdin = os.fdopen(theirs, "r")
        self.stderr = os.fdopen(os.dup(theirs), "w")

    def attach(self, patch: pytest.MonkeyPatch) -> None:
        """Be what the program is connected to; within a test, since pytest has streams of its own for each."""
        patch.setattr(sys, "stdin", self.stdin)
        patch.setattr(sys, "stderr", self.stderr)

    def read_until(self, *wanted: str) -> None:
        """Read what is shown until all of this was; a terminal hands it out in pieces."""
        seen = ""
        shown = select.poll()  # A descriptor may be beyond what select() can name.
        shown.register(self.keyboard, select.POLLIN)
        deadline = time.monotonic() + 5
        while not all(each in seen for each in wanted):
            left = deadline - time.monotonic()
            assert left > 0 and shown.poll(left * 1000), f"only {seen!r} was shown"
            seen += os.read(self.keyboard, 1000).decode()

    def type(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    def close(self) -> None:
        self.stdin.close()
        self.stderr.close()
        os.close(self.keyboard)


@pytest.fixture
def tty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("typed", "answer"), [("y\n", True), ("YES\n", True), ("\n", False), ("n\n", False), ("\x04", False)]
)
def test_somebody_is_asked(typed: str, answer: bool, tty: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    tty.attach(monkeypatch)
    tty.type(typed)
    assert asyncio.run(confirm("delete everything", yes=False)) is answer
    tty.read_until("delete everything? [y/N] ")


def test_who_has_said_so_is_not_asked() -> None:
    assert asyncio.run(confirm("delete everything", yes=True))


def test_where_nobody_is_there_it_is_a_misuse() -> None:
    with pytest.raises(CommandError, match="needs a word more") as refused:
        asyncio.run(confirm("delete everything", yes=False))
    assert refused.value.exit_code == MISUSED and "--yes" in refused.value.hint


def test_colours_are_for_terminals_that_want_them(tty: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    tty.attach(monkeypatch)
    assert coloured("x", BOLD, tty.stderr) == "\x1b[1mx\x1b[0m"
    complain("it is broken", hint="mend it")
    tty.stderr.flush()
    # The words are there without the colours.
    tty.read_until("error:\x1b[0m it is broken", "hint:\x1b[0m mend it")
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("x", BOLD, tty.stderr) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colour(tty.stderr)


def test_a_closed_stream_is_no_terminal(tty: Terminal) -> None:
    tty.stderr.close()
    assert not terminal.is_terminal(tty.stderr)


def test_a_stranger_cannot_steer_the_terminal() -> None:
    assert visible(b"\x1b]0;title\x07 \xff tab\t line\n") == b"\\x1b]0;title\\x07 \\xff tab\t line\n"
    assert visible("größe 注文\n".encode()) == "größe 注文\n".encode()
