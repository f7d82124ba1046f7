"""The `.snapshot` files of a log."""

from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, UInt32


class ProducerSnapshot(Message, versions="1"):
    """The producers a log remembers, as its snapshot files keep them."""

    class ProducerEntry(Struct):
        producer_id: Int64
        epoch: Int16
        last_sequence: Int32
        last_offset: Int64
        offset_delta: Int32
        timestamp: Int64
        coordinator_epoch: Int32
        current_txn_first_offset: Int64

    crc: UInt32
    producer_entries: list[ProducerEntry]
