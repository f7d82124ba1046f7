"""What is to be read, from where and to where, without a group.

The end of a partition is fixed when reading begins: what is written meanwhile is not waited for.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.cli.bounds import bounds_of, partitions_of, place, time_of
from ottla.cli.error import MISUSED, CommandError
from ottla.cli.output.printer import remark
from ottla.cli.position import Anchor, Bounds, Position, resolve, unbounded
from ottla.client import Admin
from ottla.client.record import TopicPartition


class Span(NamedTuple):
    """Where to begin in a partition, and where to stop; None for never."""

    start: int
    end: int | None


class Wish(NamedTuple):
    """What the command line asks for."""

    topics: Sequence[str]
    pattern: re.Pattern[str] | None
    partitions: Sequence[int] | None
    begin: Position
    until: Position | None
    committed_only: bool


def wish_of(options: argparse.Namespace) -> Wish:
    """Read the options; CommandError says which do not fit."""
    if options.exit and options.until is not None:
        raise CommandError("--exit is --to end, so --to cannot stand beside it", exit_code=MISUSED)
    begin = place("--from", options.begin or "start")
    until = place("--to", "end" if options.exit else options.until) if options.exit or options.until else None
    if Anchor.STORED in (begin.anchor, until.anchor if until else None):
        raise CommandError("only a group has stored anything", "name it with --group", exit_code=MISUSED)
    return Wish(
        options.topics,
        topic_pattern(options.topics) if options.regex else None,
        options.partitions,
        begin,
        until,
        options.read_committed,
    )


def topic_pattern(patterns: Sequence[str]) -> re.Pattern[str]:
    """Return one pattern for several; each is for a whole name."""
    try:
        return re.compile("|".join(f"(?:{each})" for each in patterns))
    except re.error as error:
        raise CommandError(f"{' '.join(patterns)} is no pattern: {error}", exit_code=MISUSED) from None


def _say_what_lies_behind_the_end(begin: Position, bounds: Mapping[TopicPartition, Bounds]) -> None:
    for key, each in bounds.items():
        if unbounded(begin, each) > each.end:
            remark(f"{key} ends at {each.end}, before {unbounded(begin, each)}: it is read from its end")


async def topics_of(admin: Admin, wish: Wish) -> list[str]:
    """Return the topics that are wished for, as they are now."""
    if wish.pattern is None:
        return list(dict.fromkeys(wish.topics))
    listed = await admin.topics.list()
    return [name for name in listed if wish.pattern.fullmatch(name)]


async def spans_of(
    admin: Admin, wish: Wish, known: Sequence[TopicPartition] = ()
) -> dict[TopicPartition, Span]:
    """Return what to read of each partition; of those that are `known` nothing, and of the others from their start."""
    topics = await topics_of(admin, wish)
    keys = [key for key in await partitions_of(admin, topics, wish.partitions) if key not in set(known)]
    if not keys:
        return {}
    isolated = wish.committed_only
    begins = await bounds_of(admin, keys, time_of(wish.begin), committed_only=isolated)
    ends = begins
    if time_of(wish.until) is not None:
        ends = await bounds_of(admin, keys, time_of(wish.until), committed_only=isolated)
    if not known:
        _say_what_lies_behind_the_end(wish.begin, begins)
    # A partition that appears while others are read has had no records yet that could be left out.
    begin = Position(Anchor.START) if known else wish.begin
    return {
        key: Span(resolve(begin, begins[key]), resolve(wish.until, ends[key]) if wish.until else None)
        for key in keys
    }
