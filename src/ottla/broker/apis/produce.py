"""Produce (0): append one record batch to each named partition.

Served at v3 to v13, advertised from v0. acks=0 gets no answer; acks=1 and acks=all are answered once the records are
durable in the sense of `ottla.flush`. v10 may carry a leader hint; v13 names topics by id.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.apis.metadata import INTERNAL_TOPICS
from ottla.broker.broker import Broker
from ottla.broker.durable import ALL, Durable, Part, Waits
from ottla.broker.express import express
from ottla.broker.leader_hint import TOLD_WITH, Hint, hint
from ottla.broker.verification import Refused, doubtful, verify
from ottla.channel.connection import Connection
from ottla.log.validation import MalformedBatch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse

_ATTRIBUTES_AT = 22  # the low byte of a batch's attributes
_TRANSACTIONAL = 0x10
_CODEC_MASK = 0x07
_ZSTD = 4
_ZSTD_SINCE = 7
_REASONS_SINCE = 8
_HINTS_SINCE = 10
_BY_ID_SINCE = 13
# Whoever calls itself this may write to internal topics, as in Kafka; its tools for repairs do.
_ADMIN = b"__admin_client"

Topic = ProduceResponse.TopicProduceResponse
Reason = Part.BatchIndexAndErrorMessage

_response, _topic, _part = ProduceResponse.maker(), Topic.maker(), Part.maker()


def handle(
    request: ProduceRequest, version: int, connection: Connection, broker: Broker
) -> ProduceResponse | Pending | None:
    """Append everything, then answer, wait, or stay silent, as `acks` says."""
    if request.transactional_id is not None and request.acks:
        doubted = doubtful(request, version, broker)
        if doubted is not None:
            pending = Pending()
            verify(
                doubted,
                version,
                broker,
                lambda refused: _finish(request, version, connection, broker, refused, pending),
            )
            return pending
    response, waits = _append(request, version, connection, broker, {})
    if response is None or not waits:
        return response
    return Durable(response, waits, request.acks, limit=(broker, request.timeout_ms)).pending


def _finish(
    request: ProduceRequest,
    version: int,
    connection: Connection,
    broker: Broker,
    refused: Refused,
    pending: Pending,
) -> None:
    """Go on with a produce whose transaction has been looked up."""
    response, waits = _append(request, version, connection, broker, refused)
    assert response is not None, "acks=0 is not looked up"
    if waits:
        Durable(response, waits, request.acks, pending, (broker, request.timeout_ms))
    else:
        pending.resolve(response)


def _append(
    request: ProduceRequest, version: int, connection: Connection, broker: Broker, kept_out: Refused
) -> tuple[ProduceResponse | None, Waits]:
    """Append what may be, and return what to say of it, and what has to become durable before."""
    acks = request.acks
    now_ms = broker.clock.now_ms()
    table = broker.table
    waits: Waits = []
    topics = []
    refused = False
    leaders: dict[int, Hint] = {}
    for topic in request.topic_data:
        parts = []
        for wanted in topic.partition_data:
            part = _part(index=wanted.index)
            parts.append(part)
            partition = None
            tried = False
            try:
                if version >= 13:
                    partition = table.by_id(topic.topic_id, wanted.index)
                else:
                    partition = table.partitions.get((topic.name, wanted.index))
                    if partition is None:
                        partition = table.by_name(topic.name, wanted.index)
                partition.produce_requests += 1
                if acks not in (-1, 0, 1):
                    raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS)
                records = wanted.records
                if records is None:
                    raise BrokerError(
                        ErrorCode.INVALID_RECORD, "the request carries no records for this partition"
                    )
                if len(records) > _ATTRIBUTES_AT:
                    attributes = records[_ATTRIBUTES_AT]
                    if attributes & _TRANSACTIONAL:
                        if request.transactional_id is None:
                            raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                        if (partition.topic, partition.index) in kept_out:
                            raise kept_out[partition.topic, partition.index]
                    if version < _ZSTD_SINCE and attributes & _CODEC_MASK == _ZSTD:
                        raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
                if partition.topic in INTERNAL_TOPICS and connection.session.client_id != _ADMIN:
                    raise BrokerError(
                        ErrorCode.INVALID_TOPIC_EXCEPTION, f"only brokers write to {partition.topic}"
                    )
                tried = True
                leadership = partition.leadership
                if leadership is not None and acks == ALL and leadership.is_under_min_isr:
                    raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
                appended = partition.append(records, now_ms)
                part.base_offset = appended.base_offset
                part.log_append_time_ms = appended.log_append_time_ms
                part.log_start_offset = partition.log.start_offset
                if appended.end_offset > (
                    partition.high_watermark if acks == ALL else partition.durable_offset
                ):
                    waits.append((partition, appended.end_offset, part))
            except BrokerError as error:
                refused = True
                if partition is not None:
                    partition.produce_failures += 1
                part.base_offset = -1
                part.error_code = error.code
                part.error_message = error.message
                if version >= _HINTS_SINCE and error.code in TOLD_WITH:
                    name = topic.topic_id if version >= _BY_ID_SINCE else topic.name
                    told = hint(broker, name, wanted.index, connection.listener)
                    if told is not None:
                        part.current_leader = Part.LeaderIdAndEpoch(
                            leader_id=told.leader_id, leader_epoch=told.leader_epoch
                        )
                        leaders[told.leader_id] = told
                if tried and partition is not None and not isinstance(error, MalformedBatch):
                    part.log_start_offset = partition.log.start_offset
                    if error.records and version >= _REASONS_SINCE:
                        part.record_errors = [
                            Reason(batch_index=index, batch_index_error_message=error.message)
                            for index in error.records
                        ]
        topics.append(_topic(name=topic.name, topic_id=topic.topic_id, partition_responses=parts))
    if acks == 0:
        if refused:
            # Nobody reads an answer, so a closed connection is the only way to say it.
            connection.close()
        return None, waits
    response = _response(responses=topics)
    if leaders:
        response.node_endpoints = [
            ProduceResponse.NodeEndpoint(
                node_id=each.leader_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in leaders.values()
        ]
    return response, waits


API = Api(ProduceRequest, ProduceResponse, handle, advertised_from=0, express=express)
