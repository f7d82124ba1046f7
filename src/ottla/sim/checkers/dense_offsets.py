"""L1: offsets are dense and growing, in the log of every replica."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.sim.checkers.cluster_checker import ClusterChecker
from ottla.wire.batch import Batch, scan

if TYPE_CHECKING:
    from ottla.log.log import Log


class DenseOffsets(ClusterChecker):
    """Each batch begins where the one before it ends, and has as many records as offsets."""

    rule = "L1 offsets are dense and growing"

    def finish(self) -> None:
        """Go through every log."""
        for place in self.fleet.places():
            for id, partition in self.fleet.replicas(place).items():
                log = partition.log
                expected, epoch = log.start_offset, -1
                for batch in _batches(log):
                    where = f"node {id} has in {place[0]}-{place[1]}"
                    self.check(
                        batch.base_offset == expected,
                        f"{where} a batch at {batch.base_offset} where {expected} was next",
                    )
                    self.check(
                        batch.partition_leader_epoch >= epoch,
                        f"{where} a batch of epoch {batch.partition_leader_epoch} behind one of {epoch}",
                    )
                    expected, epoch = batch.end_offset, batch.partition_leader_epoch
                self.check(
                    expected == log.end_offset,
                    f"{place[0]}-{place[1]} of node {id} ends at {log.end_offset}, and its batches at {expected}",
                )


def _batches(log: "Log") -> Iterator[Batch]:
    """Every batch, one segment after the other."""
    offset = log.start_offset
    while offset < log.end_offset:
        found = [batch for _, batch in scan(log.read(offset, 1 << 30, log.end_offset))]
        if not found:
            return
        yield from found
        offset = found[-1].end_offset
