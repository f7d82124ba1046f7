"""What a run was made of, in numbers: what the checkers had to look at, and what went wrong meanwhile."""

from typing import TYPE_CHECKING, NamedTuple, Self

from ottla.sim.cluster.history import DONE

if TYPE_CHECKING:
    from ottla.sim.cluster.fleet import Fleet


class Tally(NamedTuple):
    """Counts of one run, or of many."""

    acknowledged: int = 0  # records
    commits: int = 0  # of offsets
    transactions: int = 0  # that were committed
    share_words: int = 0  # that were taken
    crashes: int = 0  # of nodes
    client_crashes: int = 0
    power_losses: int = 0

    @classmethod
    def of(cls, fleet: "Fleet") -> Self:
        """Count what a run has come to."""
        history, texts = fleet.history, [step.text for step in fleet.steps]
        return cls(
            sum(sent.offset is not None for sent in history.sent),
            history.commits,
            sum(each.outcome == DONE for each in history.transactions),
            sum(word.taken is True for word in history.sharing.words),
            texts.count("is killed"),
            texts.count("dies"),
            texts.count("loses power"),
        )

    def plus(self, other: "Tally") -> "Tally":
        """Both together."""
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


NOTHING = Tally()
