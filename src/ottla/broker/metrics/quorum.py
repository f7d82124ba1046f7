"""The metadata log and its quorum, under the names of Kafka's raft metrics."""

from collections.abc import Iterator

from ottla.broker.broker import Broker
from ottla.http.metrics.text import Family, gauge

_RAFT = "kafka_server_raftmetrics_"
_LOADER = "kafka_server_brokermetadatametrics_"


def quorum(broker: Broker) -> Iterator[Family]:
    """Who leads the metadata log, and how far it is."""
    raft = broker.quorum
    replica = raft.driver.raft
    yield gauge(_RAFT + "current_leader", "The node that leads the metadata log.").add(raft.leader_id)
    yield gauge(_RAFT + "current_epoch", "The epoch it leads in.").add(raft.epoch)
    yield gauge(_RAFT + "current_vote", "Whom this node voted for.").add(replica.vote_id)
    yield gauge(_RAFT + "high_watermark", "Offset below which metadata is committed.").add(
        raft.committed_offset
    )
    yield gauge(_RAFT + "log_end_offset", "Offset of the next metadata record.").add(raft.end_offset)
    state = gauge(_RAFT + "current_state", "What this node is to the quorum.")
    yield state.add(1, current_state=replica.standing)
    applied = gauge(_LOADER + "last_applied_record_offset", "Offset of the last metadata record in force.")
    yield applied.add(broker.image.offset)
