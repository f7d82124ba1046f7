"""Transactions, as far as they are coordinated here."""

from collections.abc import Iterator

from ottla.broker.broker import Broker
from ottla.broker.metrics.coordinators import load_times
from ottla.http.metrics.text import Family, gauge
from ottla.transactions.state import State

_MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
_IDS_AT_ONCE = 2_000


def transactions(broker: Broker) -> Iterator[Family | None]:
    """Transactional ids by state, and markers that wait; None where the page may pause."""
    hosted = broker.transactions.machines
    yield from load_times("kafka_server_transaction_coordinator_metrics_", hosted.loads)
    unsent = gauge(_MARKERS + "unknowndestinationqueuesize", "Markers that wait for a leader to go to.")
    yield unsent.add(broker.transactions.unsent)
    unrecorded = gauge(_MARKERS + "logappendretryqueuesize", "Completed transactions yet to be recorded.")
    yield unrecorded.add(broker.transactions.unrecorded)
    states = dict.fromkeys(State, 0)
    for machine in hosted.machines:
        ids = tuple(machine.transactions.values())
        for start in range(0, len(ids), _IDS_AT_ONCE):
            for transaction in ids[start : start + _IDS_AT_ONCE]:
                states[transaction.state] += 1
            yield None
    family = gauge("ottla_transactional_ids", "Transactional ids by the state of their transaction.")
    for state, count in states.items():
        family.add(count, state=state.label)
    yield family
