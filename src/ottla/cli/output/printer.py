"""Prints a result in the form that was asked for: `-o table`, `json` or `yaml`.

P1  All forms say the same; JSON and YAML have every field under its own name, a table the ones worth a column.
P2  Results go to stdout and nothing else does; remarks go to stderr.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.cli.output.table import Column, facts, table
from ottla.cli.output.yaml import yaml

TABLE, JSON, YAML = FORMS = ("table", "json", "yaml")


class Listing(NamedTuple):
    """Rows under headings; `nothing` is said instead when there are none."""

    rows: Sequence[Mapping[str, Any]]
    columns: Sequence[Column | str]
    title: str = ""
    nothing: str = ""


class Facts(NamedTuple):
    """Names and values of one thing."""

    pairs: Mapping[str, Any]
    title: str = ""


View = Listing | Facts


def show(form: str, data: Any, *views: View) -> None:
    """Print `data` as JSON or YAML, or else the views of it, one below the other."""
    if form == JSON:
        print(json.dumps(data, indent=2, ensure_ascii=False))
    elif form == YAML:
        print(yaml(data), end="")
    else:
        _show_tables([view for view in views if not _is_silent(view)])


def show_rows(
    form: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column | str], nothing: str = ""
) -> None:
    """Print a list of things."""
    show(form, rows, Listing(rows, columns, nothing=nothing))


def remark(text: str) -> None:
    """Say something that is not part of the result."""
    print(text, file=sys.stderr)


def _is_silent(view: View) -> bool:
    """Whether there is nothing to show, which is then said on stderr."""
    if not isinstance(view, Listing) or view.rows or not view.nothing:
        return False
    remark(view.nothing)
    return True


def _show_tables(views: Sequence[View]) -> None:
    for number, view in enumerate(views):
        if number:
            print()
        if view.title:
            print(view.title)
        lines = table(view.rows, view.columns) if isinstance(view, Listing) else facts(view.pairs)
        print("\n".join(lines))
