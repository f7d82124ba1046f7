"""Raft, step by step: commands, and what followed from each. Every transcript cites the rule that it proves.

A line that begins with `>` is a command of `raft_stage.py`, one with `#` is said to the reader, and the rest is what
happened. `pytest tests/transcripts --rewrite` writes what happens now.
"""

from pathlib import Path

import pytest

from tests.transcripts.raft_stage import Stage

TRANSCRIPTS = sorted((Path(__file__).parent / "raft").glob("*.txt"))


def play(text: str) -> str:
    stage, lines = Stage(), []
    for line in text.splitlines():
        if line.startswith("> "):
            lines += [line, *(f"  {each}" for each in stage.run(line[2:]))]
        elif line.startswith("#") or not line:
            lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    written = path.read_text(encoding="utf-8")
    assert written.startswith("# Rule: "), "a transcript begins with the rule it proves"
    played = play(written)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == written


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 12
