"""`python -m ottla.sim history FILE`: hold a history that was written to a file against every rule."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ottla.sim.history.episode import Malformed
from ottla.sim.history.op import Op
from ottla.sim.history.verdict import judge


def main(words: Sequence[str]) -> int:
    """Print the verdict; 1 when something is wrong, 2 when the file is not a history."""
    parser = argparse.ArgumentParser(
        prog="python -m ottla.sim history", description="Look for anomalies in a history of clients."
    )
    parser.add_argument("file", type=Path, help="the history, one operation a line (JSON)")
    asked = parser.parse_args(words)
    try:
        with asked.file.open() as lines:
            verdict = judge(Op.from_line(line) for line in lines if line.strip())
    except (OSError, ValueError, KeyError, TypeError, Malformed) as error:
        sys.stderr.write(f"error: {asked.file} is no history: {error}\n")
        return 2
    sys.stdout.write(str(verdict))
    return 0 if verdict.is_sound else 1
