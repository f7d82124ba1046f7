"""Calls about transactions, without asyncio."""

from collections.abc import Iterable

from ottla.client.admin.producers import ProducerState
from ottla.client.admin.transactions import FencedProducer, TransactionDescription, TransactionListing
from ottla.client.admin.transactions import Transactions as AsyncTransactions
from ottla.client.blocking.part import BlockingPart
from ottla.client.deprecation import renamed_durations, renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.record import TopicPartition


@renamed_timeouts
class Transactions(BlockingPart[AsyncTransactions]):
    """Transactions, as `admin.transactions`. Every call raises Refused, TimedOut or, for several ids, SomeFailed."""

    @renamed_durations(running_ms="running_longer_than")
    def list(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than: Duration | None = None,
        pattern: str | None = None,
        timeout: Duration | None = None,
    ) -> dict[str, TransactionListing]:
        """Return transactional ids: all, or those that match every filter that is given.

        `pattern` is a regular expression for the id. `running_longer_than` is the least age of an open transaction.
        """
        return self._run(
            self._part.list(
                states=states,
                producer_ids=producer_ids,
                running_longer_than=running_longer_than,
                pattern=pattern,
                timeout=timeout,
            )
        )

    def describe(
        self, transactional_ids: str | Iterable[str], *, timeout: Duration | None = None
    ) -> dict[str, TransactionDescription]:
        """Return transactional ids, each with its current or last transaction."""
        return self._run(self._part.describe(transactional_ids, timeout=timeout))

    def fence(
        self, transactional_ids: str | Iterable[str], *, timeout: Duration | None = None
    ) -> dict[str, FencedProducer]:
        """Abort the open transactions of transactional ids, and fence the producers that use them."""
        return self._run(self._part.fence(transactional_ids, timeout=timeout))

    def abort(
        self, partition: TopicPartition, producer: ProducerState, *, timeout: Duration | None = None
    ) -> None:
        """Abort a transaction that its coordinator does not know any more, in one partition.

        `producer` comes from `admin.producers.describe`. Use `fence` for a transaction that its coordinator knows:
        this call aborts it in one partition only.
        """
        self._run(self._part.abort(partition, producer, timeout=timeout))
