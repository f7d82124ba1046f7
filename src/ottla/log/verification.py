"""Producers whose transaction is being looked up before they may write to a log (KAFKA-14402).

G1  The coordinator's word that a producer's transaction has a partition is of the past when it arrives. It lets a batch
    in only if the log has neither ended nor begun a transaction of that producer since the question was put: whichever
    does, takes the verification away, and the next question begins another.
G2  Of several batches that are verified at once the one with the lowest sequence number is the first to get in: were it
    to fail, and another to open the transaction, it could not be written any more.
G3  What nobody asks for any more is kept only for G2, and not for long. A producer that the coordinator does not know
    leaves nothing behind.
"""

from ottla.wire.errors import BrokerError, ErrorCode

_KEPT_MAX = 1_000


class Verification:
    """One look-up of a producer's transaction, which batches of several requests may share."""

    __slots__ = ("began_ms", "epoch", "lowest_sequence", "users")

    def __init__(self, epoch: int, sequence: int, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.began_ms = now_ms
        self.users = 0  # how many wait for the coordinator's answer, or are about to write


UNVERIFIED = Verification(-1, -1, -1)  # of a batch for which nobody was asked: its transaction has to be open


class Verifications:
    """The look-ups of one log, by producer id."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(self, producer_id: int, epoch: int, sequence: int, now_ms: int) -> Verification:
        """A coordinator is about to be asked; to be followed by `end` once the batch is written, or will not be."""
        known = self._by_producer.get(producer_id)
        if known is None:
            if len(self._by_producer) >= _KEPT_MAX:
                self._drop_unused(now_ms)
            known = self._by_producer[producer_id] = Verification(epoch, sequence, now_ms)
        elif epoch > known.epoch:
            known.epoch, known.lowest_sequence = epoch, sequence
        elif epoch == known.epoch and sequence < known.lowest_sequence:
            known.lowest_sequence = sequence
        known.users += 1
        return known

    def end(self, producer_id: int, verification: Verification, *, refused: bool) -> None:
        """One user less; with `refused` the coordinator has said no for good."""
        verification.users -= 1
        if refused and not verification.users and self._by_producer.get(producer_id) is verification:
            del self._by_producer[producer_id]

    def check(self, producer_id: int, sequence: int, verification: Verification) -> None:
        """Refuse a batch that would open a transaction without a look-up that still holds (G1, G2)."""
        if self._by_producer.get(producer_id) is not verification:
            raise BrokerError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )
        if sequence > verification.lowest_sequence:
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} sent sequence {sequence}, "
                f"{verification.lowest_sequence} has to be written first",
            )

    def forget(self, producer_id: int) -> None:
        """A transaction of this producer was begun or ended."""
        self._by_producer.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget what nobody has come back for."""
        if self._by_producer:
            self._drop_unused(now_ms, expiration_ms)

    def clear(self) -> None:
        """Forget all: the log is another than it was."""
        self._by_producer.clear()

    def _drop_unused(self, now_ms: int, expiration_ms: int = 0) -> None:
        self._by_producer = {
            producer_id: each
            for producer_id, each in self._by_producer.items()
            if each.users or now_ms - each.began_ms < expiration_ms
        }
