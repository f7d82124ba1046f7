"""G3: while a partition is a member's, it is handed every record of it once, in order."""

from ottla.sim.checkers.cluster_checker import ClusterChecker


class ReadsInARow(ClusterChecker):
    """No record is skipped, and none is handed out again, as long as nobody seeks."""

    rule = "G3 a member reads in a row"

    def look(self) -> None:
        """Look at what readers were handed out of turn."""
        for jump in self.fleet.history.jumps:
            where = f"{jump.place[0]}-{jump.place[1]}"
            self.check(
                False, f"{jump.reader} was handed {jump.offset} of {where}, and {jump.expected} was next"
            )

    finish = look
