"""Producers whose transaction is being looked up before they may write to a log (KAFKA-14402).

G1  The coordinator's word that a producer's transaction has a partition is of the past when it arrives. It lets a batch
    in only if the log has neither ended nor begun a transaction of that producer since the question was put: whichever
    does, takes the verification away, and the next question begins another.
G2  Of several batches that are verified at once the one with the lowest sequence number is the first to get in: were it
    to fail, and another to open the transaction, it could not be written any more.
G3  What nobody asks for any more is kept only for G2, and not for long. A producer that the coordinator does not know
    leaves nothing behind.
G4  Whoever claims another epoch of a producer has a look-up of its own: who is no producer at all changes nothing for
    the one that is.
"""

from ottla.wire.errors import BrokerError, ErrorCode

_KEPT_MAX = 1_000
_EPOCHS_KEPT_MAX = 8  # of one producer


class Verification:
    """One look-up of a producer's transaction, which batches of several requests of one epoch may share."""

    __slots__ = ("began_ms", "epoch", "lowest_sequence", "users")

    def __init__(self, epoch: int, sequence: int, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.began_ms = now_ms
        self.users = 0  # how many wait for the coordinator's answer, or are about to write


UNVERIFIED = Verification(-1, -1, -1)  # of a batch for which nobody was asked: its transaction has to be open


class Verifications:
    """The look-ups of one log, by producer id and epoch."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[int, Verification]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_producer.values()))

    def begin(self, producer_id: int, epoch: int, sequence: int, now_ms: int) -> Verification:
        """A coordinator is about to be asked; to be followed by `end` once the batch is written, or will not be."""
        epochs = self._by_producer.get(producer_id)
        known = None if epochs is None else epochs.get(epoch)
        if known is None:
            if len(self._by_producer) >= _KEPT_MAX or (epochs and len(epochs) >= _EPOCHS_KEPT_MAX):
                self._drop_unused(now_ms)
            known = Verification(epoch, sequence, now_ms)
            self._by_producer.setdefault(producer_id, {})[epoch] = known
        elif sequence < known.lowest_sequence:
            known.lowest_sequence = sequence
        known.users += 1
        return known

    def end(self, producer_id: int, verification: Verification, *, refused: bool) -> None:
        """One user less; with `refused` the coordinator has said no for good."""
        verification.users -= 1
        if refused and not verification.users and self._holds(producer_id, verification):
            epochs = self._by_producer[producer_id]
            del epochs[verification.epoch]
            if not epochs:
                del self._by_producer[producer_id]

    def check(self, producer_id: int, sequence: int, verification: Verification) -> None:
        """Refuse a batch that would open a transaction without a look-up that still holds (G1, G2)."""
        if not self._holds(producer_id, verification):
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

    def _holds(self, producer_id: int, verification: Verification) -> bool:
        epochs = self._by_producer.get(producer_id)
        return epochs is not None and epochs.get(verification.epoch) is verification

    def _drop_unused(self, now_ms: int, expiration_ms: int = 0) -> None:
        left = {}
        for producer_id, epochs in self._by_producer.items():
            used = {
                epoch: each
                for epoch, each in epochs.items()
                if each.users or now_ms - each.began_ms < expiration_ms
            }
            if used:
                left[producer_id] = used
        self._by_producer = left
