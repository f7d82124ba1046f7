"""ListOffsets (2): find an offset by time, or by one of the special timestamps.

-2 earliest, -1 latest (the last stable offset for read-committed readers), -3 the record with the largest timestamp
(v7), -4 earliest local (v8), -5 latest tiered (v9), -6 earliest pending upload (v11). Nothing is tiered yet, so the
local log is the whole log.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.fair_queue import Job, Work
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.log.lookup import Candidate, Found, Pause, UnreadableBatchError
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
_NEVER = 1 << 15
_EPOCHS_SINCE = 4
_NOT_AVAILABLE_SINCE = 5
_LOOP_BYTES_MAX = 4 << 20  # of plain batches that are looked through before a thread goes on with it
_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

Topic = ListOffsetsResponse.ListOffsetsTopicResponse
Part = Topic.ListOffsetsPartitionResponse


def handle(
    request: ListOffsetsRequest, version: int, connection: Connection, broker: Broker
) -> ListOffsetsResponse | Pending:
    """Look every partition up; whatever is wrong with one of them is said of it alone.

    As in Kafka each is answered once, and one that is asked for twice anywhere in the request is not looked up.
    """
    response = ListOffsetsResponse()
    searches = Searches(broker, connection, response)
    asks = Counter(
        (topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions
    )
    topics: dict[str, Topic] = {}
    answered = set[tuple[str, int]]()
    for topic in request.topics:
        if topic.name not in topics:
            topics[topic.name] = Topic(name=topic.name, partitions=[])
        for asked in topic.partitions:
            place = (topic.name, asked.partition_index)
            if place in answered:
                continue
            answered.add(place)
            part = Part(partition_index=asked.partition_index)
            topics[topic.name].partitions.append(part)
            if asks[place] > 1:
                part.error_code = ErrorCode.INVALID_REQUEST
            else:
                searches.ask(Question(request, version, topic.name, asked, part))
    response.topics = list(topics.values())
    return searches.answer()


class Question(NamedTuple):
    """What is asked of one partition, and where the answer goes."""

    request: ListOffsetsRequest
    version: int
    topic: str
    asked: ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    part: Part


class Searches:
    """The partitions of a request that are being searched by time.

    Which batch to look through is asked on the loop, a long one is looked through in a thread. When that has time, and
    when it comes back, the partition may be led by another and its log may be another: both are asked again. Nothing
    goes on for a connection that has closed.
    """

    __slots__ = ("_broker", "_connection", "_open", "_pending", "_response")

    def __init__(self, broker: Broker, connection: Connection, response: ListOffsetsResponse) -> None:
        self._broker = broker
        self._connection = connection
        self._response = response
        self._open = 0
        self._pending: Pending | None = None

    def ask(self, question: Question) -> None:
        """Answer, or begin to look."""
        self._guard(question, self._begin)

    def answer(self) -> ListOffsetsResponse | Pending:
        """The answer, if it is known by now."""
        if not self._open:
            return self._response
        self._pending = Pending()
        return self._pending

    def _guard(self, question: Question, step: Callable[[Question, Partition], None]) -> None:
        """Take a step, and say of the partition what became of it."""
        part, version = question.part, question.version
        try:
            partition = self._broker.table.by_name(question.topic, part.partition_index)
            partition.check_leader(question.asked.current_leader_epoch)
            try:
                step(question, partition)
            except OSError as error:
                raise partition.log.storage_error(error) from error
            except UnreadableBatchError as error:
                partition.log.tell_unreadable(error)
                raise
        except BrokerError as error:
            part.error_code = error.code
            if error.code is ErrorCode.OFFSET_NOT_AVAILABLE and version < _NOT_AVAILABLE_SINCE:
                part.error_code = ErrorCode.LEADER_NOT_AVAILABLE

    def _begin(self, question: Question, partition: Partition) -> None:
        request, version, _, asked, _ = question
        if asked.timestamp < 0 and version < _SINCE.get(asked.timestamp, _NEVER):
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
        log = partition.log
        if asked.timestamp == LATEST:
            if request.replica_id >= 0:
                self._say(question, -1, log.end_offset, partition.leader_epoch)
                return
            end_offset = _end_offset(question, partition)
            partition.check_known(end_offset)
            self._say(question, -1, end_offset, partition.leader_epoch)
        elif asked.timestamp in (EARLIEST, EARLIEST_LOCAL):
            epoch = log.epoch_for_offset(log.start_offset)
            self._say(question, -1, log.start_offset, -1 if epoch is None else epoch)
        elif asked.timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            self._say(question, -1, -1, -1)
        elif asked.timestamp == MAX_TIMESTAMP:
            self._look(question, partition, log.newest_candidate())
        else:
            self._look(question, partition, log.candidate(asked.timestamp))

    def _look(self, question: Question, partition: Partition, candidate: Candidate | Pause | None) -> None:
        looked_bytes = 0
        while candidate is not None:
            if isinstance(candidate, Pause):
                self._look_later(question, candidate, partition.cuts)
                return
            looked_bytes += candidate.size_bytes
            if candidate.is_long or looked_bytes > _LOOP_BYTES_MAX:
                self._look_in_thread(question, candidate.header[0])
                return
            found = candidate.search()
            if found is not None:
                self._found(question, partition, found)
                return
            candidate = _following(question, partition, candidate)
        self._found(question, partition, None)

    def _look_in_thread(self, question: Question, from_offset: int) -> None:
        """Go on from an offset once the thread has time for it: until then that is all that is kept (K2)."""
        self._open += 1
        opened: Candidate | None = None

        def begin() -> Work | None:
            work: Work | None = None

            def read(question: Question, partition: Partition) -> None:
                nonlocal opened, work
                candidate = _next_batch(question, partition, from_offset)
                if isinstance(candidate, Candidate):
                    opened, batch = candidate, candidate.read()
                    work = partial(candidate.search_in, batch)
                else:
                    self._look(question, partition, candidate)

            self._guard(question, read)
            if work is None:
                self._close()
            return work

        def done(found: Found | None, error: BaseException | None) -> None:
            def go_on(question: Question, partition: Partition) -> None:
                if isinstance(error, UnreadableBatchError):
                    raise UnreadableBatchError(error.offset, error.why)
                if isinstance(error, BrokerError):
                    raise BrokerError(error.code, error.message)
                if found is not None:
                    self._found(question, partition, found)
                else:
                    assert opened is not None
                    self._look(question, partition, _following(question, partition, opened))

            if self._connection.closed:
                return
            if error is not None and not isinstance(error, BrokerError):
                self._broker.failed(error)
                question.part.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
            else:
                self._guard(question, go_on)
            self._close()

        self._broker.searches.submit(self._connection, Job(begin, done))

    def _look_later(self, question: Question, pause: Pause, cuts: int) -> None:
        """Go on in the next turn of the loop: from the beginning, if the log was cut meanwhile."""
        self._open += 1

        def go_on(question: Question, partition: Partition) -> None:
            place = pause if partition.cuts == cuts else None
            self._look(question, partition, partition.log.candidate(question.asked.timestamp, 0, place))

        def later() -> None:
            if self._connection.closed:
                return
            self._guard(question, go_on)
            self._close()

        self._broker.call_soon(later)

    def _close(self) -> None:
        """One search has come to its end, or goes on as another."""
        self._open -= 1
        if not self._open and self._pending is not None:
            self._pending.resolve(self._response)

    def _found(self, question: Question, partition: Partition, found: Found | None) -> None:
        end_offset = _end_offset(question, partition)
        if found is None or found.offset >= end_offset:
            partition.check_known(end_offset)
            self._say(question, -1, -1, -1)
        else:
            epoch = -1 if found.leader_epoch is None else found.leader_epoch
            self._say(question, found.timestamp, found.offset, epoch)

    def _say(self, question: Question, timestamp: int, offset: int, epoch: int) -> None:
        part = question.part
        part.timestamp, part.offset = timestamp, offset
        if question.version >= _EPOCHS_SINCE:
            part.leader_epoch = epoch


def _end_offset(question: Question, partition: Partition) -> int:
    """How far the reader may see."""
    return partition.last_stable_offset if question.request.isolation_level == 1 else partition.high_watermark


def _following(question: Question, partition: Partition, candidate: Candidate) -> Candidate | Pause | None:
    """Return the next batch to look through, if there is one."""
    if question.asked.timestamp == MAX_TIMESTAMP:
        return None
    return partition.log.candidate(question.asked.timestamp, candidate.end_offset)


def _next_batch(question: Question, partition: Partition, from_offset: int) -> Candidate | Pause | None:
    """Return the batch to look through, from an offset on."""
    if question.asked.timestamp == MAX_TIMESTAMP:
        return partition.log.newest_candidate()
    return partition.log.candidate(question.asked.timestamp, from_offset)


API = Api(
    ListOffsetsRequest,
    ListOffsetsResponse,
    handle,
    long=in_slices(Cut("topics.partitions", "topics.partitions", ("name", "partition_index"))),
)
