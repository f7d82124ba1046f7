"""InitProducerId, the blocks it draws from, and DescribeProducers."""

import pytest

from ottla.broker.apis.describe_producers import API as DESCRIBE_PRODUCERS
from ottla.broker.apis.init_producer_id import API as INIT_PRODUCER_ID
from ottla.broker.internal_topics import TRANSACTIONS, make
from ottla.broker.producer_ids import ProducerIds
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from ottla.wire.messages.describe_producers import DescribeProducersRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest


def init(station, version=6, **fields):
    response = station.ask(
        INIT_PRODUCER_ID, InitProducerIdRequest(**{"transactional_id": None, **fields}), version
    )
    return response.error_code, response.producer_id, response.producer_epoch


@pytest.mark.parametrize("version", INIT_PRODUCER_ID.versions)
def test_every_producer_gets_an_id_of_its_own(station, version):
    assert [init(station, version) for _ in range(3)] == [(0, 0, 0), (0, 1, 0), (0, 2, 0)]


def test_a_producer_that_names_its_id_gets_a_new_one(station):
    assert init(station) == (0, 0, 0)
    assert init(station, 3, producer_id=0, producer_epoch=4) == (0, 1, 0)


@pytest.mark.parametrize("fields", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_an_id_without_an_epoch_makes_no_sense(station, fields):
    assert init(station, 3, **fields) == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "t", "enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"transactional_id": "t", "keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
        ({"transactional_id": "t", "transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": "t", "transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_transactions_are_checked(station, fields, code):
    assert init(station, transactional_id="t") == (ErrorCode.NOT_COORDINATOR, -1, -1)
    make(station.broker, TRANSACTIONS, lambda _: None)
    station.settle()
    assert init(station, **fields) == (code, -1, -1)


def test_a_transactional_id_keeps_its_producer_id_and_raises_the_epoch(station):
    make(station.broker, TRANSACTIONS, lambda _: None)
    station.settle()
    code, producer_id, epoch = init(station, transactional_id="t", transaction_timeout_ms=900_000)
    assert (code, epoch) == (0, 0)
    assert init(station, transactional_id="t", transaction_timeout_ms=1000) == (0, producer_id, 1)


def test_ids_are_not_used_again_after_a_start(station):
    init(station)
    assert station.broker.image.next_producer_id == 1000
    successor = ProducerIds(1, station.broker.ask_controller, lambda: station.broker.epoch)
    taken = []
    successor.take(taken.append)
    station.settle()
    assert taken == [1000]


class Blocks:
    """A controller that answers when told."""

    def __init__(self):
        self.asked = []
        self.next = 0

    def submit(self, request, response, decide, done):
        self.asked.append(done)

    def grant(self, size=10):
        block = AllocateProducerIdsResponse(producer_id_start=self.next, producer_id_len=size)
        self.next += size
        self.asked.pop(0)(block)

    def refuse(self):
        self.asked.pop(0)(BrokerError(ErrorCode.NOT_CONTROLLER))


@pytest.fixture
def blocks():
    return Blocks()


@pytest.fixture
def ids(blocks):
    return ProducerIds(1, blocks.submit, lambda: 7)


def test_whoever_comes_early_waits_for_the_block(blocks, ids):
    taken = []
    for _ in range(3):
        ids.take(taken.append)
    assert (taken, len(blocks.asked)) == ([], 1)
    blocks.grant()
    assert taken == [0, 1, 2]


def test_the_next_block_is_asked_for_before_this_one_ends(blocks, ids):
    taken = []
    ids.take(taken.append)
    blocks.grant()
    for _ in range(8):
        ids.take(taken.append)
    assert blocks.asked == []
    ids.take(taken.append)
    assert (taken[-1], len(blocks.asked)) == (9, 1)
    blocks.grant()
    for _ in range(10):
        ids.take(taken.append)
    assert taken == list(range(20))


def test_a_refusal_is_told_to_all_who_wait_and_the_next_one_asks_again(blocks, ids):
    taken = []
    ids.take(taken.append)
    ids.take(taken.append)
    blocks.refuse()
    assert [error.code for error in taken] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2
    ids.take(taken.append)
    blocks.grant()
    assert taken[-1] == 0


def test_a_block_smaller_than_the_crowd_is_followed_by_another(blocks, ids):
    taken = []
    for _ in range(5):
        ids.take(taken.append)
    blocks.grant(2)
    blocks.grant(2)
    blocks.grant(2)
    assert taken == [0, 1, 2, 3, 4]


def unforeseen(outcome):
    raise RuntimeError("unforeseen")


@pytest.mark.parametrize("answer", ["grant", "refuse"])
def test_one_who_breaks_over_an_id_keeps_no_other_from_theirs(blocks, ids, answer):
    taken, ids.report = [], (reports := []).append
    for done in (taken.append, unforeseen, taken.append):
        ids.take(done)
    getattr(blocks, answer)()
    assert len(taken) == 2
    assert len(reports) == 1
    assert "unforeseen" in reports[0]
    ids.take(taken.append)
    if answer == "refuse":
        blocks.grant()
    assert taken[-1] == (3 if answer == "grant" else 0)


def test_one_who_breaks_over_an_id_at_hand_hears_of_it(blocks, ids):
    """Whoever serves the request ends it then."""
    ids.take(lambda _: None)
    blocks.grant()
    with pytest.raises(RuntimeError, match="unforeseen"):
        ids.take(unforeseen)


@pytest.mark.parametrize(("start", "size"), [(0, 0), (0, -5), (-1, 10)])
def test_a_block_without_ids_is_a_refusal(blocks, ids, start, size):
    """Another would be asked for at once, and so on without end."""
    taken, ids.report = [], (reports := []).append
    ids.take(taken.append)
    blocks.next = start
    blocks.grant(size)
    assert [error.code for error in taken] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert len(reports) == 1
    assert blocks.asked == []
    blocks.next = 0
    ids.take(taken.append)
    blocks.grant()
    assert taken[-1] == 0


def test_a_question_that_cannot_be_asked_is_asked_again_by_the_next(blocks, ids, monkeypatch):
    taken, ids.report = [], (reports := []).append
    with monkeypatch.context() as broken:
        broken.setattr(ids, "_ask_controller", lambda *arguments: unforeseen(None))
        ids.take(taken.append)
    assert [error.code for error in taken] == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert "unforeseen" in reports[0]
    ids.take(taken.append)
    blocks.grant()
    assert taken[-1] == 0


# DescribeProducers


def describe(station, topic, *indexes):
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=list(indexes))]
    )
    return station.ask(DESCRIBE_PRODUCERS, request).topics[0].partitions


def test_producers_are_described(station):
    station.create("t")
    station.produce("t", count=2, producer_id=40, producer_epoch=3, base_sequence=0)
    station.produce("t", count=3, producer_id=40, producer_epoch=3, base_sequence=2)
    (part,) = describe(station, "t", 0)
    (producer,) = part.active_producers
    assert (part.error_code, part.error_message) == (0, None)
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (40, 3, 4)
    assert producer.last_timestamp == station.clock.ms
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)


def test_an_open_transaction_is_shown(station):
    station.create("t")
    station.produce("t")
    station.produce("t", producer_id=40, producer_epoch=0, base_sequence=0, transactional=True)
    assert describe(station, "t", 0)[0].active_producers[0].current_txn_start_offset == 1


def test_partitions_that_cannot_be_described(station):
    station.create("t")
    assert describe(station, "t", 1)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(station, "u", 0)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    invalid = describe(station, "a b", 0)[0]
    assert invalid.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert invalid.error_message.startswith("Topic name is invalid")
    station.table._forget(("t", 0), station.broker.image.topics.by_name["t"].id)
    assert describe(station, "t", 0)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_partition_that_is_named_often_is_described_twice_at_most(station):
    station.create("t")
    station.produce("t", count=2, producer_id=40, producer_epoch=3, base_sequence=0)
    asked = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0] * 100 + [7])
    again = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0, 7, 7])
    first, second = station.ask(DESCRIBE_PRODUCERS, DescribeProducersRequest(topics=[asked, again])).topics
    none = (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert [(each.partition_index, each.error_code) for each in first.partitions] == [(0, 0), (0, 0), none]
    assert [(each.partition_index, each.error_code) for each in second.partitions] == [none]
    assert len(first.partitions[0].active_producers) == 1
