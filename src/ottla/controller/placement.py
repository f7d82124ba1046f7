"""Where new replicas go: leaders striped over brokers, replicas spread over racks.

P1  No broker gets two replicas of a partition.
P2  The first replica, the preferred leader, is on a broker that is not fenced.
P3  Leaders are spread over the brokers as evenly as one pass allows, and so are the racks of the replicas.

From the same chances it places as Kafka's StripedReplicaPlacer does: tests/property/test_controller_java.py.
"""

from collections.abc import Iterable
from typing import TypeVar

from ottla.metadata.registration import Broker
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.entropy import Entropy

T = TypeVar("T")


def place(brokers: Iterable[Broker], partitions: int, replicas: int, entropy: Entropy) -> list[list[int]]:
    """Replicas for each of `partitions` new partitions; INVALID_REPLICATION_FACTOR when there are too few brokers."""
    racks = _Racks(list(brokers), entropy)
    if replicas <= 0:
        raise _refused(f"Invalid replication factor {replicas}: the replication factor must be positive.")
    if not racks.unfenced:
        raise _refused("All brokers are currently fenced, or have all their log directories cordoned.")
    if replicas > racks.total:
        raise _refused(
            f"The target replication factor of {replicas} cannot be reached because only {racks.total} broker(s) "
            "are registered or some brokers have all their log directories cordoned."
        )
    return [racks.place(replicas) for _ in range(partitions)]


class _Ring:
    """Brokers taken in turn; each round starts one further than the last."""

    __slots__ = ("_brokers", "_round", "_start", "_taken")

    def __init__(self, brokers: list[int], entropy: Entropy) -> None:
        self._brokers = sorted(brokers)
        self._start = entropy.below(len(brokers)) if brokers else 0
        self._round = self._taken = 0

    def take(self, round_number: int) -> int | None:
        """The next broker of this round; None once all were taken."""
        count = len(self._brokers)
        if not count:
            return None
        if self._round != round_number:
            self._round, self._taken, self._start = round_number, 0, (self._start + 1) % count
        if self._taken >= count:
            return None
        self._taken += 1
        return self._brokers[(self._start + self._taken - 1) % count]

    def shuffle(self, entropy: Entropy) -> None:
        """Break the pattern, so that the same neighbours do not meet in every partition."""
        _shuffle(self._brokers, entropy)


class _Rack:
    __slots__ = ("fenced", "unfenced")

    def __init__(self, brokers: list[Broker], entropy: Entropy) -> None:
        self.fenced = _Ring([broker.id for broker in brokers if broker.fenced], entropy)
        self.unfenced = _Ring([broker.id for broker in brokers if not broker.fenced], entropy)

    def take(self, round_number: int) -> int | None:
        broker = self.unfenced.take(round_number)
        return self.fenced.take(round_number) if broker is None else broker


class _Racks:
    __slots__ = ("_entropy", "_order", "_racks", "_round", "_start", "total", "unfenced")

    def __init__(self, brokers: list[Broker], entropy: Entropy) -> None:
        self._entropy = entropy
        self.total = len(brokers)
        self.unfenced = sum(not broker.fenced for broker in brokers)
        names = sorted({broker.rack for broker in brokers}, key=lambda rack: (rack is not None, rack or ""))
        self._racks = [
            _Rack([broker for broker in brokers if broker.rack == name], entropy) for name in names
        ]
        self._order = list(self._racks)
        self._start = entropy.below(len(names)) if names else 0
        self._round = 0

    def place(self, replicas: int) -> list[int]:
        """The replicas of one partition."""
        # One unfenced broker leads everything anyway, and starting its ring anew would never end.
        if self._round == self.unfenced > 1:
            _shuffle(self._order, self._entropy)
            for rack in self._racks:
                rack.fenced.shuffle(self._entropy)
                rack.unfenced.shuffle(self._entropy)
            self._round = 0
        racks = self._order
        count = len(racks)
        first = start = self._start % count
        while (leader := racks[first].unfenced.take(self._round)) is None:
            first = (first + 1) % count
        placed = [leader]
        at, skip = start, first
        while len(placed) < replicas:
            # The leader's rack has had its turn in the first pass over the racks.
            broker = None
            if at == skip:
                skip = -1
            else:
                broker = racks[at].take(self._round)
            at = (at + 1) % count
            if broker is not None:
                placed.append(broker)
        self._round += 1
        self._start = start + 1
        return placed


def _shuffle(items: list[T], entropy: Entropy) -> None:
    for last in range(len(items) - 1, 0, -1):
        chosen = entropy.below(last + 1)
        items[last], items[chosen] = items[chosen], items[last]


def _refused(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
