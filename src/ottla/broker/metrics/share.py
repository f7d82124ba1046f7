"""Share groups: what their consumers ask for and say, the records they hold, and the state that is kept of it.

What Kafka measures of its locks around share partitions is not told: there are none.
"""

from collections.abc import Iterator

from ottla.broker.broker import Broker
from ottla.broker.metrics.coordinators import coordinators
from ottla.broker.share_traffic import Asked
from ottla.http.metrics.text import Family, counter, gauge, label_text
from ottla.share.acknowledgement import Verdict

_GROUP = "kafka_server_sharegroupmetrics_"
_PARTITION = "kafka_server_sharepartitionmetrics_"
_STATE = "kafka_server_share_coordinator_metrics_"
_SESSIONS = "kafka_server_sharesessioncache_"
_STATES_AT_ONCE = 1_000

# The name behind kafka_server_brokertopicmetrics_, and what it counts.
_TRAFFIC = (
    (Asked.FETCHES, "totalsharefetchrequests_total", "Reads that share consumers asked for."),
    (Asked.FETCH_FAILURES, "failedsharefetchrequests_total", "Reads refused to share consumers."),
    (Asked.ACKNOWLEDGEMENTS, "totalshareacknowledgementrequests_total", "Acknowledgements of records."),
    (
        Asked.ACKNOWLEDGEMENT_FAILURES,
        "failedshareacknowledgementrequests_total",
        "Acknowledgements of records refused.",
    ),
)


def share(broker: Broker) -> Iterator[Family | None]:
    """Everything about share groups; None where the page may pause."""
    yield from _traffic(broker)
    yield from _letters(broker)
    yield from _partitions(broker)
    yield from _sessions(broker)
    yield from coordinators(_STATE, broker.share.states.machines)
    writes = broker.share.states.writes
    mean, longest = writes.look()
    yield counter(_STATE + "write_total", "Changes of share partitions' state written.").add(writes.count)
    yield gauge(_STATE + "write_latency_avg", "Mean time of such a write, in milliseconds.").add(mean)
    yield gauge(_STATE + "write_latency_max", "Longest time of such a write, in milliseconds.").add(longest)
    yield from _lag(broker)


def _traffic(broker: Broker) -> Iterator[Family]:
    traffic = broker.share.partitions.traffic
    by_id = broker.image.topics.by_id
    known = [
        (by_id[topic_id].name, counts) for topic_id, counts in traffic.by_topic.items() if topic_id in by_id
    ]
    known.sort(key=lambda each: each[0])
    for what, name, help in _TRAFFIC:
        family = counter("kafka_server_brokertopicmetrics_" + name, help)
        family.add(traffic.gone[what] + sum(counts[what] for counts in traffic.by_topic.values()))
        for topic, counts in known:
            family.add(counts[what], topic=topic)
        yield family
    said = counter(_GROUP + "recordacknowledgements_total", "Records acknowledged, by what was said of them.")
    for verdict, count in traffic.verdicts.items():
        if verdict is not Verdict.GAP:
            said.add(count, ackType=verdict.name.capitalize())
    yield said


def _letters(broker: Broker) -> Iterator[Family]:
    records = counter(_GROUP + "deadletterqueuerecordcount_count", "Dead letters written.")
    batches = counter(_GROUP + "deadletterqueuetotalproducerequests_total", "Attempts to write dead letters.")
    failures = counter(_GROUP + "deadletterqueuefailedproducerequests_total", "Such attempts that failed.")
    for group_id, counts in broker.share.letters.counts.items():
        records.add(counts.records, group=group_id)
        batches.add(counts.batches, group=group_id)
        failures.add(counts.failures, group=group_id)
    yield from (records, batches, failures)


def _partitions(broker: Broker) -> Iterator[Family]:
    held = gauge(_PARTITION + "inflightmessagecount", "Records between the group's start and end.")
    batches = gauge(_PARTITION + "inflightbatchcount", "Pieces in which they were handed out.")
    timeouts = counter(_PARTITION + "acquisitionlocktimeout_total", "Records that were held too long.")
    for seat in broker.share.partitions.seats:
        labels = label_text(
            {"group": seat.key.group_id, "topic": seat.partition.topic, "partition": seat.key.partition}
        )
        held.samples.append((labels, len(seat.share.window)))
        batches.samples.append((labels, len(seat.share.window.flights)))
        timeouts.samples.append((labels, seat.share.timeouts))
    yield from (held, batches, timeouts)
    loads = broker.share.partitions.loads
    mean, longest = loads.look()
    yield counter(_GROUP + "partitionloadtimems_count", "Share partitions loaded.").add(loads.count)
    yield gauge("ottla_share_partition_load_ms_avg", "Mean time to load a share partition.").add(mean)
    yield gauge("ottla_share_partition_load_ms_max", "Longest time to load a share partition.").add(longest)


def _sessions(broker: Broker) -> Iterator[Family]:
    sessions = broker.share.sessions
    yield gauge(_SESSIONS + "sharesessionscount", "Share sessions.").add(len(sessions))
    yield gauge(_SESSIONS + "sharepartitionscount", "Partitions in share sessions.").add(sessions.partitions)
    # A session is never pushed out by another.
    yield counter(_SESSIONS + "sharesessionevictions_total", "Share sessions pushed out.").add(0)


def _lag(broker: Broker) -> Iterator[Family | None]:
    """How far share groups are behind, as far as it is written down."""
    family = gauge("ottla_share_group_lag", "Records that the share group is not done with.")
    for machine in broker.share.states.machines.machines:
        states = tuple(machine.states.items())
        for start in range(0, len(states), _STATES_AT_ONCE):
            for key, state in states[start : start + _STATES_AT_ONCE]:
                partition = broker.table.awake_by_id.get((key.topic_id, key.partition))
                if partition is None or partition.error is not None or state.start_offset < 0:
                    continue
                left = partition.high_watermark - state.start_offset - state.complete_count
                family.add(max(0, left), group=key.group_id, topic=partition.topic, partition=key.partition)
            yield None
    yield family
