"""What a batch had to write is told by the offsets that Spark wrote down, and by what the source holds."""

import json
from pathlib import Path

from tests.faults.spark.ledger import Ledger

KEYS = [["a", "b", "a"], ["a"]]  # by partition and offset


def checkpoint(directory: Path) -> Ledger:
    """Three batches, of which the last is not called done."""
    for name in ("offsets", "commits"):
        (directory / name).mkdir()
    for number, ends in enumerate([{"0": 2}, {"0": 2, "1": 1}, {"0": 3, "1": 1}]):
        text = "\n".join(["v1", "{}", json.dumps({"source": ends, "#ids": {"source": "x"}})])
        (directory / "offsets" / str(number)).write_text(text)
        (directory / "offsets" / f".{number}.crc").touch()
    for number in (0, 1):
        (directory / "commits" / str(number)).touch()
    return Ledger(directory, 2)


def test_how_far_a_query_has_come(tmp_path: Path) -> None:
    assert Ledger(tmp_path, 2).committed() == [0, 0] and Ledger(tmp_path, 2).ends() == []
    ledger = checkpoint(tmp_path)
    assert ledger.committed() == [2, 1] and ledger.done() == 2
    assert ledger.ends() == [[2, 0], [2, 1], [3, 1]]


def test_what_each_batch_had_to_write(tmp_path: Path) -> None:
    ledger = checkpoint(tmp_path)
    assert ledger.expected("copy", KEYS) == {0: {("0", 0), ("0", 1)}, 1: {("1", 0)}, 2: {("0", 2)}}
    assert ledger.expected("count", KEYS) == {0: {("a", 1), ("b", 1)}, 1: {("a", 2)}, 2: {("a", 3)}}


def test_an_app_tells_of_every_change(tmp_path: Path) -> None:
    ledger = checkpoint(tmp_path)
    keys = [["a", "a", "b"], ["b"]]
    assert ledger.expected("count", keys)[0] == {("a", 2)}
    assert ledger.expected("app", keys)[0] == {("a", 1), ("a", 2)}
    assert ledger.expected("app", keys)[2] == {("b", 2)}
