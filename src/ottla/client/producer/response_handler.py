"""Handles produce responses: the outcome of each batch, and new leaders."""

from ottla.client.cluster import Cluster
from ottla.client.connections import Node
from ottla.client.errors import Disconnected, Malformed, TimedOut
from ottla.client.producer.batch_completion import STALE_METADATA, BatchCompletion, BatchResponse
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.destination_broker import DestinationBroker
from ottla.client.producer.in_flight_request import InFlightRequest
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.client.producer.statistics import Statistics
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.messages.produce import ProduceResponse


class ResponseHandler:
    """Handles the produce responses of one producer."""

    def __init__(
        self, cluster: Cluster, completion: BatchCompletion, statistics: Statistics, config: ProducerConfig
    ) -> None:
        self._cluster = cluster
        self._completion = completion
        self._statistics = statistics
        self._timeout_s = config.request_timeout_ms / 1000

    def handle_disconnect(
        self, broker: DestinationBroker, in_flight_request: InFlightRequest, reason: Exception, now: float
    ) -> None:
        """Handle a request whose connection was lost before the response."""
        node = broker.node
        if broker.timed_out:
            slow = TimedOut(f"broker {node} did not batch_response within {self._timeout_s:g} s")
            batch_response = BatchResponse(ErrorCode.REQUEST_TIMED_OUT, error=slow)
        elif isinstance(reason, ProtocolError):
            garbled = Malformed(f"broker {node} sent what cannot be read: {reason}")
            batch_response = BatchResponse(ErrorCode.NETWORK_EXCEPTION, error=garbled)
        else:
            gone = Disconnected(f"broker {node} was lost: {reason}")
            batch_response = BatchResponse(ErrorCode.NETWORK_EXCEPTION, error=gone)
        self._completion.handle_all(in_flight_request.batches, batch_response, now)
        self._cluster.request_refresh()

    def handle(
        self,
        broker: DestinationBroker,
        in_flight_request: InFlightRequest,
        response: ProduceResponse,
        now: float,
    ) -> None:
        """Handle a response."""
        took = now - in_flight_request.sent_at
        self._statistics.request_seconds += took
        self._statistics.request_seconds_max = max(self._statistics.request_seconds_max, took)
        if response.throttle_time_ms > 0:
            throttle_s = response.throttle_time_ms / 1000
            self._statistics.throttle_seconds += throttle_s
            if broker.connection is not None:
                broker.connection.throttled_until = now + throttle_s
        stale = False
        by_partition = in_flight_request.by_partition
        for topic in response.responses:
            key = topic.name or topic.topic_id
            for part in topic.partition_responses:
                batch = by_partition.pop((key, part.index), None)
                if batch is None:
                    continue
                code = ErrorCode(part.error_code) if part.error_code else ErrorCode.NONE
                batch_response = BatchResponse(
                    code,
                    part.base_offset,
                    part.log_append_time_ms,
                    part.log_start_offset,
                    part.error_message,
                    part.record_errors,
                )
                self._completion.handle_response(batch, batch_response, now)
                if code in STALE_METADATA:
                    stale = not self._learn_leader(batch.queue, part, response) or stale
        if by_partition:
            missing = Malformed(f"broker {broker.node} left partitions out of its answer")
            failure = BatchResponse(ErrorCode.UNKNOWN_SERVER_ERROR, error=missing)
            self._completion.handle_all(by_partition.values(), failure, now)
        if stale:
            self._cluster.request_refresh()

    def _learn_leader(
        self,
        queue: PartitionQueue,
        part: ProduceResponse.TopicProduceResponse.PartitionProduceResponse,
        response: ProduceResponse,
    ) -> bool:
        """Use the leader that a response names (KIP-951), if any. Return whether it is a new one."""
        leader = part.current_leader
        if leader is None or leader.leader_id < 0:
            return False
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        return self._cluster.learn_leader(
            queue.topic, queue.partition, leader.leader_id, leader.leader_epoch, nodes
        )
