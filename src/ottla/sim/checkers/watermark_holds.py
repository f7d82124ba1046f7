"""L3: the high watermark never falls within an epoch."""

from ottla.sim.checkers.cluster_checker import ClusterChecker


class WatermarkHolds(ClusterChecker):
    """A leader never takes back that something is committed; nor does the next one have less than was."""

    rule = "L3 the watermark never falls within an epoch"

    def __init__(self) -> None:
        self._of_epoch: dict[tuple[bytes, int, int], int] = {}

    def look(self) -> None:
        """Look at every leader."""
        fleet = self.fleet
        for place in fleet.places():
            for id, partition in fleet.replicas(place).items():
                if not partition.is_leader:
                    continue
                key = (partition.topic_id, partition.index, partition.leader_epoch)
                before, now = self._of_epoch.get(key, 0), partition.high_watermark
                self.check(
                    now >= before,
                    f"node {id}, which leads {place[0]}-{place[1]} in epoch {partition.leader_epoch}, "
                    f"goes from {before} committed back to {now}",
                )
                self._of_epoch[key] = now
