"""Records that were handed out and have yet to be acknowledged.

D1  In implicit mode whatever was handed out counts as accepted when more is asked for. In explicit mode each record
    has to be acknowledged before that.
D2  A record whose lock is being renewed is handed out again once it is, and then has to be acknowledged again.
"""

from collections.abc import Iterable, Mapping

from ottla.client.consumer.share.acknowledgement import AcknowledgeType, Acks, Tip
from ottla.client.errors import WrongState
from ottla.client.record import Record


class Delivery:
    """What one partition's broker has given us."""

    __slots__ = ("acks", "node", "records", "renewed", "renewing", "spare", "tip")

    def __init__(self, tip: Tip, node: int) -> None:
        self.tip = tip
        self.node = node
        self.records: dict[int, Record] = {}
        self.acks: Acks = {}
        self.spare: set[int] = (
            set()
        )  # offsets without a record, of which the application may still change our word
        self.renewing: dict[int, Record] = {}
        self.renewed: dict[int, Record] = {}

    @property
    def is_open(self) -> bool:
        """Whether a record has not been acknowledged."""
        return any(offset not in self.acks for offset in self.records)

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to say about it."""
        return not (self.records or self.acks or self.renewing or self.renewed)

    def accept_all(self) -> None:
        """Accept what nothing was said of."""
        for offset in self.records:
            self.acks.setdefault(offset, int(AcknowledgeType.ACCEPT))

    def take_acks(self) -> Acks:
        """Return what is to be sent; those records are done with, or being renewed."""
        acks, self.acks = self.acks, {}
        self.spare.clear()
        for offset, kind in acks.items():
            record = self.records.pop(offset, None)
            if kind == AcknowledgeType.RENEW and record is not None:
                self.renewing[offset] = record
        return acks

    def sent(self, acks: Mapping[int, int], *, succeeded: bool) -> None:
        """Hear what became of acknowledgements: a lock that was renewed keeps its record."""
        for offset, kind in acks.items():
            record = self.renewing.pop(offset, None)
            if kind == AcknowledgeType.RENEW and record is not None and succeeded:
                self.renewed[offset] = record


class Deliveries:
    """All that was handed out."""

    def __init__(self) -> None:
        self._all: dict[tuple[Tip, int], Delivery] = {}

    @property
    def is_open(self) -> bool:
        """Whether a record has not been acknowledged."""
        return any(each.is_open for each in self._all.values())

    @property
    def renew(self) -> bool:
        """Whether a lock is being renewed, or was and its record has yet to be handed out again."""
        return any(each.renewing or each.renewed for each in self._all.values())

    def add(self, tip: Tip, node: int, records: Iterable[Record], acks: Mapping[int, int]) -> None:
        """Note what is handed out, and what is to be said of offsets that nothing is handed out for."""
        delivery = self._all.setdefault((tip, node), Delivery(tip, node))
        delivery.records.update((record.offset, record) for record in records)
        delivery.acks.update(acks)
        delivery.spare.update(offset for offset, kind in acks.items() if kind)

    def acknowledge(self, topic: str, partition: int, offset: int, kind: AcknowledgeType) -> None:
        """Say what became of a record; WrongState if it is not ours to say."""
        for (tip, _), delivery in self._all.items():
            if (tip.topic, tip.partition) == (topic, partition) and (
                offset in delivery.records or offset in delivery.spare
            ):
                delivery.acks[offset] = int(kind)
                return
        raise WrongState(
            f"the record at offset {offset} of {topic}-{partition} is not there to be acknowledged",
            hint="acknowledge what the last poll returned, and only until the next poll or commit",
        )

    def accept_all(self) -> None:
        """Accept what nothing was said of."""
        for delivery in self._all.values():
            delivery.accept_all()

    def take_acks(self) -> dict[int, dict[Tip, Acks]]:
        """Return what is to be sent to which broker."""
        found: dict[int, dict[Tip, Acks]] = {}
        for (tip, node), delivery in list(self._all.items()):
            acks = delivery.take_acks()
            if acks:
                found.setdefault(node, {})[tip] = acks
            if delivery.is_over:
                del self._all[tip, node]
        return found

    def take_renewed(self) -> list[Record]:
        """Hand out again the records whose locks were renewed."""
        found: list[Record] = []
        for delivery in self._all.values():
            found += [record for _, record in sorted(delivery.renewed.items())]
            delivery.records.update(delivery.renewed)
            delivery.renewed.clear()
        return found

    def sent(self, tip: Tip, node: int, acks: Mapping[int, int], *, succeeded: bool) -> None:
        """Hear what became of acknowledgements."""
        delivery = self._all.get((tip, node))
        if delivery is not None:
            delivery.sent(acks, succeeded=succeeded)
            if delivery.is_over:
                del self._all[tip, node]
