"""Records that were returned to the application and are not acknowledged yet.

D1  In implicit mode the next poll accepts all returned records. In explicit mode each record has to be acknowledged
    before that.
D2  A record whose lock was renewed is returned again, and has to be acknowledged again.
"""

from collections.abc import Iterable, Mapping

from ottla.client.consumer.share.acknowledgement import AcknowledgeType, Acks, TopicIdPartition
from ottla.client.errors import WrongState
from ottla.client.record import Record


class PartitionInFlightRecords:
    """The records in flight of one partition from one broker."""

    __slots__ = ("acks", "changeable", "node", "partition", "records", "renewed", "renewing")

    def __init__(self, partition: TopicIdPartition, node: int) -> None:
        self.partition = partition
        self.node = node
        self.records: dict[int, Record] = {}
        self.acks: Acks = {}
        self.changeable: set[int] = (
            set()
        )  # offsets without a record whose acknowledgement the application may still change
        self.renewing: dict[int, Record] = {}
        self.renewed: dict[int, Record] = {}

    @property
    def is_open(self) -> bool:
        """Whether a record is not acknowledged yet."""
        return any(offset not in self.acks for offset in self.records)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return not (self.records or self.acks or self.renewing or self.renewed)

    def accept_all(self) -> None:
        """Accept all records that are not acknowledged yet."""
        for offset in self.records:
            self.acks.setdefault(offset, int(AcknowledgeType.ACCEPT))

    def take_acks(self) -> Acks:
        """Return the acknowledgements to send. Their records are finished, or being renewed."""
        acks, self.acks = self.acks, {}
        self.changeable.clear()
        for offset, kind in acks.items():
            record = self.records.pop(offset, None)
            if kind == AcknowledgeType.RENEW and record is not None:
                self.renewing[offset] = record
        return acks

    def sent(self, acks: Mapping[int, int], *, succeeded: bool) -> None:
        """Handle the outcome of acknowledgements. A record with a renewed lock is kept."""
        for offset, kind in acks.items():
            record = self.renewing.pop(offset, None)
            if kind == AcknowledgeType.RENEW and record is not None and succeeded:
                self.renewed[offset] = record


class InFlightRecords:
    """All records in flight of one share consumer."""

    def __init__(self) -> None:
        self._all: dict[tuple[TopicIdPartition, int], PartitionInFlightRecords] = {}

    @property
    def is_open(self) -> bool:
        """Whether a record is not acknowledged yet."""
        return any(each.is_open for each in self._all.values())

    @property
    def renew(self) -> bool:
        """Whether locks are being renewed, or records with renewed locks wait to be returned."""
        return any(each.renewing or each.renewed for each in self._all.values())

    def add(
        self, partition: TopicIdPartition, node: int, records: Iterable[Record], acks: Mapping[int, int]
    ) -> None:
        """Add returned records, and acknowledgements for offsets without a record."""
        partition_records = self._all.setdefault((partition, node), PartitionInFlightRecords(partition, node))
        partition_records.records.update((record.offset, record) for record in records)
        partition_records.acks.update(acks)
        partition_records.changeable.update(offset for offset, kind in acks.items() if kind)

    def acknowledge(self, topic: str, partition: int, offset: int, kind: AcknowledgeType) -> None:
        """Acknowledge a record. Raises WrongState if it is not in flight."""
        for (key, _), partition_records in self._all.items():
            if (key.topic, key.partition) == (topic, partition) and (
                offset in partition_records.records or offset in partition_records.changeable
            ):
                partition_records.acks[offset] = int(kind)
                return
        raise WrongState(
            f"the record at offset {offset} of {topic}-{partition} is not there to be acknowledged",
            hint="acknowledge what the last poll returned, and only until the next poll or commit",
        )

    def accept_all(self) -> None:
        """Accept all records that are not acknowledged yet."""
        for partition_records in self._all.values():
            partition_records.accept_all()

    def take_acks(self) -> dict[int, dict[TopicIdPartition, Acks]]:
        """Return the acknowledgements to send, by broker."""
        found: dict[int, dict[TopicIdPartition, Acks]] = {}
        for (partition, node), partition_records in list(self._all.items()):
            acks = partition_records.take_acks()
            if acks:
                found.setdefault(node, {})[partition] = acks
            if partition_records.is_over:
                del self._all[partition, node]
        return found

    def take_renewed(self) -> list[Record]:
        """Return the records whose locks were renewed."""
        found: list[Record] = []
        for partition_records in self._all.values():
            found += [record for _, record in sorted(partition_records.renewed.items())]
            partition_records.records.update(partition_records.renewed)
            partition_records.renewed.clear()
        return found

    def sent(
        self, partition: TopicIdPartition, node: int, acks: Mapping[int, int], *, succeeded: bool
    ) -> None:
        """Handle the outcome of acknowledgements."""
        partition_records = self._all.get((partition, node))
        if partition_records is not None:
            partition_records.sent(acks, succeeded=succeeded)
            if partition_records.is_over:
                del self._all[partition, node]
