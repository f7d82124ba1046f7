"""The keys that a call is about: which are still open, and what became of the others.

E1  Every key ends with a value or with an error of its own.
E2  A key whose error is of the moment stays open; when there is no time left, the last refusal is its error, else
    TimedOut.
E3  A call about one key raises that key's error. A call about several raises SomeFailed, which has the results too.

No clock is read here: `now` comes with each answer.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from ottla.client.errors import ClientError, Closed, Refused, SomeFailed, TimedOut
from ottla.wire.errors import ErrorCode

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

AGAIN = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
"""What is worth another try whatever was asked."""

LEADER_MOVED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""What is worth another try where a partition's leader was asked."""

# A broker may hear of a topic after the one that made it; but nobody wants to wait a minute for a misspelt name.
UNKNOWN_SECONDS_MAX = 3.0


class Errand(Generic[K, V]):
    """A call under way, begun at `now`. `again` are the codes worth another try."""

    def __init__(self, keys: Iterable[K], again: frozenset[ErrorCode], now: float) -> None:
        self.open: dict[K, ClientError | None] = dict.fromkeys(keys)
        self.results: dict[K, V] = {}
        self.errors: dict[K, ClientError] = {}
        self._again = again
        self._patient_until = now + UNKNOWN_SECONDS_MAX

    def take(self, outcomes: Mapping[K, V | ClientError], now: float) -> None:
        """Note what became of some keys."""
        for key, outcome in outcomes.items():
            if not isinstance(outcome, ClientError):
                del self.open[key]
                self.results[key] = outcome
            elif self._worth(outcome, now):
                self.open[key] = outcome
            else:
                del self.open[key]
                self.errors[key] = outcome

    def _worth(self, error: ClientError, now: float) -> bool:
        if not isinstance(error, Refused):
            return error.retriable and not isinstance(error, Closed)
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and now > self._patient_until:
            return False
        return error.code in self._again

    def give_up(self, bound: str) -> None:
        """End what is open: there is no time left."""
        for key, last in self.open.items():
            if isinstance(last, Refused):
                self.errors[key] = last
            else:
                why = f": {last}" if last is not None else ""
                self.errors[key] = TimedOut(f"there was no answer about {key} {bound}{why}")
        self.open.clear()

    def outcome(self) -> dict[K, V]:
        """Return the result of every key, or raise."""
        if not self.errors:
            return self.results
        if len(self.errors) == 1 and not self.results:
            raise next(iter(self.errors.values()))
        raise SomeFailed(self.errors, self.results)


def settled(outcomes: Mapping[K, V | ClientError]) -> dict[K, V]:
    """Return the results of what was asked once, or raise."""
    errand: Errand[K, V] = Errand(outcomes, frozenset(), 0.0)
    errand.take(outcomes, 0.0)
    errand.give_up("at once")
    return errand.outcome()
