"""Reads the answers to produce requests, for what they say of batches and of leaders."""

from ottla.client.cluster import Cluster
from ottla.client.errors import Disconnected, Malformed, TimedOut
from ottla.client.links import Node
from ottla.client.producer.courier import Courier
from ottla.client.producer.lane import Lane
from ottla.client.producer.parcel import Parcel
from ottla.client.producer.settlement import STALE, Answer, Settlement
from ottla.client.producer.tally import Statistics
from ottla.client.producer.terms import Terms
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.messages.produce import ProduceResponse


class Answers:
    """What comes back to one producer."""

    def __init__(
        self, cluster: Cluster, settlement: Settlement, statistics: Statistics, terms: Terms
    ) -> None:
        self._cluster = cluster
        self._settlement = settlement
        self._statistics = statistics
        self._timeout_s = terms.request_timeout_ms / 1000

    def lost(self, courier: Courier, parcel: Parcel, reason: Exception, now: float) -> None:
        """Take in that there will be no answer to a request."""
        node = courier.node
        if courier.timed_out:
            slow = TimedOut(f"broker {node} did not answer within {self._timeout_s:g} s")
            answer = Answer(ErrorCode.REQUEST_TIMED_OUT, error=slow)
        elif isinstance(reason, ProtocolError):
            garbled = Malformed(f"broker {node} sent what cannot be read: {reason}")
            answer = Answer(ErrorCode.NETWORK_EXCEPTION, error=garbled)
        else:
            gone = Disconnected(f"broker {node} was lost: {reason}")
            answer = Answer(ErrorCode.NETWORK_EXCEPTION, error=gone)
        self._settlement.settle_all(parcel.batches, answer, now)
        self._cluster.stale()

    def take(self, courier: Courier, parcel: Parcel, response: ProduceResponse, now: float) -> None:
        """Take in an answer."""
        took = now - parcel.at
        self._statistics.request_seconds += took
        self._statistics.request_seconds_max = max(self._statistics.request_seconds_max, took)
        if response.throttle_time_ms > 0:
            patience_s = response.throttle_time_ms / 1000
            self._statistics.throttle_seconds += patience_s
            if courier.peer is not None:
                courier.peer.muted_until = now + patience_s
        stale = False
        by_place = parcel.by_place
        for topic in response.responses:
            key = topic.name or topic.topic_id
            for part in topic.partition_responses:
                batch = by_place.pop((key, part.index), None)
                if batch is None:
                    continue
                code = ErrorCode(part.error_code) if part.error_code else ErrorCode.NONE
                answer = Answer(
                    code,
                    part.base_offset,
                    part.log_append_time_ms,
                    part.log_start_offset,
                    part.error_message,
                    part.record_errors,
                )
                self._settlement.settle(batch, answer, now)
                if code in STALE:
                    stale = not self._learn_leader(batch.lane, part, response) or stale
        if by_place:
            missing = Malformed(f"broker {courier.node} left partitions out of its answer")
            failure = Answer(ErrorCode.UNKNOWN_SERVER_ERROR, error=missing)
            self._settlement.settle_all(by_place.values(), failure, now)
        if stale:
            self._cluster.stale()

    def _learn_leader(
        self,
        lane: Lane,
        part: ProduceResponse.TopicProduceResponse.PartitionProduceResponse,
        response: ProduceResponse,
    ) -> bool:
        """Go by the leader that an answer names (KIP-951), if it does; whether that was news."""
        leader = part.current_leader
        if leader is None or leader.leader_id < 0:
            return False
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        return self._cluster.learn_leader(
            lane.topic, lane.partition, leader.leader_id, leader.leader_epoch, nodes
        )
