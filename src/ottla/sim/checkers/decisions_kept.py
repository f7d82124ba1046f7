"""M3: what a controller has confirmed stays decided."""

from ottla.sim.checkers.cluster_checker import ClusterChecker


class DecisionsKept(ClusterChecker):
    """A topic that was confirmed to be made is there, one that was confirmed to be deleted is not."""

    rule = "M3 a confirmed decision stays"

    def finish(self) -> None:
        """Compare the topics there are with those that were confirmed."""
        history = self.fleet.history
        for name, is_there in sorted(history.made.items()):
            if is_there is not None:
                self.check(
                    (name in history.final_topics) == is_there,
                    f"{name} was {'made' if is_there else 'deleted'}, and is {'not ' if is_there else ''}there",
                )
