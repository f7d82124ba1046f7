"""How records are printed: as text, as JSON or YAML, or as a template says.

V1  Text that goes to a terminal cannot steer it: what is not printable is shown as an escape. Anywhere else bytes are
    written as they are.
"""

import argparse
import sys
from collections.abc import Callable

from ottla.cli.connection import output_form
from ottla.cli.error import MISUSED, CommandError
from ottla.cli.formats.envelope import envelope, envelope_line
from ottla.cli.formats.template import TemplateError
from ottla.cli.formats.writer import Write, compile_writer, fields_template
from ottla.cli.output.printer import TABLE, YAML
from ottla.cli.output.yaml import yaml
from ottla.cli.terminal import is_terminal
from ottla.client.record import Record

_CODES = {"text": "", "hex": "{hex}", "base64": "{base64}"}


def make_writer(options: argparse.Namespace) -> Write:
    """Return what makes bytes of a record and its number; CommandError says what is wrong with the format."""
    form = output_form(options)
    format = options.format or ("text" if form == TABLE else form)
    chosen = options.fields is not None or options.key_separator is not None
    if format in ("json", YAML):
        if chosen:
            raise CommandError(
                f"{format} has every field, so --print and -K cannot stand beside it", exit_code=MISUSED
            )
        return _whole(envelope_line if format == "json" else _yaml_item)
    if "%" in format:
        if chosen:
            raise CommandError(
                "a template says itself what to print, so --print and -K cannot stand beside it",
                exit_code=MISUSED,
            )
        return _compiled(format, options.null)
    if format not in _CODES:
        hint = "there are text, json, hex, base64, and templates with % escapes such as '%k %v\\n'"
        raise CommandError(f"--format: {format} is none", hint, exit_code=MISUSED)
    write = _compiled(_template(options, _CODES[format]), options.null)
    return _visible(write) if is_terminal(sys.stdout) else write


def _template(options: argparse.Namespace, modifier: str) -> str:
    if options.fields is not None and options.key_separator is not None:
        raise CommandError("-K prints key and value, so --print cannot stand beside it", exit_code=MISUSED)
    fields = (options.fields or "value").split(",")
    separator = options.separator
    if options.key_separator is not None:
        fields, separator = ["key", "value"], options.key_separator
    try:
        delimiter: str = options.delimiter.replace("%", "%%")
        return fields_template(fields, separator, modifier) + delimiter
    except TemplateError as error:
        raise CommandError(f"--print: {error}", exit_code=MISUSED) from None


def _compiled(template: str, null: str) -> Write:
    try:
        return compile_writer(template, null.encode())
    except TemplateError as error:
        raise CommandError(
            f"--format: {error}", "ottla consume --help lists the escapes", exit_code=MISUSED
        ) from None


def _whole(encode: Callable[[Record], bytes]) -> Write:
    return lambda record, _: encode(record)


def _yaml_item(record: Record) -> bytes:
    # Items of a list, one behind the other, are one document.
    return yaml([envelope(record)]).encode("utf-8", "backslashreplace")


def _visible(write: Write) -> Write:
    def safe(record: Record, count: int) -> bytes:
        return visible(write(record, count))

    return safe


def visible(data: bytes) -> bytes:
    """Return text with what is not printable made visible; tabs and line breaks stay."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text.encode()
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode()
        for each in text
    ).encode()
