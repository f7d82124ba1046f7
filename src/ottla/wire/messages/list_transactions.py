"""The ListTransactions API, key 66."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, NullableString, String


class ListTransactionsRequest(Message, api=66, versions="0-2", flexible="0+"):
    """Ask which transactions a coordinator holds, filtered by state, producer, duration or pattern."""

    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = since(1, default=-1)
    transactional_id_pattern: NullableString = since(2, default=None)


class ListTransactionsResponse(Message, api=66, versions="0-2", flexible="0+"):
    """The transactions found."""

    class TransactionState(Struct):
        transactional_id: String
        producer_id: Int64
        transaction_state: String

    throttle_time_ms: Int32
    error_code: Int16
    unknown_state_filters: list[String]
    transaction_states: list[TransactionState]
