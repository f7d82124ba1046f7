"""C5: a peer is not read from until it catches up, and then it is; who waits for room waits for no longer than that."""

from typing import TYPE_CHECKING

from ottla.sim.checkers.cluster_checker import ClusterChecker

if TYPE_CHECKING:
    from ottla.channel.budget import Budget
    from ottla.channel.connection import Connection

_PATIENCE_S = 1.0


class ReadsAgain(ClusterChecker):
    """No connection stands still for long while its peer takes all that it is sent."""

    rule = "C5 whoever has caught up is read from"

    def __init__(self) -> None:
        self._since: dict[Connection | Budget, float] = {}

    def look(self) -> None:
        """Look at every connection that is stalled."""
        before, self._since = self._since, {}
        now = self.fleet.timeline.now
        for machine in self.fleet.machines.values():
            if machine.node is None or machine.process is None or machine.process.is_paused:
                continue
            for each in machine.node.connections.open:
                is_idle = each._stalled and not each.owed and not each._waits
                if (is_idle or each._queue is not None) and not each.transport.get_write_buffer_size():
                    since = self._since[each] = before.get(each, now)
                    self.check(
                        now - since <= _PATIENCE_S,
                        f"{machine.host} has not gone on with {each.peer} for {now - since:.1f} s, which has caught up",
                    )
            answers = machine.node.connections.clients.answers
            if answers.waiting and answers.total < answers.bytes_max:
                since = self._since[answers] = before.get(answers, now)
                self.check(
                    now - since <= _PATIENCE_S,
                    f"{answers.waiting} connections of {machine.host} wait for room that there is",
                )
