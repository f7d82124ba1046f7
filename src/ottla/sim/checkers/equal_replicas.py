"""L2: below the high watermark the bytes of all replicas are the same, and stay so."""

from zlib import crc32

from ottla.sim.checkers.cluster_checker import ClusterChecker
from ottla.sim.cluster.history import Place
from ottla.wire.batch import scan


class EqualReplicas(ClusterChecker):
    """Whatever any replica has shown to be committed, all have from then on, byte for byte."""

    rule = "L2 equal bytes below the high watermark"

    def __init__(self) -> None:
        # Batches by their offset, and how far each life of each replica was looked at.
        self._known: dict[tuple[bytes, int], dict[int, tuple[int, int]]] = {}
        self._seen: dict[tuple[int, int, bytes, int], int] = {}

    def look(self) -> None:
        """Look at what was committed since."""
        fleet = self.fleet
        for place in fleet.places():
            for id, partition in fleet.replicas(place).items():
                key = (id, fleet.machines[id].life, partition.topic_id, partition.index)
                seen = self._seen.get(key, partition.log.start_offset)
                if partition.high_watermark > seen:
                    self._seen[key] = self._compare(id, place, seen)

    finish = look

    def _compare(self, id: int, place: Place, start_offset: int) -> int:
        partition = self.fleet.replicas(place)[id]
        known = self._known.setdefault((partition.topic_id, partition.index), {})
        where = f"{place[0]}-{place[1]} of node {id}"
        committed = partition.high_watermark
        self.check(
            committed <= partition.log.end_offset,
            f"{where} ends at {partition.log.end_offset}, with {committed} committed",
        )
        data = partition.log.read(start_offset, 1 << 30, committed)
        end_offset = start_offset
        for position, batch in scan(data):
            if batch.end_offset > committed:
                break
            found = (batch.end_offset, crc32(bytes(data[position : position + batch.size])))
            before = known.setdefault(batch.base_offset, found)
            self.check(
                before == found,
                f"{where} has another batch at {batch.base_offset} than was committed there: ends at and sums to "
                f"{found}, was {before}",
            )
            end_offset = batch.end_offset
        return end_offset
