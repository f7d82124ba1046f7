"""How a dump is printed: in columns for people, one JSON object a line, or one YAML list.

Files may be of any size, so nothing is kept: columns have widths that suit what usually stands in them.
"""

import json
from pathlib import Path
from typing import Any, Protocol

from ottla.cli.dump.finding import Found, Problem
from ottla.cli.output.printer import JSON, YAML
from ottla.cli.output.table import NOTHING, cell, pad

# The columns of an entry, by its kind; what is not here is printed as name=value.
COLUMNS: dict[str, tuple[tuple[str, int], ...]] = {
    "batch": (
        ("base_offset", 11), ("last_offset", 11), ("count", 7), ("position", 10), ("size", 8), ("codec", 6),
        ("time", 24), ("leader_epoch", 5), ("producer_id", 11), ("producer_epoch", 5), ("base_sequence", 8),
        ("notes", 5),
    ),
    "entry": (),
    "producer": (
        ("producer_id", 11), ("epoch", 5), ("last_sequence", 13), ("last_offset", 11), ("time", 24),
        ("coordinator_epoch", 17), ("transaction_first_offset", 12),
    ),
    "aborted": (("producer_id", 11), ("first_offset", 12), ("last_offset", 11), ("last_stable_offset", 18)),
}  # fmt: skip
TITLES = {
    "base_offset": "first",
    "last_offset": "last",
    "leader_epoch": "epoch",
    "producer_id": "producer",
    "producer_epoch": "epoch",
    "base_sequence": "sequence",
    "transaction_first_offset": "open from",
    "coordinator_epoch": "coordinator epoch",
    "last_stable_offset": "last stable offset",
    "start_offset": "start offset",
}


class Page(Protocol):
    """Where findings go."""

    def begin(self, path: Path) -> None:
        """Begin a file."""
        ...

    def found(self, path: Path, found: Found) -> None:
        """Print an entry."""
        ...

    def problem(self, path: Path, problem: Problem) -> None:
        """Print what is wrong."""
        ...

    def end(self, path: Path, entries: int, problems: int, *, limited: bool) -> None:
        """End a file."""
        ...


def make_page(form: str, *, only_problems: bool) -> Page:
    """Return the page for a form."""
    if form in (JSON, YAML):
        return _DataPage(form, only_problems=only_problems)
    return _TextPage(only_problems=only_problems)


class _DataPage:
    def __init__(self, form: str, *, only_problems: bool) -> None:
        self._form = form
        self._only_problems = only_problems

    def begin(self, path: Path) -> None:
        pass

    def found(self, path: Path, found: Found) -> None:
        if not self._only_problems:
            self._print({"file": str(path), "kind": found.kind, **found.fields})

    def problem(self, path: Path, problem: Problem) -> None:
        self._print({"file": str(path), "kind": "problem", "problem": problem.text})

    def end(self, path: Path, entries: int, problems: int, *, limited: bool) -> None:
        if self._only_problems:
            self._print({"file": str(path), "kind": "summary", "entries": entries, "problems": problems})

    def _print(self, data: dict[str, Any]) -> None:
        if self._form == JSON:
            print(json.dumps(data, ensure_ascii=False))
        else:
            from ottla.cli.output.yaml import yaml

            print(yaml([data]), end="")


class _TextPage:
    def __init__(self, *, only_problems: bool) -> None:
        self._only_problems = only_problems
        self._files = 0
        self._heading = ""

    def begin(self, path: Path) -> None:
        self._heading = ""
        if not self._only_problems:
            if self._files:
                print()
            print(f"{path}:")
        self._files += 1

    def found(self, path: Path, found: Found) -> None:
        if self._only_problems:
            return
        if found.kind == "record":
            print(_record_line(found.fields))
            return
        columns = COLUMNS.get(found.kind)
        if columns is None:
            for name, value in found.fields.items():
                print(f"  {name}: {cell(value)}")
            return
        columns = columns or tuple((name, 24 if name in ("topic", "time") else 13) for name in found.fields)
        heading = _line([TITLES.get(name, name.replace("_", " ")) for name, _ in columns], columns).upper()
        if heading != self._heading:
            self._heading = heading
            print(heading)
        print(_line([_shown(name, found.fields[name]) for name, _ in columns], columns))

    def problem(self, path: Path, problem: Problem) -> None:
        print(f"problem: {path}: {problem.text}" if self._only_problems else f"  problem: {problem.text}")

    def end(self, path: Path, entries: int, problems: int, *, limited: bool) -> None:
        if self._only_problems:
            print(f"{path}: {entries} entries, " + (f"{problems} problems" if problems else "sound"))
        elif limited:
            print(f"  (the rest is left out after {entries})")
        elif not entries and not problems:
            print("  (empty)")


def _shown(name: str, value: Any) -> str:
    """Return a field as people read it: the -1 that stands for none is none."""
    return NOTHING if value == -1 and name != "offset" else cell(value)


_LEFT = {"codec", "time", "topic", "notes"}


def _line(cells: list[str], columns: tuple[tuple[str, int], ...]) -> str:
    parts = [
        pad(text, max(size, len(text)), right=name not in _LEFT)
        for text, (name, size) in zip(cells, columns, strict=True)
    ]
    return ("  " + "  ".join(parts)).rstrip()


def _record_line(fields: dict[str, Any]) -> str:
    head = f"      | {fields['offset']}  {cell(fields['time'])}"
    if "unreadable" in fields:
        return f"{head}  unreadable: {fields['unreadable']}" + _rest(fields, "unreadable")
    if "type" in fields:
        key = f"  {_json(fields['key'])} =" if "key" in fields else ""
        return f"{head}  {fields['type']}{key}  {_json(fields['data'])}"
    sizes = f"key {_size(fields['key_size'])}  value {_size(fields['value_size'])}  headers {fields['header_count']}"
    return f"{head}  {sizes}" + _rest(fields, "")


_COMMON = {"offset", "timestamp", "time", "key_size", "value_size", "header_count"}


def _rest(fields: dict[str, Any], told: str) -> str:
    """Return what a record says beyond its sizes, as JSON, which keeps it to a line and its texts apart."""
    rest = {name: value for name, value in fields.items() if name not in _COMMON and name != told}
    return f"  {_json(rest)}" if rest else ""


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def _size(size: int) -> str:
    return "null" if size < 0 else f"{size} B"
