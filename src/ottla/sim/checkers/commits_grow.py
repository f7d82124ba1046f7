"""G2: committed offsets never go back: whoever begins to read begins behind what was confirmed, and skips nothing."""

from ottla.sim.checkers.cluster_checker import ClusterChecker
from ottla.sim.cluster.workloads.workload import LOG


class CommitsGrow(ClusterChecker):
    """A confirmed commit is there for the next owner, and in the end."""

    rule = "G2 committed offsets never go back"

    def __init__(self) -> None:
        self._seen = 0

    def look(self) -> None:
        """Take in where readers have begun since."""
        begun = self.fleet.history.begun
        for each in begun[self._seen :]:
            self.check(
                each.offset >= each.confirmed,
                f"{each.reader} begins {each.place[0]}-{each.place[1]} at {each.offset}, and {each.group} had "
                f"{each.confirmed} committed",
            )
            # In the log every offset is a record; among transactions some are markers.
            self.check(
                each.place[0] != LOG or each.offset <= each.attempted,
                f"{each.reader} begins {each.place[0]}-{each.place[1]} at {each.offset}, and nobody in {each.group} "
                f"has been beyond {each.attempted}",
            )
        self._seen = len(begun)

    def finish(self) -> None:
        """Look at what is committed in the end."""
        self.look()
        history = self.fleet.history
        for group, place in sorted(history.confirmed):
            floor, found = history.floor(group, place), history.final_offsets.get((group, place), 0)
            self.check(
                found >= floor,
                f"{group} has {found} committed of {place[0]}-{place[1]}, and {floor} was confirmed",
            )
