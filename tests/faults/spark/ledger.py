"""What each batch of a query had to write, by the offsets in its checkpoint and by what the source holds."""

import json
from collections import Counter
from pathlib import Path

from tests.faults.spark.history import Place
from tests.faults.spark.queries import SOURCE


class Ledger:
    """The offset log and the commit log of a checkpoint."""

    def __init__(self, checkpoint: Path, partitions: int) -> None:
        self._checkpoint, self._partitions = checkpoint, partitions

    def ends(self) -> list[list[int]]:
        """Where each batch ended in each partition, batch 0 first."""
        numbers = _numbers(self._checkpoint / "offsets")
        assert numbers == list(range(len(numbers))), f"the checkpoint has lost batches: {numbers}"
        return [self._ends(number) for number in numbers]

    def committed(self) -> list[int]:
        """Where the last batch ended that Spark calls done."""
        done = _numbers(self._checkpoint / "commits")
        return self._ends(done[-1]) if done else [0] * self._partitions

    def done(self) -> int:
        """How many batches Spark calls done."""
        return len(_numbers(self._checkpoint / "commits"))

    def _ends(self, number: int) -> list[int]:
        line = (self._checkpoint / "offsets" / str(number)).read_text().splitlines()[2]
        by_partition = json.loads(line)[SOURCE]
        return [int(by_partition.get(str(partition), 0)) for partition in range(self._partitions)]

    def expected(self, kind: str, keys: list[list[str]]) -> dict[int, set[Place]]:
        """The rows of each batch; `keys` are those of the source, by partition and offset."""
        found: dict[int, set[Place]] = {}
        starts = [0] * self._partitions
        counts: Counter[str] = Counter()
        for batch, ends in enumerate(self.ends()):
            spans = [(n, range(start, end)) for n, (start, end) in enumerate(zip(starts, ends, strict=True))]
            if kind == "copy":
                found[batch] = {(str(partition), number) for partition, span in spans for number in span}
            else:
                there = Counter(keys[partition][number] for partition, span in spans for number in span)
                before, counts = counts, counts + there
                # An app tells of every change, a query in update mode of the last in a batch.
                first = {key: before[key] + 1 if kind == "app" else counts[key] for key in there}
                found[batch] = {(key, n) for key in there for n in range(first[key], counts[key] + 1)}
            starts = ends
        return found


def _numbers(directory: Path) -> list[int]:
    return sorted(int(each.name) for each in directory.glob("[0-9]*")) if directory.is_dir() else []
