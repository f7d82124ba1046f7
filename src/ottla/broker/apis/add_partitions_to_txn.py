"""AddPartitionsToTxn (24): have partitions take part in transactions, or see whether they do.

Up to v3 a client names one transaction; from v4 on brokers name several. Partitions that do not exist spoil the others,
as in Kafka: nothing is added, and those hear OPERATION_NOT_ATTEMPTED.
"""

from collections.abc import Callable
from functools import partial

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.transactions.enlisting import Result, Wish, response_of, result_of, wishes_of
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse


def handle(
    request: AddPartitionsToTxnRequest, version: int, connection: Connection, broker: Broker
) -> Pending:
    """Ask the coordinator of each transaction."""
    wishes = wishes_of(request, version)
    results: dict[int, Result] = {}
    pending = Pending()

    def answered(number: int, result: Result) -> None:
        results[number] = result
        if len(results) == len(wishes):
            pending.resolve(response_of([results[each] for each in range(len(wishes))], version))

    for number, wish in enumerate(wishes):
        _ask(wish, version, broker, partial(answered, number))
    if not wishes:
        pending.resolve(AddPartitionsToTxnResponse())
    return pending


def _ask(wish: Wish, version: int, broker: Broker, done: Callable[[Result], None]) -> None:
    absent = _absent(wish, broker)
    if absent:
        done(result_of(wish, absent))
        return

    def decided(outcome: Result | BrokerError) -> None:
        done(result_of(wish, outcome.code) if isinstance(outcome, BrokerError) else outcome)

    broker.transactions.submit(
        wish.transactional_id, lambda machine, now, _: machine.add_partitions(wish, version, now), decided
    )


def _absent(wish: Wish, broker: Broker) -> dict[tuple[str, int], ErrorCode]:
    """Return what to say of each partition when some of them do not exist, else nothing."""
    known = broker.image.topics.by_name
    codes: dict[tuple[str, int], ErrorCode] = {}
    for topic in wish.topics:
        found = known.get(topic.name)
        for index in topic.partitions:
            there = found is not None and index in found.partitions
            codes[topic.name, index] = (
                ErrorCode.OPERATION_NOT_ATTEMPTED if there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
    gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in codes.values()
    return codes if gone else {}


API = Api(
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    handle,
    long=in_slices(Cut("transactions", "results_by_transaction"), size=100),
)
