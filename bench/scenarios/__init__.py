"""What is measured, one scenario a file. Each takes a stage and returns its figures by name."""

from collections.abc import Callable

from bench.scenarios.big_batches import big_batches, durable
from bench.scenarios.connections import connections
from bench.scenarios.consume import consume
from bench.scenarios.coordination import commits, idle_members, settling, transactions
from bench.scenarios.flat import flat
from bench.scenarios.latency import latency
from bench.scenarios.memory import memory
from bench.scenarios.partitions import partitions
from bench.scenarios.requests import requests
from bench.scenarios.start import start
from bench.stage import Stage

Scenario = Callable[[Stage], dict[str, float]]

SCENARIOS: dict[str, Scenario] = {
    "requests": requests,
    "big_batches": big_batches,
    "durable": durable,
    "consume": consume,
    "latency": latency,
    "memory": memory,
    "start": start,
    "flat": flat,
    "partitions": partitions,
    "connections": connections,
    "commits": commits,
    "transactions": transactions,
    "settling": settling,
    "idle_members": idle_members,
}

# Flatness is a ratio of Ottla to itself, and 20 GB are dear: Kafka sits this one out.
OTTLA_ALONE = frozenset({"flat"})
