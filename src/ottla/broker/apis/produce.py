"""Produce (0): append one record batch to each named partition.

Served at v3 to v13, advertised from v0. acks=0 gets no answer; acks=1 and acks=all are answered once the records are
durable in the sense of `ottla.flush`. v10 may carry a leader hint; v13 names topics by id. Of a partition that is named
twice the last batch counts, and is answered once, as in Kafka.
"""

import struct
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ottla.broker.api import Api, Pending
from ottla.broker.apis.metadata import INTERNAL_TOPICS
from ottla.broker.broker import Broker
from ottla.broker.durable import ALL, Durable, Part, Waits
from ottla.broker.express import express
from ottla.broker.fair_queue import Job
from ottla.broker.kept_request import KeptRequest, hopeless, once_each
from ottla.broker.leader_hint import TOLD_WITH, Hint, hint
from ottla.broker.verification import Doubted, Verified, doubtful, verify
from ottla.channel.connection import Connection
from ottla.log.config import LogConfig
from ottla.log.inspection import Allowance, Inspected, PostponedError
from ottla.log.validation import MalformedBatch, inspect_client_batch
from ottla.log.verification import UNVERIFIED, Verification
from ottla.partition.partition import Partition
from ottla.wire.batch import BATCH_HEADER_SIZE
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse
from ottla.world.disk import Bytes

_COUNT_AT = 57  # of a batch's records
_read_count = struct.Struct(">i").unpack_from
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
    once_each(request, version)
    if request.transactional_id is not None:
        try:
            doubted = doubtful(request, version, broker)
        except BrokerError as error:
            return _Appending(request, version, connection, broker, error, None).begin()
        if doubted is not None:
            pending = Pending() if request.acks else None
            _Appending(request, version, connection, broker, None, pending).look_up(doubted)
            return pending
    return _Appending(request, version, connection, broker, None, None).begin()


class _Appending:
    """The batches of one request on their way into their logs.

    A batch that is too long to be looked through on the loop waits until a thread has done that, and one that begins a
    transaction may wait for its coordinator. The connection is mute meanwhile, so that nothing overtakes it; all that
    may have changed by then is asked again.
    """

    __slots__ = (
        "_allowance",
        "_broker",
        "_connection",
        "_hopeless",
        "_kept",
        "_leaders",
        "_pending",
        "_postponed",
        "_refused",
        "_request",
        "_topics",
        "_verified",
        "_version",
        "_waits",
    )

    def __init__(
        self,
        request: ProduceRequest,
        version: int,
        connection: Connection,
        broker: Broker,
        verified: Verified | BrokerError | None,
        pending: Pending | None,
    ) -> None:
        """`verified` is what came of a look-up of the transaction, or why nothing is to be appended."""
        self._request = request
        self._version = version
        self._connection = connection
        self._broker = broker
        self._verified = verified
        self._pending = pending
        self._waits: Waits = []
        self._topics: list[Topic] = []
        self._refused = False
        self._leaders: dict[int, Hint] = {}
        self._postponed: list[_Postponed] = []
        self._allowance = Allowance()
        self._kept = KeptRequest(request, connection)
        self._hopeless: dict[int, BrokerError] = {}  # why a batch was not kept, by the identity of its part

    def look_up(self, doubted: Doubted) -> None:
        """Have the coordinator asked, and begin then; nothing else of this connection is served before."""
        connection = self._connection
        self._hopeless = hopeless(self._request, self._version, self._broker)
        self._kept.keep(without=self._hopeless)
        connection.on_close.append(self._client_gone)
        verify(doubted, self._version, self._broker, self._looked_up)
        if self._verified is None:
            connection.mute()

    def _looked_up(self, verified: Verified) -> None:
        connection = self._connection
        if self._client_gone in connection.on_close:
            connection.on_close.remove(self._client_gone)
        self._verified = verified
        self.begin_later()
        if connection.muted and id(connection) not in self._broker.inspecting:
            connection.unmute()

    def _client_gone(self) -> None:
        """Give up what waits for the coordinator, where too much waits already."""
        if not self._outlives():
            gone = BrokerError(ErrorCode.NETWORK_EXCEPTION, "the client has gone")
            for topic in self._request.topic_data:
                self._hopeless.update((id(part), gone) for part in topic.partition_data)
            self._kept.drop()

    def begin(self) -> ProduceResponse | Pending | None:
        """Append what may be, and return what to say of it if that is known."""
        if isinstance(self._verified, Verified):  # an older batch may be looked through since the look-up began
            behind = self._broker.inspecting.get(id(self._connection))
            if behind is not None:
                behind.append(self.begin_later)
                return self._pending
        now_ms = self._broker.clock.now_ms()
        for topic in self._request.topic_data:
            parts = []
            for wanted in topic.partition_data:
                part = _part(index=wanted.index)
                parts.append(part)
                self._append(topic, wanted, part, now_ms, None)
            self._topics.append(_topic(name=topic.name, topic_id=topic.topic_id, partition_responses=parts))
        if not self._postponed:
            self._kept.release()
            return self._answer()
        if self._pending is None and self._request.acks:
            self._pending = Pending()
        self._kept.keep(without=self._settled())  # the buffer is the next request's
        self._broker.inspecting[id(self._connection)] = deque()
        self._connection.mute()
        self._inspect(now_ms)
        return self._pending

    def _settled(self) -> set[int]:
        """Return the identities of the parts of which no batch waits for the thread."""
        parts = {id(part) for topic in self._request.topic_data for part in topic.partition_data}
        return parts.difference(id(each.wanted) for each in self._postponed)

    def begin_later(self) -> None:
        """As `begin`, where nobody else would give up on a request that breaks."""
        try:
            self.begin()
        except Exception as error:  # noqa: BLE001
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Give up on this request alone."""
        self._kept.release()
        if self._pending is not None:
            self._pending.fail(error)
        else:
            self._broker.failed(error)
            self._connection.close()

    def _inspect(self, now_ms: int) -> None:
        """Have each batch looked through, in a turn of its own; then go on with all of them."""
        postponed, self._postponed = self._postponed, []
        results: dict[int, Inspected | BrokerError] = {}  # by the number of the batch: they come in any order

        def done(number: int, result: Inspected | BrokerError | None, error: BaseException | None) -> None:
            if isinstance(error, ConnectionError):
                result = BrokerError(ErrorCode.NETWORK_EXCEPTION, "the client has gone")
            elif result is None:
                self._broker.failed(error or AssertionError("no result"))
                result = BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
            results[number] = result
            if len(results) == len(postponed):
                self._inspected([(each, results[at]) for at, each in enumerate(postponed)])

        for number, each in enumerate(postponed):
            begin = partial(partial, _inspected, each, now_ms)
            self._broker.inspections.submit(self._connection, Job(begin, partial(done, number), self._outlives))

    def _outlives(self) -> bool:
        """Whether its batches are stored though its client has gone: those that nobody has room for are not."""
        return not self._connection.connections.requests.has_long_queue

    def _inspected(self, found: "list[tuple[_Postponed, Inspected | BrokerError]]") -> None:
        try:
            now_ms = self._broker.clock.now_ms()
            for (topic, wanted, part, _, _), result in found:
                self._append(topic, wanted, part, now_ms, result)
            if self._postponed:
                self._inspect(now_ms)  # the topic's settings have changed
                return
            self._answer()
        except Exception as error:  # noqa: BLE001
            self._fail(error)
        self._let_on()

    def _let_on(self) -> None:
        """Have those served that came behind, in their order."""
        inspecting, connection = self._broker.inspecting, self._connection
        self._kept.release()
        behind = inspecting.pop(id(connection))
        while behind:
            behind.popleft()()
            if id(connection) in inspecting:  # that one is being looked through as well
                inspecting[id(connection)].extend(behind)
                return
        connection.unmute()

    def _append(
        self,
        topic: ProduceRequest.TopicProduceData,
        wanted: "_Wanted",
        part: Part,
        now_ms: int,
        inspected: Inspected | BrokerError | None,
    ) -> None:
        """Append one batch, or say in `part` why not."""
        request, version = self._request, self._version
        acks = request.acks
        table = self._broker.table
        partition = None
        tried = False
        try:
            if version >= _BY_ID_SINCE:
                partition = table.by_id(topic.topic_id, wanted.index)
            else:
                partition = table.partitions.get((topic.name, wanted.index))
                if partition is None:
                    partition = table.by_name(topic.name, wanted.index)
            if inspected is None:
                partition.produce_requests += 1
            if acks not in (-1, 0, 1):
                raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS)
            if isinstance(self._verified, BrokerError):
                raise BrokerError(self._verified.code, self._verified.message)
            if id(wanted) in self._hopeless:
                error = self._hopeless[id(wanted)]
                tried = True
                raise type(error)(error.code, error.message, error.records)
            records = wanted.records
            verification = None
            if records is None:
                raise BrokerError(
                    ErrorCode.INVALID_RECORD, "the request carries no records for this partition"
                )
            if len(records) > _ATTRIBUTES_AT:
                attributes = records[_ATTRIBUTES_AT]
                if attributes & _TRANSACTIONAL:
                    if request.transactional_id is None:
                        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                    verification = self._verification(partition)
                if version < _ZSTD_SINCE and attributes & _CODEC_MASK == _ZSTD:
                    raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            if partition.topic in INTERNAL_TOPICS:
                self._check_internal(partition.topic, inspected)
            tried = True
            leadership = partition.leadership
            if leadership is not None and acks == ALL and leadership.is_under_min_isr:
                raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
            if inspected is None and partition.refusal is None:
                self._look_through(records)
            appended = partition.append(records, now_ms, inspected, verification, self._allowance)
            part.base_offset = appended.base_offset
            part.log_append_time_ms = appended.log_append_time_ms
            part.log_start_offset = partition.log.start_offset
            if appended.end_offset > (partition.high_watermark if acks == ALL else partition.durable_offset):
                self._waits.append((partition, appended.end_offset, part))
        except PostponedError:
            assert partition is not None
            check = None
            if partition.topic in INTERNAL_TOPICS:
                hosted = self._broker.coordinators
                check = next(each for each in hosted if each.topic == partition.topic).check_batch
            self._postponed.append(_Postponed(topic, wanted, part, partition.log.config, check))
        except BrokerError as error:
            self._refuse(topic, wanted, part, error, partition, tried)

    def _look_through(self, records: Bytes) -> None:
        """Count a batch that the loop is to look through; PostponedError where it has done enough for this request."""
        if self._allowance.is_used_up:
            raise PostponedError
        count = _read_count(records, _COUNT_AT)[0] if len(records) >= BATCH_HEADER_SIZE else 0
        self._allowance.take(len(records), max(0, count))

    def _check_internal(self, topic: str, inspected: Inspected | BrokerError | None) -> None:
        """Let only the repair tools write to an internal topic, and only what its coordinator can read back."""
        if self._connection.session.client_id != _ADMIN:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only brokers write to {topic}")
        if inspected is None:
            raise PostponedError  # the records are decoded in the thread

    def _verification(self, partition: Partition) -> Verification | None:
        """Return what lets a batch open a transaction; BrokerError when the coordinator does not have it there."""
        if not self._broker.settings["transaction.partition.verification.enable"]:
            return None
        place = (partition.topic, partition.index)
        if not isinstance(self._verified, Verified):
            return UNVERIFIED
        if place in self._verified.refused:
            raise self._verified.refused[place]
        return self._verified.proofs.get(place, UNVERIFIED)

    def _refuse(
        self,
        topic: ProduceRequest.TopicProduceData,
        wanted: "_Wanted",
        part: Part,
        error: BrokerError,
        partition: Partition | None,
        tried: bool,
    ) -> None:
        version = self._version
        self._refused = True
        if partition is not None:
            partition.produce_failures += 1
        part.base_offset = -1
        part.error_code = error.code
        part.error_message = error.message
        if version >= _HINTS_SINCE and error.code in TOLD_WITH:
            name = topic.topic_id if version >= _BY_ID_SINCE else topic.name
            told = hint(self._broker, name, wanted.index, self._connection.listener)
            if told is not None:
                part.current_leader = Part.LeaderIdAndEpoch(
                    leader_id=told.leader_id, leader_epoch=told.leader_epoch
                )
                self._leaders[told.leader_id] = told
        if tried and partition is not None and not isinstance(error, MalformedBatch):
            part.log_start_offset = partition.log.start_offset
            if error.records and version >= _REASONS_SINCE:
                part.record_errors = [
                    Reason(batch_index=index, batch_index_error_message=error.message)
                    for index in error.records
                ]

    def _answer(self) -> ProduceResponse | Pending | None:
        """Return the answer, or what it waits for; None for silence."""
        request = self._request
        if request.acks == 0:
            if self._refused:
                # Nobody reads an answer, so a closed connection is the only way to say it.
                self._connection.close()
            return None
        response = _response(responses=self._topics)
        if self._leaders:
            response.node_endpoints = [
                ProduceResponse.NodeEndpoint(
                    node_id=each.leader_id, host=each.host, port=each.port, rack=each.rack
                )
                for each in self._leaders.values()
            ]
        if self._waits:
            limit = (self._broker, request.timeout_ms)
            return Durable(response, self._waits, request.acks, self._pending, limit).pending
        if self._pending is not None:
            self._pending.resolve(response)
            return self._pending
        return response


class _Postponed(NamedTuple):
    """A batch that a thread looks through, and the settings of its topic.

    `check` raises BrokerError for records that the coordinator of an internal topic could not read.
    """

    topic: ProduceRequest.TopicProduceData
    wanted: "_Wanted"
    part: Part
    config: LogConfig
    check: Callable[[Bytes], None] | None


_Wanted = ProduceRequest.TopicProduceData.PartitionProduceData


def _inspected(each: _Postponed, now_ms: int) -> Inspected | BrokerError:
    """Look through a batch; this is done in a thread."""
    records = each.wanted.records
    assert records is not None
    result = inspect_client_batch(records, each.config, now_ms)
    if each.check is not None and not isinstance(result, BrokerError):
        try:
            each.check(records)
        except BrokerError as error:
            return error
    return result


API = Api(ProduceRequest, ProduceResponse, handle, advertised_from=0, express=express)
