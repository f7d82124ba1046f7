"""The rows of the result, and what is required of each.

A rule looks at the medians of all rounds. Three kinds: a ratio to Kafka's figure, a ratio to another figure of
Ottla's own, and a bound on the figure itself. A row without a rule is there to be read.
"""

from dataclasses import dataclass
from typing import Literal

Medians = dict[str, dict[str, float]]  # product, figure


@dataclass(frozen=True)
class Rule:
    """`at_least` or `at_most` a limit, compared with Kafka, with another of Ottla's figures, or with nothing."""

    kind: Literal["at least", "at most"]
    limit: float
    against: str = "kafka"  # "kafka", "itself", or the name of another figure of Ottla's

    def holds(self, found: float) -> bool:
        return found >= self.limit if self.kind == "at least" else found <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.kind == "at least" else "≤"
        return f"{sign} {self.limit:g}" if self.against == "itself" else f"{sign} {self.limit:g} ×"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    figure: str
    title: str
    unit: str
    rule: Rule | None = None

    def compared(self, medians: Medians) -> float | None:
        """What the rule looks at: a ratio or the figure itself; None when it was not measured."""
        own = medians.get("ottla", {})
        mine = own.get(self.figure)
        if mine is None:
            return None
        against = self.rule.against if self.rule else "kafka"
        if against == "itself":
            return mine
        other = medians.get("kafka", {}).get(self.figure) if against == "kafka" else own.get(against)
        return mine / other if other else None

    def verdict(self, medians: Medians) -> str:
        found = self.compared(medians)
        if self.rule is None:
            return ""
        if found is None:
            return "not measured"
        return "holds" if self.rule.holds(found) else "FAILS"


def _at_least(limit: float, against: str = "kafka") -> Rule:
    return Rule("at least", limit, against)


def _at_most(limit: float, against: str = "kafka") -> Rule:
    return Rule("at most", limit, against)


def _of_a_cluster() -> list[Row]:
    """What `python -m bench.cluster` measures: three nodes, three replicas, acks=all."""
    rows = []
    for name, words in (
        ("cluster", "three nodes"),
        ("cluster_ack", "three nodes, flush=ack (Kafka: no fsync)"),
    ):
        required = name == "cluster"
        rows += [
            Row(f"{name}.mb_per_s", f"{words}: produce 1 KB", "MB/s", _at_least(1.0) if required else None),
            Row(f"{name}.cpu_ms_per_mb", "… CPU of all a megabyte", "ms"),
            Row(f"{name}.p50_ms", f"{words}: end to end at 500 msg/s, p50", "ms"),
            Row(
                f"{name}.p99_ms",
                f"{words}: end to end at 500 msg/s, p99",
                "ms",
                _at_most(0.6) if required else None,
            ),
            Row(f"{name}.ack_p50_ms", f"{words}: acknowledged at 500 msg/s, p50", "ms"),
            Row(f"{name}.ack_p99_ms", f"{words}: acknowledged at 500 msg/s, p99", "ms"),
            Row(f"{name}.resident_mb", f"{words}: memory of all", "MB", _at_most(0.12) if required else None),
            Row(
                f"{name}.idle_percent",
                f"{words}: idle CPU of all",
                "% of a core",
                _at_most(0.5) if required else None,
            ),
            Row(
                f"{name}.first_ack_s",
                f"{words}: cold start to first ack",
                "s",
                _at_most(0.4) if required else None,
            ),
        ]
    for client in ("librdkafka", "ottla"):
        words = f"leader killed, {client}"
        rows += [
            Row(f"failover.{client}_p50_s", f"{words}: next write acknowledged, p50", "s"),
            Row(
                f"failover.{client}_p99_s",
                f"{words}: next write acknowledged, p99",
                "s",
                _at_most(3.0, "itself"),
            ),
            Row(f"failover.{client}_max_s", f"{words}: next write acknowledged, at most", "s"),
            Row(f"failover.{client}_errors", f"{words}: failed sends", "", _at_most(0, "itself")),
        ]
    for client in ("librdkafka", "ottla"):
        words = f"rolling restart, {client}"
        rows += [
            Row(
                f"rolling.{client}_stop_gap_ms",
                f"{words}: longest gap at a stop",
                "ms",
                _at_most(300, "itself"),
            ),
            Row(f"rolling.{client}_gap_ms", f"{words}: longest gap", "ms"),
            Row(f"rolling.{client}_errors", f"{words}: failed sends", "", _at_most(0, "itself")),
        ]
    return [*rows, Row("rolling.stop_s", "rolling restart: an orderly stop", "s")]


ROWS = (
    Row("requests.per_s", "one-record requests, librdkafka", "1/s", _at_least(2.0)),
    Row("requests.cpu_us", "… CPU a request", "µs", _at_most(0.5)),
    Row("requests.raw_per_s", "one-record requests, plain socket", "1/s", _at_least(2.0)),
    Row("requests.raw_cpu_us", "… CPU a request", "µs", _at_most(0.5)),
    Row("requests.raw8_per_s", "one-record requests, eight sockets", "1/s"),
    Row("requests.raw8_cpu_us", "… CPU a request", "µs"),
    Row("big_batches.mb_per_s", "produce 1 KB in big batches, librdkafka", "MB/s", _at_least(1.0)),
    Row("big_batches.cpu_ms_per_mb", "… CPU a megabyte", "ms", _at_most(0.6)),
    Row("big_batches.raw_mb_per_s", "produce 1 KB in big batches, plain socket", "MB/s"),
    Row("big_batches.raw_cpu_ms_per_mb", "… CPU a megabyte", "ms"),
    Row("durable.mb_per_s", "the same, flush=ack (Kafka: no fsync), librdkafka", "MB/s", _at_least(1.0)),
    Row("durable.raw_mb_per_s", "the same, flush=ack (Kafka: no fsync), plain socket", "MB/s"),
    Row("consume.mb_per_s", "consume 1 KB, librdkafka", "MB/s"),
    Row("consume.cpu_ms_per_mb", "… CPU a megabyte", "ms", _at_most(1.0)),
    Row("consume.small_per_s", "consume 100 B, librdkafka", "1/s"),
    Row("consume.raw_mb_per_s", "consume 1 KB, plain socket", "MB/s"),
    Row("consume.raw_cpu_ms_per_mb", "… CPU a megabyte", "ms"),
    Row("latency.p50_ms", "end to end at 1,000 msg/s, p50", "ms", _at_most(0.6)),
    Row("latency.p99_ms", "end to end at 1,000 msg/s, p99", "ms", _at_most(0.6)),
    Row("latency.cpu_percent", "… CPU at that rate", "% of a core"),
    Row("memory.started_mb", "resident memory, just started", "MB"),
    Row("memory.worked_mb", "resident memory, after work", "MB", _at_most(0.12)),
    Row("memory.most_mb", "resident memory, at most", "MB"),
    Row("start.first_ack_s", "start to first acknowledged record", "s", _at_most(0.3)),
    Row("flat.small_requests_per_s", "one-record requests, small log", "1/s"),
    Row("flat.large_requests_per_s", "one-record requests, large log", "1/s"),
    Row("flat.requests_ratio", "… large beside small, turn by turn", "", _at_least(0.9, "itself")),
    Row("flat.small_produce_mb_per_s", "produce, small log", "MB/s"),
    Row("flat.large_produce_mb_per_s", "produce, large log", "MB/s"),
    Row("flat.produce_ratio", "… large beside small, turn by turn", "", _at_least(0.9, "itself")),
    Row("flat.small_fetch_mb_per_s", "fetch, small log", "MB/s"),
    Row("flat.large_fetch_mb_per_s", "fetch, large log", "MB/s"),
    Row("flat.fetch_ratio", "… large beside small, turn by turn", "", _at_least(0.9, "itself")),
    Row("partitions.idle_percent", "many partitions, idle CPU", "% of a core", _at_most(3.0, "itself")),
    Row("partitions.one_per_s", "requests to the only partition", "1/s"),
    Row(
        "partitions.many_per_s",
        "requests to one of many partitions",
        "1/s",
        _at_least(0.85, "partitions.one_per_s"),
    ),
    Row("partitions.stop_s", "many partitions, clean stop", "s"),
    Row("partitions.restart_s", "many partitions, restart to first ack", "s", _at_most(0.3)),
    Row("partitions.resident_mb", "many partitions, resident memory", "MB"),
    Row("connections.mb", "idle connections, memory", "MB", _at_most(150.0, "itself")),
    Row("commits.per_s", "offset commits, librdkafka", "1/s", _at_least(2.0)),
    Row("commits.cpu_us", "… CPU a commit", "µs"),
    Row("commits.raw_per_s", "offset commits, plain socket", "1/s", _at_least(2.0)),
    Row("commits.raw_cpu_us", "… CPU a commit", "µs"),
    Row("transactions.per_s", "transactions of one record, librdkafka", "1/s", _at_least(1.5)),
    Row("transactions.cpu_us", "… CPU a transaction", "µs"),
    Row("settling.classic_s", "200 members settle, classic group", "s", _at_most(1.0)),
    Row("settling.classic_cpu_s", "… CPU", "s"),
    Row("settling.consumer_s", "200 members settle, KIP-848 group", "s", _at_most(1.0)),
    Row("settling.consumer_cpu_s", "… CPU", "s"),
    Row("idle_members.classic_percent", "1,000 idle members, classic groups", "% of a core", _at_most(0.5)),
    Row("idle_members.consumer_percent", "1,000 idle members, KIP-848 groups", "% of a core", _at_most(0.5)),
    *_of_a_cluster(),
)
