"""A coordinator's "ok" that arrives after the transaction has ended lets nothing in behind its marker (KAFKA-14402)."""

import struct
from types import SimpleNamespace

import pytest

from ottla.broker.apis import init_producer_id, produce, txn_offset_commit
from ottla.broker.internal_topics import OFFSETS, TRANSACTIONS, make
from ottla.log.verification import _KEPT_MAX, UNVERIFIED
from ottla.wire.batch import build_batch
from ottla.wire.compression import Codec
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.wire.record import Record
from tests.unit.broker.test_coordinators import Writer

OLD, NEW = 9, 12  # versions of Produce before and since transactions v2
LONG_RECORDS = 30_000  # so many, compressed, are looked through in a thread


@pytest.fixture
def station(make_station):
    station = make_station(
        **{"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    )
    for topic in (OFFSETS, TRANSACTIONS):
        make(station.broker, topic, lambda code: None)
    station.settle()
    station.create("t")
    station.create("u")
    return station


class SlowAnswers:
    """The coordinator answers at once, and its answers arrive when a test says so."""

    def __init__(self, station):
        self._station = station
        self._real = station.broker.transactions.enlist
        self._waiting = []
        station.broker.transactions.enlist = self._enlist

    def __len__(self):
        return len(self._waiting)

    def _enlist(self, *who, add, done):
        self._real(*who, add=add, done=lambda codes: self._waiting.append((done, codes)))

    def arrive(self):
        """Let the oldest answer arrive, and return what it says."""
        done, codes = self._waiting.pop(0)
        done(codes)
        self._station.settle()
        return list(codes.values())


def batch(writer, sequence=0, epoch=None, count=1, producer_id=None):
    return build_batch(
        [Record(number, writer.station.clock.ms, b"k", b"v", ()) for number in range(count)],
        producer_id=writer.id if producer_id is None else producer_id,
        producer_epoch=writer.epoch if epoch is None else epoch,
        base_sequence=sequence,
        transactional=True,
    )


def ask_to_write(writer, *batches, version=OLD, acks=-1, topics=("t", "u")):
    """Send a Produce, each batch to a topic of its own; return where the answers' codes will be."""
    data = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id=writer.name,
        acks=acks,
        topic_data=[
            data(name=topic, partition_data=[data.PartitionProduceData(index=0, records=records)])
            for topic, records in zip(topics, batches, strict=False)
        ],
    )
    codes = []
    station = writer.station
    reply = produce.API.handle(
        ProduceRequest.decode(bytearray(request.encode(version)), version),
        version,
        station.connection,
        station.broker,
    )

    def answered(answer):
        codes.extend(part.error_code for topic in answer.responses for part in topic.partition_responses)

    if hasattr(reply, "then"):
        reply.then(answered)
    elif reply is not None:
        answered(reply)
    return codes


def log_of(station, topic="t"):
    return station.table.by_name(topic, 0).log


def test_an_ok_that_arrives_after_the_abort_lets_nothing_in(station):
    writer = Writer(station)
    assert writer.add("t") == [0]
    answers = SlowAnswers(station)
    codes = ask_to_write(writer, batch(writer))
    assert writer.end(committed=False) == 0
    assert log_of(station).end_offset == 1, "the marker"
    assert answers.arrive() == [ErrorCode.NONE]
    assert codes == [ErrorCode.INVALID_TXN_STATE]
    assert log_of(station).end_offset == 1
    assert log_of(station).first_unstable_offset is None, "no transaction hangs"
    # The next transaction is looked up anew, and is let in.
    assert writer.add("t") == [0]
    codes = ask_to_write(writer, batch(writer))
    answers.arrive()
    assert codes == [0]
    assert writer.end(committed=True) == 0
    assert log_of(station).last_stable_offset(3) == 3


def test_an_ok_of_the_transaction_before_is_none_for_the_next(station):
    """The answer arrives when the producer has another transaction, of the same epoch, that does not have the topic."""
    writer = Writer(station)
    assert writer.add("t") == [0]
    answers = SlowAnswers(station)
    late = ask_to_write(writer, batch(writer))
    assert writer.end(committed=False) == 0
    assert writer.add("u") == [0]
    answers.arrive()
    assert late == [ErrorCode.INVALID_TXN_STATE]
    assert log_of(station).first_unstable_offset is None


def test_an_ok_of_an_epoch_that_was_fenced_lets_nothing_in(station):
    writer = Writer(station)
    assert writer.add("t") == [0]
    answers = SlowAnswers(station)
    late = ask_to_write(writer, batch(writer))
    request = InitProducerIdRequest(transactional_id=writer.name, transaction_timeout_ms=60_000)
    station.ask(init_producer_id.API, request, 4)
    station.settle()
    answers.arrive()
    assert late == [ErrorCode.INVALID_TXN_STATE]
    newer = Writer(station)
    assert newer.epoch > writer.epoch
    assert newer.add("t") == [0]
    codes = ask_to_write(newer, batch(newer))
    answers.arrive()
    assert codes == [0]


def test_an_ok_from_before_a_log_was_opened_anew_lets_nothing_in(station):
    """As after a restart, or a truncation: whoever has asked has asked another log."""
    writer = Writer(station)
    assert writer.add("t") == [0]
    log = log_of(station)
    proof = log.verifications.begin(writer.id, writer.epoch, 0, station.clock.ms)
    log.truncate_to(0)
    log._producers.clear(0)
    partition = station.table.by_name("t", 0)
    with pytest.raises(BrokerError) as refused:
        partition.append(batch(writer), station.clock.ms, None, proof)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE


def test_two_batches_that_are_looked_up_at_once_get_in_in_their_order(station):
    writer = Writer(station)
    assert writer.add("t") == [0]
    answers = SlowAnswers(station)
    codes = [ask_to_write(writer, batch(writer, sequence)) for sequence in (0, 1, 2)]
    assert len(answers) == 1, "one is asked for at a time"
    answers.arrive()
    assert codes == [[0], [0], [0]]
    assert len(answers) == 0, "the others found it open"
    assert log_of(station).end_offset == 3


def test_a_batch_does_not_overtake_one_that_could_not_be_looked_up(station):
    writer = Writer(station)
    assert writer.add("t") == [0]
    enlist = station.broker.transactions.enlist
    station.broker.transactions.enlist = lambda *who, add, done: done(
        dict.fromkeys(who[3], ErrorCode.NOT_COORDINATOR)
    )
    assert ask_to_write(writer, batch(writer, 0)) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    station.broker.transactions.enlist = enlist
    assert ask_to_write(writer, batch(writer, 1)) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert ask_to_write(writer, batch(writer, 0)) == [0]
    assert ask_to_write(writer, batch(writer, 1)) == [0]


def test_a_batch_that_is_looked_through_while_its_transaction_ends_is_not_let_in(station):
    """It found the transaction open, and a thread looks through it while the marker is written."""
    writer = Writer(station)
    assert writer.add("t") == [0]
    assert ask_to_write(writer, batch(writer)) == [0]
    jobs = []
    station.broker.inspector = SimpleNamespace(run=lambda work, done: jobs.append((work, done)))
    station.connection.mute = station.connection.unmute = lambda: None
    long = build_batch(
        [Record(number, station.clock.ms, b"k", bytes(100), ()) for number in range(LONG_RECORDS)],
        codec=Codec.ZSTD,
        producer_id=writer.id,
        producer_epoch=writer.epoch,
        base_sequence=1,
        transactional=True,
    )
    codes = ask_to_write(writer, long)
    assert jobs
    assert writer.end(committed=False) == 0
    work, done = jobs.pop()
    done(work(), None)
    assert codes == [ErrorCode.INVALID_TXN_STATE]
    assert log_of(station).first_unstable_offset is None


def test_a_batch_for_which_nobody_waits_is_looked_up_as_well(station):
    muted = []
    station.connection.muted = False
    station.connection.mute = lambda: (muted.append(True), setattr(station.connection, "muted", True))
    station.connection.unmute = lambda: (muted.append(False), setattr(station.connection, "muted", False))
    station.connection.close = lambda: muted.append("closed")
    writer = Writer(station)
    answers = SlowAnswers(station)
    ask_to_write(writer, batch(writer), acks=0)
    assert muted == [True], "the peer is held back"
    assert answers.arrive() == [ErrorCode.TRANSACTION_ABORTABLE]
    assert log_of(station).end_offset == 0
    assert muted == [True, "closed", False]
    assert writer.add("t") == [0]
    ask_to_write(writer, batch(writer), acks=0)
    answers.arrive()
    assert log_of(station).end_offset == 1


def test_batches_of_two_producers_in_one_request_are_refused(station):
    one, other = Writer(station), Writer(station, "ty")
    assert one.add("t", "u") == [0, 0]
    codes = ask_to_write(one, batch(other), batch(one))
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert log_of(station).end_offset == log_of(station, "u").end_offset == 0


def test_a_producer_that_nobody_knows_leaves_nothing_behind(station):
    writer = Writer(station)
    for producer_id in range(1_000, 1_010):
        assert ask_to_write(writer, batch(writer, producer_id=producer_id)) != [0]
    assert len(log_of(station).verifications) == 0
    verifications = log_of(station).verifications
    for producer_id in range(3 * _KEPT_MAX):
        proof = verifications.begin(producer_id, 0, 0, station.clock.ms)
        verifications.end(producer_id, proof, refused=False)
    assert len(verifications) <= _KEPT_MAX
    verifications.expire(station.clock.ms + 1_000, 1_000)
    assert len(verifications) == 0
    with pytest.raises(BrokerError):
        verifications.check(7, 0, UNVERIFIED)


def commit_later(writer, version=3):
    topics = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    part = topics.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = TxnOffsetCommitRequest(
        transactional_id=writer.name,
        group_id="g",
        producer_id=writer.id,
        producer_epoch=writer.epoch,
        topics=[topics(name="t", partitions=[part])],
    )
    codes = []
    station = writer.station
    pending = txn_offset_commit.API.handle(request, version, station.connection, station.broker)
    pending.then(lambda answer: codes.append(answer.topics[0].partitions[0].error_code))
    return codes


def test_offsets_are_not_let_in_either(station):
    writer = Writer(station)
    assert writer.add(OFFSETS.name) == [0]
    answers = SlowAnswers(station)
    codes = commit_later(writer)
    assert writer.end(committed=False) == 0
    assert answers.arrive() == [ErrorCode.NONE]
    assert codes == [ErrorCode.INVALID_TXN_STATE]
    assert log_of(station, OFFSETS.name).first_unstable_offset is None
    assert writer.add(OFFSETS.name) == [0]
    codes = commit_later(writer)
    again = commit_later(writer)
    answers.arrive()
    answers.arrive()
    assert codes == again == [0]
    assert writer.end(committed=True) == 0


def test_a_look_up_holds_only_what_may_be_stored_and_it_is_counted(station):
    """Requests that waited had copies of all they brought, uncounted: 100 of 8 MB were 800 MB."""
    muted = []
    station.connection.mute = lambda: (muted.append(True), setattr(station.connection, "muted", True))
    station.connection.unmute = lambda: (muted.append(False), setattr(station.connection, "muted", False))
    requests = station.connection.connections.requests
    writer = Writer(station)
    assert writer.add("t") == [0]
    answers = SlowAnswers(station)
    good, large = batch(writer), bytearray(batch(writer)) + bytes(8 << 20)
    struct.pack_into(">i", large, 8, len(large) - 12)
    codes = ask_to_write(writer, good, large, bytes(8 << 20), topics=("t", "u", "no such topic"))
    assert muted == [True], "nothing else of this connection is served meanwhile"
    assert requests.queued == len(good)
    answers.arrive()
    assert codes == [0, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (requests.queued, muted) == (0, [True, False])
    assert station.connection.on_close == []


def test_what_waits_for_a_look_up_goes_with_its_client_where_there_is_no_room(station):
    requests = station.connection.connections.requests
    writer = Writer(station)
    assert writer.add("t") == [0]
    answers = SlowAnswers(station)
    for is_full in (True, False):
        ask_to_write(writer, batch(writer))
        requests.add_queued(requests.bytes_max * is_full)
        for callback in tuple(station.connection.on_close):
            callback()
        requests.add_queued(-requests.bytes_max * is_full)
        assert requests.queued == (0 if is_full else len(batch(writer)))
        answers.arrive()
        assert log_of(station).end_offset == (0 if is_full else 1), "otherwise it was received, so it is stored"
    assert requests.queued == 0
