"""P1: an acknowledged record survives, where it was said to be; so does what any reader saw."""

from ottla.sim.checkers.cluster_checker import ClusterChecker


class AcknowledgedKept(ClusterChecker):
    """What a producer was told, and what a reader was shown, is so for good."""

    rule = "P1 an acknowledged record survives"

    def finish(self) -> None:
        """Compare the history with what there is."""
        history = self.fleet.history
        final = {place: dict(records) for place, records in history.final.items()}
        for sent in history.sent:
            if sent.offset is None:
                continue
            there = final.get(sent.place, {})
            found = there.get(sent.offset)
            self.check(
                # The broker may know that it has the record and not remember where (DUPLICATE_SEQUENCE_NUMBER).
                found == sent.value or (sent.offset < 0 and sent.value in there.values()),
                f"{sent.value!r} was acknowledged at {sent.offset} of {sent.place[0]}-{sent.place[1]}, "
                f"where there is {found!r}",
            )
        for read in history.reads:
            found = final.get(read.place, {}).get(read.offset)
            self.check(
                found == read.value,
                f"{read.reader} read {read.value!r} at {read.offset} of {read.place[0]}-{read.place[1]}, "
                f"where there is {found!r}",
            )
