"""P2: an idempotent producer's records appear once, in the order in which they were sent."""

from typing import TYPE_CHECKING

from ottla.sim.checkers.cluster_checker import ClusterChecker

if TYPE_CHECKING:
    from ottla.sim.cluster.history import Place


class OnceInOrder(ClusterChecker):
    """Nothing twice, nothing before what was sent earlier, and nothing that nobody sent."""

    rule = "P2 once and in order"

    def finish(self) -> None:
        """Go through what there is."""
        history = self.fleet.history
        order = {sent.value: (number, sent) for number, sent in enumerate(history.sent)}
        latest: dict[tuple[str, Place], int] = {}
        for place, records in history.final.items():
            seen: dict[bytes, int] = {}
            for offset, value in records:
                where = f"{value!r} at {offset} of {place[0]}-{place[1]}"
                self.check(value not in seen, f"{where} is also at {seen.get(value)}")
                seen[value] = offset
                if value not in order:
                    self.check(b"|" in value, f"{where} was sent by nobody")
                    continue
                number, sent = order[value]
                self.check(sent.place == place, f"{where} was sent to {sent.place[0]}-{sent.place[1]}")
                before = latest.get((sent.sender, place), -1)
                self.check(number > before, f"{where} stands behind what its producer sent after it")
                latest[sent.sender, place] = number
