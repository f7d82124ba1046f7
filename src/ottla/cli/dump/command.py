"""`ottla dump-log`: what the files of a log say, and whether they are sound."""

import argparse
import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from ottla.cli.connection import output_form
from ottla.cli.dump import indexes, states
from ottla.cli.dump.batches import Depth, dump_batches
from ottla.cli.dump.finding import Findings, Problem
from ottla.cli.dump.meaning import meaning_of
from ottla.cli.dump.page import Page, make_page
from ottla.cli.error import FAILED, MISUSED, OK, CommandError
from ottla.log.names import LOG, SNAPSHOT, parse_partition_dir, parse_segment_file

_QUORUM_SNAPSHOT = re.compile(r"(\d{20}-\d{10}|bootstrap)\.checkpoint(\.part)?")


def dump_log(options: argparse.Namespace) -> int:
    """Print every file that is named, or lies in a directory that is; fail when something is wrong with one."""
    page = make_page(output_form(options), only_problems=options.verify)
    sound = True
    for path in _files(options.paths):
        sound &= _dump(path, options, page)
    return OK if sound else FAILED


def _files(paths: Iterable[str]) -> list[Path]:
    found: list[Path] = []
    for each in map(Path, paths):
        if not each.exists():
            raise CommandError(f"there is no file {each}", exit_code=MISUSED)
        if each.is_dir():
            inside = [path for path in sorted(each.iterdir()) if path.is_file() and _is_known(path)]
            if not inside:
                hint = "name the directory of a partition, such as ottla-data/orders-0"
                raise CommandError(f"{each} has no files of a log", hint, exit_code=MISUSED)
            found += inside
        elif not _is_known(each) and each.suffix != ".log":
            hint = "known are .log .index .timeindex .txnindex .snapshot .checkpoint, and Kafka's checkpoints by name"
            raise CommandError(f"{each} is no file of a log, by its name", hint, exit_code=MISUSED)
        else:
            found.append(each)
    return found


def _is_known(path: Path) -> bool:
    return (
        path.name in states.DUMPS
        or parse_segment_file(path.name) is not None
        or _QUORUM_SNAPSHOT.fullmatch(path.name) is not None
    )


def _dump(path: Path, options: argparse.Namespace, page: Page) -> bool:
    """Print one file; say whether it is sound."""
    page.begin(path)
    entries = problems = 0
    limited = False
    with closing(_findings(path, options)) as findings:
        for each in findings:
            if isinstance(each, Problem):
                problems += 1
                page.problem(path, each)
                continue
            if each.kind != "record":
                limited = options.count is not None and entries == options.count
                if limited:
                    break
                entries += 1
            page.found(path, each)
    page.end(path, entries, problems, limited=limited)
    return not problems


def _findings(path: Path, options: argparse.Namespace) -> Findings:
    if path.name in states.DUMPS:
        return states.DUMPS[path.name](path)
    segment = parse_segment_file(path.name)
    if segment is not None and segment.suffix == SNAPSHOT:
        return states.dump_producers(path)
    if segment is not None and segment.suffix != LOG:
        return indexes.DUMPS[segment.suffix](path, segment.base_offset)
    return _batches(path, segment.base_offset if segment else 0, options)


def _batches(path: Path, base_offset: int, options: argparse.Namespace) -> Findings:
    directory = parse_partition_dir(path.resolve().parent.name)
    is_quorum = _QUORUM_SNAPSHOT.fullmatch(path.name) is not None
    topic = "__cluster_metadata" if is_quorum else directory.topic if directory else None
    # What records mean is worth showing wherever somebody asked for it, or asked to see records.
    shown = options.records or options.values or options.decode not in ("auto", "none")
    depth = Depth(shown, options.values, meaning_of(options.decode, topic) if shown else None)
    with path.open("rb") as file:
        yield from dump_batches(file, path.stat().st_size, base_offset, depth)
