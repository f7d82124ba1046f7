"""Q1: a share record is held by one member at a time, what was dealt with is not handed out again, and nothing is lost.

A leader holds what it hands out in memory, and another leader knows only what was said of it: so a record may be handed
out by two leaders, but never by one of them as long as somebody has it from that one.
"""

from bisect import bisect_left
from typing import TYPE_CHECKING

from ottla.client.consumer.share.acknowledgement import AcknowledgeType
from ottla.sim.checkers.cluster_checker import ClusterChecker
from ottla.sim.cluster.fleet import LOCK_MS, TRIES_MAX
from ottla.sim.cluster.machine import host_of
from ottla.sim.cluster.workloads.workload import LOG

if TYPE_CHECKING:
    from ottla.sim.cluster.history import Handed, Place, Word

_FINAL = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)
_LOCK_S = LOCK_MS / 1000

Spot = tuple["Place", int]


class HeldByOne(ClusterChecker):
    """One holder, no word but the holder's, nothing twice once it is dealt with, everything at least once."""

    rule = "Q1 a share record is held by one member at a time"

    def __init__(self) -> None:
        self._handed_seen = self._words_seen = 0
        self._open: list[Word] = []  # words that nobody has answered yet
        self._handed: dict[Spot, dict[object, dict[int, Handed]]] = {}  # by era and count
        self._words: dict[Spot, list[Word]] = {}
        self._over: dict[Spot, Word] = {}  # the first word by which a record was dealt with
        self._ended_seen = self._sessions_seen = 0
        self._ends: dict[tuple[str, str], list[float]] = {}  # of connections, by client and node
        self._sessions: dict[tuple[str, int], list[float]] = {}  # the ends of sessions, by member and node

    def look(self) -> None:
        """Take in what members were handed, and what they said."""
        sharing, ended = self.fleet.history.sharing, self.fleet.fabric.ended
        for at_s, host, other in ended[self._ended_seen :]:
            self._ends.setdefault((host, other), []).append(at_s)
            self._ends.setdefault((other, host), []).append(at_s)
        self._ended_seen = len(ended)
        for at_s, member, node in sharing.sessions_ended[self._sessions_seen :]:
            self._sessions.setdefault((member, node), []).append(at_s)
        self._sessions_seen = len(sharing.sessions_ended)
        for word in sharing.words[self._words_seen :]:
            self._words.setdefault((word.place, word.offset), []).append(word)
        self._open += sharing.words[self._words_seen :]
        self._words_seen = len(sharing.words)
        for handed in sharing.handed[self._handed_seen :]:
            self._take(handed)
        self._handed_seen = len(sharing.handed)
        for word in [each for each in self._open if each.taken]:
            self._check_word(word)
        self._open = [each for each in self._open if each.taken is None]

    def _take(self, handed: "Handed") -> None:
        spot = (handed.place, handed.offset)
        over = self._over.get(spot)
        self.check(
            over is None or handed.asked_s <= over.heard_s or handed.epoch < over.epoch,
            f"{_name(spot)} was dealt with by {over and over.member}, and is handed to {handed.member} "
            f"for the {handed.count}. time",
        )
        if handed.era is None:
            return
        known = self._handed.setdefault(spot, {}).setdefault(handed.era, {})
        twin = known.setdefault(handed.count, handed)
        self.check(
            twin is handed, f"{_name(spot)} is handed to {twin.member} and {handed.member} for the {handed.count}. time"
        )
        for first, second in ((handed.count - 1, handed.count), (handed.count, handed.count + 1)):
            if first in known and second in known:
                before, after = known[first], known[second]
                self.check(
                    self._lets_go(before, after.got_s),
                    f"{_name(spot)} is {before.member}'s until {self._until_s(before, after.got_s):.3f} s at least, "
                    f"and is handed to {after.member} by {after.got_s:.3f} s",
                )

    def _until_s(self, handed: "Handed", by_s: float) -> float:
        """Until when a lock lasts at least; it may have been renewed."""
        renewed = [
            word.said_s
            for word in self._words.get((handed.place, handed.offset), ())
            if word.kind == AcknowledgeType.RENEW
            and word.taken
            and word.heard_s <= by_s
            and self._is_of(word, handed)
        ]
        return max(handed.asked_s, *renewed, 0.0) + _LOCK_S

    @staticmethod
    def _is_of(word: "Word", handed: "Handed") -> bool:
        return word.member == handed.member and word.node == handed.node and word.said_s >= handed.got_s

    def _lets_go(self, handed: "Handed", by_s: float) -> bool:
        """Whether a member may have lost a record by some moment: by its word, its time, or its going."""
        spot = (handed.place, handed.offset)
        said = any(
            word.kind != AcknowledgeType.RENEW and word.taken is not False and word.said_s <= by_s
            for word in self._words.get(spot, ())
            if self._is_of(word, handed)
        )
        return (
            said
            or by_s >= self._until_s(handed, by_s)
            or _any_between(self._sessions.get((handed.member, handed.node), []), handed.got_s, by_s)
            or _any_between(self._ends.get((handed.host, host_of(handed.node)), []), handed.asked_s, by_s)
        )

    def _check_word(self, word: "Word") -> None:
        """Look at a word that was taken."""
        spot = (word.place, word.offset)
        if word.kind in _FINAL and word.epoch >= 0:
            self._over.setdefault(spot, word)
        if word.era is None:
            return
        for holder in self._handed.get(spot, {}).get(word.era, {}).values():
            if holder.member != word.member and holder.got_s < word.said_s:
                mine = self._handed[spot][word.era].values()
                is_newer = any(each.member == word.member and each.count > holder.count for each in mine)
                self.check(
                    is_newer or self._lets_go(holder, word.heard_s),
                    f"{_name(spot)} is {holder.member}'s, and the word of {word.member} is taken for it",
                )

    def finish(self) -> None:
        """Look for records that nobody has dealt with, and for those that were others when they were handed out."""
        self.look()
        history = self.fleet.history
        if not history.sharing.handed:
            return
        there = {(place, offset): value for place, found in history.final.items() for offset, value in found}
        for read in history.sharing.values:
            found = there.get((read.place, read.offset))
            self.check(
                found == read.value,
                f"{_name((read.place, read.offset))} was {read.value!r} for {read.reader}, and is {found!r}",
            )
        counts: dict[Spot, int] = {}
        for handed in history.sharing.handed:
            spot = (handed.place, handed.offset)
            counts[spot] = max(counts.get(spot, 0), handed.count)
        for spot in there:
            if spot[0][0] == LOG:
                said = any(
                    word.kind in _FINAL and word.taken is not False for word in self._words.get(spot, ())
                )
                self.check(
                    said or counts.get(spot, 0) >= TRIES_MAX - 1,
                    f"nobody has dealt with {_name(spot)}, which was handed out {counts.get(spot, 0)} times",
                )


def _any_between(moments: list[float], first: float, last: float) -> bool:
    at = bisect_left(moments, first)
    return at < len(moments) and moments[at] <= last


def _name(spot: Spot) -> str:
    (topic, index), offset = spot
    return f"offset {offset} of {topic}-{index}"
