"""Rounds: what the controller looks after on its own, from time to time.

O1  Leadership goes back to preferred replicas that are in sync again, where `auto.leader.rebalance.enable` says so.
O2  Where a topic allows unclean elections, a partition without a leader gets one that works. An unclean election
    that users have just allowed does not wait for the next round.
O3  A round elects no more than ELECTIONS_MAX leaders; what is left comes in the next one, which follows at once.
O4  With nothing to look after there is no deadline, and an idle controller sleeps.
"""

from collections.abc import Collection

from ottla.controller.census import Place, partitions_of
from ottla.controller.election import Election, Transition
from ottla.controller.view import View
from ottla.replicated.decision import Millis
from ottla.wire.message import Message

ELECTIONS_MAX = 1_000


class Rounds:
    """When which partitions are looked at next."""

    __slots__ = ("_balance_at_ms", "_elect_at_ms", "_view")

    def __init__(self, view: View, now: Millis) -> None:
        self._view = view
        self._balance_at_ms = now + self._balance_every_ms
        self._elect_at_ms = now + self._elect_every_ms

    @property
    def deadline(self) -> Millis | None:
        """When there is something to look at."""
        census, due = self._view.census, []
        if census.imbalanced and self._view.values["auto.leader.rebalance.enable"]:
            due.append(self._balance_at_ms)
        if census.leaderless:
            due.append(self._elect_at_ms)
        return min(due, default=None)

    def hasten(self) -> None:
        """Look at partitions without a leader at once."""
        self._elect_at_ms = 0

    def due(self, now: Millis) -> list[Message]:
        """What the rounds that are due ask for."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return []
        view = self._view
        if now >= self._elect_at_ms:
            records = self._elect(view.census.leaderless, Election.UNCLEAN)
            if len(records) < ELECTIONS_MAX:
                self._elect_at_ms = now + self._elect_every_ms
            if records:
                return records
        if now >= self._balance_at_ms and view.values["auto.leader.rebalance.enable"]:
            records = self._elect(view.census.imbalanced, Election.PREFERRED)
            if len(records) < ELECTIONS_MAX:
                self._balance_at_ms = now + self._balance_every_ms
            return records
        return []

    @property
    def _balance_every_ms(self) -> int:
        return self._view.number("leader.imbalance.check.interval.seconds") * 1000

    @property
    def _elect_every_ms(self) -> int:
        return self._view.number("unclean.leader.election.interval.ms")

    def _elect(self, places: Collection[Place], election: Election) -> list[Message]:
        view = self._view
        records: list[Message] = []
        for topic, index, _ in partitions_of(view.image, places):
            if len(records) >= ELECTIONS_MAX:
                break
            if election is Election.PREFERRED or view.unclean_elections(topic.name):
                transition = Transition(view, topic, index)
                transition.election = election
                record = transition.record()
                if record is not None:
                    records.append(record)
        return records
