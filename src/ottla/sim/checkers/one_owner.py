"""G1: no partition has two owners in a generation of a group."""

from typing import TYPE_CHECKING

from ottla.sim.checkers.cluster_checker import ClusterChecker

if TYPE_CHECKING:
    from ottla.sim.cluster.history import Place


class OneOwner(ClusterChecker):
    """Two members that have reached the same generation share nothing."""

    rule = "G1 one owner a generation"

    def __init__(self) -> None:
        self._owners: dict[tuple[str, int, Place], str] = {}
        self._seen = 0

    def look(self) -> None:
        """Take in what members were given since."""
        owned = self.fleet.history.owned
        for each in owned[self._seen :]:
            for place in sorted(each.places):
                before = self._owners.setdefault((each.group, each.generation, place), each.member)
                self.check(
                    before == each.member,
                    f"{place[0]}-{place[1]} is owned by {before} and {each.member} ({each.life}) in generation "
                    f"{each.generation} of {each.group}",
                )
        self._seen = len(owned)

    finish = look
