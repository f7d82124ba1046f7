"""The keys of a call: those that are still open, and the outcomes of the others.

E1  Every key ends with a result or with its own error.
E2  A key with a retriable error stays open. After the timeout its error is the last refusal, or else TimedOut.
E3  A call about one key raises that key's error. A call about several raises SomeFailed, which has the results too.

No clock is read here: `now` comes with each answer.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from ottla.client.errors import ClientError, Closed, Refused, SomeFailed, TimedOut
from ottla.wire.errors import ErrorCode

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ALWAYS_RETRIABLE = frozenset(
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
"""Retriable for all requests."""

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
"""Retriable for requests to the leader of a partition."""

# Brokers learn of a new topic at different times. But a misspelt name should fail soon.
UNKNOWN_SECONDS_MAX = 3.0


class KeyedOutcomes(Generic[K, V]):
    """The outcomes of one call that began at `now`. `retriable_codes` leave a key open."""

    def __init__(self, keys: Iterable[K], retriable_codes: frozenset[ErrorCode], now: float) -> None:
        self.open: dict[K, ClientError | None] = dict.fromkeys(keys)
        self.results: dict[K, V] = {}
        self.errors: dict[K, ClientError] = {}
        self._retriable_codes = retriable_codes
        self._unknown_topic_until = now + UNKNOWN_SECONDS_MAX

    def record(self, outcomes: Mapping[K, V | ClientError], now: float) -> None:
        """Record the outcomes of some keys."""
        for key, outcome in outcomes.items():
            if not isinstance(outcome, ClientError):
                del self.open[key]
                self.results[key] = outcome
            elif self._may_retry(outcome, now):
                self.open[key] = outcome
            else:
                del self.open[key]
                self.errors[key] = outcome

    def _may_retry(self, error: ClientError, now: float) -> bool:
        if not isinstance(error, Refused):
            return error.retriable and not isinstance(error, Closed)
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and now > self._unknown_topic_until:
            return False
        return error.code in self._retriable_codes

    def fail_open(self, bound: str) -> None:
        """End all open keys with an error."""
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


def results_or_raise(outcomes: Mapping[K, V | ClientError]) -> dict[K, V]:
    """Return the results of a call without retries, or raise."""
    keyed: KeyedOutcomes[K, V] = KeyedOutcomes(outcomes, frozenset(), 0.0)
    keyed.record(outcomes, 0.0)
    keyed.fail_open("at once")
    return keyed.outcome()
