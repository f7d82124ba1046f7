"""What is to be produced, and how it is read."""

import argparse
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from itertools import chain
from typing import NamedTuple

from ottla.cli.amount import parse_moment
from ottla.cli.connection import pairs
from ottla.cli.error import MISUSED, CommandError
from ottla.cli.formats.entry import Entry, Reader
from ottla.cli.formats.envelope import read_envelope
from ottla.cli.formats.lines import Decode, Lines, Whole, keyed
from ottla.cli.formats.reader import TemplateReader
from ottla.cli.formats.template import TemplateError, unescape
from ottla.cli.formats.text import read_base64, read_hex
from ottla.cli.stream import STDIN, read_chunks
from ottla.wire.record import Headers
from ottla.world.clock import RealClock

_CODES: dict[str, Callable[[bytes], bytes]] = {"text": bytes, "hex": read_hex, "base64": read_base64}


class Defaults(NamedTuple):
    """What records get that do not say it themselves."""

    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp: int | None = None

    def complete(self, entry: Entry) -> Entry:
        """Return an entry with what it lacks; headers come first that are for all."""
        return Entry(
            entry.value,
            self.key if entry.key is None else entry.key,
            self.headers + entry.headers,
            self.partition if entry.partition is None else entry.partition,
            self.timestamp if entry.timestamp is None else entry.timestamp,
        )


def defaults_of(options: argparse.Namespace) -> Defaults:
    """Return what the command line says for all records."""
    timestamp = None
    if options.timestamp is not None:
        try:
            timestamp = parse_moment(options.timestamp, RealClock().now_ms())
        except ValueError as error:
            raise CommandError(f"--timestamp: {error}", exit_code=MISUSED) from None
    return Defaults(
        _bytes(options.key) if options.key is not None else None,
        tuple(
            (name, _bytes(value))
            for text in options.headers
            for name, value in pairs("--header", [text]).items()
        ),
        options.partition,
        timestamp,
    )


def make_reader(options: argparse.Namespace) -> Reader:
    """Return what reads one file, or stdin, as the format says."""
    try:
        if "%" in options.format:
            return _template_reader(options)
        decode = _decoder(options)
        return Whole(decode) if options.whole else Lines(decode, unescape(options.delimiter))
    except TemplateError as error:
        raise CommandError(
            f"--format: {error}", "ottla consume --help lists the escapes", exit_code=MISUSED
        ) from None


def _template_reader(options: argparse.Namespace) -> Reader:
    if options.whole or options.key_separator is not None:
        other = "--whole" if options.whole else "--key-separator"
        raise CommandError(
            f"a template says itself where records end, so {other} cannot stand beside it", exit_code=MISUSED
        )
    return TemplateReader(options.format, keep_partition=options.keep_partitions, empty_is_null=options.null)


def _decoder(options: argparse.Namespace) -> Decode:
    if options.format == "json":
        if options.key_separator is not None:
            raise CommandError("--key-separator cannot stand beside --format json", exit_code=MISUSED)
        return lambda line: read_envelope(line, keep_partition=options.keep_partitions)
    read = _CODES.get(options.format)
    if read is None:
        hint = "there are text, json, hex, base64, and templates with % escapes such as '%k %v\\n'"
        raise CommandError(f"--format: {options.format} is none", hint, exit_code=MISUSED)
    separator = unescape(options.key_separator) if options.key_separator is not None else None
    if separator == b"" or (not options.whole and unescape(options.delimiter) == b""):
        raise CommandError("a separator and a delimiter are at least one letter", exit_code=MISUSED)
    # With --key there is a key for lines that have none of their own.
    return keyed(separator, read, empty_is_null=options.null, keyless=options.key is not None)


async def entries(options: argparse.Namespace) -> AsyncGenerator[Iterable[Entry], None]:
    """Yield what is to be produced, as much at a time as is there."""
    for value in options.values:
        # The format counts, and no delimiter is looked for.
        this = make_reader(options) if "%" in options.format else Whole(_decoder(options))
        yield chain(this.feed(_bytes(value)), this.finish())
    if options.values:
        return
    for path in options.files or [STDIN]:
        this = make_reader(options)
        async with aclosing(read_chunks(path)) as chunks:
            async for chunk in chunks:
                yield this.feed(chunk)
        yield this.finish()


def _bytes(text: str) -> bytes:
    # What the shell passed that is no UTF-8 stays what it was.
    return text.encode("utf-8", "surrogateescape")
