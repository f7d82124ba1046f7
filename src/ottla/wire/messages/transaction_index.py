"""The transaction index beside a segment."""

from ottla.wire.message import Message
from ottla.wire.primitive import Int64


class AbortedTxn(Message, versions="0"):
    """An entry of the transaction index: one aborted transaction of a segment."""

    producer_id: Int64
    first_offset: Int64
    last_offset: Int64
    last_stable_offset: Int64
