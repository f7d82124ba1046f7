"""The words that may stand next on a command line: `ottla __complete WORD...`, of which the last is being typed.

A shell that cuts words at places of its own passes the whole line instead: `ottla __complete --line 'ottla topic de'`.

The answer is one candidate a line, with a tab and a description behind it where there is one. A single line `:files`
says that the shell should offer files. Whatever goes wrong, nothing is said: a shell is no place for it.

Names of topics and groups are asked of the cluster, briefly; everything else is known without it.
"""

import argparse
import shlex
from collections.abc import Iterable, Sequence

from ottla.cli.error import OK
from ottla.cli.syntax.root import parser

FILES = ":files"
Candidates = Iterable[tuple[str, str]]


def print_words(words: Sequence[str]) -> int:
    """Print what may stand for the last of the words."""
    if words[:1] == ["--line"]:
        words = split_line(words[1] if len(words) > 1 else "")[1:]
    for word, meaning in candidates(words):
        print(f"{word}\t{meaning}" if meaning else word)
    return OK


def split_line(line: str) -> list[str]:
    """Return the words of a line up to the cursor, of which the last is being typed, and may be empty."""
    for closing in ("", "'", '"'):
        # A quote may still be open.
        try:
            return shlex.split(line + closing) + ([""] if line[-1:].isspace() and not closing else [])
        except ValueError:
            continue
    return line.split(" ")


def candidates(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return what may stand for the last of the words, with descriptions."""
    *before, last = words or [""]
    place = _Place(parser(before))
    for word in before:
        place.step(word)
    option, equals, typed = last.partition("=")
    if equals and last.startswith("--") and place.option(option) is not None:
        found = place.values(place.option(option), before)
        return [(f"{option}={word}", meaning) for word, meaning in found if word.startswith(typed)]
    return [
        (word, meaning)
        for word, meaning in place.next_words(before, last)
        if word.startswith(last) or word == FILES
    ]


class _Place:
    """Where in the grammar a command line has come to."""

    def __init__(self, root: argparse.ArgumentParser) -> None:
        self._enter(root)

    def _enter(self, this: argparse.ArgumentParser) -> None:
        self._parser = this
        self._options = {name: each for each in this._actions for name in each.option_strings}
        self._positionals = [each for each in this._actions if not each.option_strings]
        self._filled = 0
        self._waiting: argparse.Action | None = None
        self._only_positionals = False

    def option(self, name: str) -> argparse.Action | None:
        """Return an option by its name."""
        return self._options.get(name)

    def step(self, word: str) -> None:
        """Take in a word that is complete."""
        if self._waiting is not None:
            self._waiting = None
        elif word == "--" and not self._only_positionals:
            self._only_positionals = True
        elif word.startswith("-") and word != "-" and not self._only_positionals:
            action = self._options.get(word)
            if action is not None and action.nargs != 0:
                self._waiting = action
        else:
            action = self._positional()
            self._filled += 1
            if isinstance(action, argparse._SubParsersAction) and word in action.choices:
                self._enter(action.choices[word])

    def _positional(self) -> argparse.Action | None:
        """Return the positional argument that the next plain word would be; the last one may take many."""
        if self._filled < len(self._positionals):
            return self._positionals[self._filled]
        last = self._positionals[-1] if self._positionals else None
        return last if last is not None and last.nargs in ("+", "*") else None

    def next_words(self, before: Sequence[str], last: str) -> Candidates:
        """Return what may come next."""
        if self._waiting is not None:
            return self.values(self._waiting, before)
        if last.startswith("-") and not self._only_positionals:
            shown = {max(each.option_strings, key=len): each.help or "" for each in self._options.values()}
            return [
                (name, _plain(meaning)) for name, meaning in shown.items() if meaning != argparse.SUPPRESS
            ]
        return self.values(self._positional(), before)

    def values(self, action: argparse.Action | None, before: Sequence[str]) -> Candidates:
        """Return what an argument may be."""
        if action is None:
            return ()
        if isinstance(action, argparse._SubParsersAction):
            return [(each.dest, _plain(each.help or "")) for each in action._choices_actions]
        if action.choices is not None:
            return [(str(each), "") for each in action.choices]
        what = getattr(action, "naming", "")
        if what == "file":
            return [(FILES, "")]
        if not what:
            return ()
        from ottla.cli.completion.names import names

        return [(name, "") for name in names(what, before)]


def _plain(help: str) -> str:
    return help.replace("%%", "%").replace("(%(default)s)", "").rstrip()
