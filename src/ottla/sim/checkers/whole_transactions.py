"""T1: a read-committed reader sees all of a transaction or nothing; what is copied in transactions is copied once."""

from ottla.sim.checkers.cluster_checker import ClusterChecker
from ottla.sim.cluster.history import DONE, UNDONE
from ottla.sim.cluster.workloads.workload import LOG, OUT


class WholeTransactions(ClusterChecker):
    """A committed transaction is there wholly, an aborted one not at all, any other one way or the other."""

    rule = "T1 all of a transaction or nothing"

    def finish(self) -> None:
        """Compare the history with what there is."""
        history = self.fleet.history
        there = {value: place for place, records in history.final_committed.items() for _, value in records}
        shown = {read.value for read in history.reads}
        for number, transaction in enumerate(history.transactions):
            values = [value for _, value in transaction.values]
            found = [value for value in values if value in there]
            name = f"transaction {number} of {transaction.sender}"
            if transaction.outcome == DONE:
                self.check(len(found) == len(values), f"{name} was committed, and has {found} of {values}")
            elif transaction.outcome == UNDONE:
                self.check(not found, f"{name} was aborted, and {found} is there")
                seen = [value for value in values if value in shown]
                self.check(not seen, f"{name} was aborted, and {seen} was read")
            else:
                self.check(len(found) in (0, len(values)), f"{name} is there in part: {found} of {values}")
        self._check_copies()

    def _check_copies(self) -> None:
        history = self.fleet.history
        if not history.transactions:
            return
        copies: dict[bytes, bytes] = {}
        for place, records in history.final_committed.items():
            if place[0] == OUT:
                for _, value in records:
                    original = value.partition(b"|")[2]
                    self.check(
                        original not in copies,
                        f"{original!r} was copied twice, as {copies.get(original)!r} and {value!r}",
                    )
                    copies[original] = value
        for place, records in history.final.items():
            if place[0] == LOG:
                for offset, value in records:
                    self.check(
                        value in copies, f"{value!r} at {offset} of {place[0]}-{place[1]} was not copied"
                    )
