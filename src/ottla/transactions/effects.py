"""What transactions ask of the broker around them: markers, and producer ids that nobody has had."""

from ottla.replicated.decision import Effect
from ottla.transactions.transaction import TopicPartition
from ottla.wire.errors import BrokerError, ErrorCode


class SendMarkers(Effect):
    """Write the markers that end a transaction; then hand this very object to `Transactions.markers_written`.

    `partitions` are sorted, and none are possible: then there is nothing to write, and it can be handed back at once.
    """

    __slots__ = (
        "committed",
        "coordinator_epoch",
        "partitions",
        "producer_epoch",
        "producer_id",
        "transaction_version",
        "transactional_id",
    )

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        partitions: tuple[TopicPartition, ...],
        transaction_version: int,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.committed = committed
        self.partitions = partitions
        self.transaction_version = transaction_version

    def __repr__(self) -> str:
        return f"SendMarkers({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class DrawProducerId(Effect):
    """Draw a producer id and give it to `Transactions.abort_overdue`: a transaction ran out of time and of epochs."""

    __slots__ = ("transactional_id",)

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id

    def __repr__(self) -> str:
        return f"DrawProducerId({self.transactional_id!r})"


class ProducerIdNeeded(BrokerError):
    """A command cannot go on without a new producer id: draw one, and give the same command again with it.

    To a client it reads as Kafka's answer when no id is at hand, after which clients ask again.
    """

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Producer ID block is full. Waiting for next block"
        )
