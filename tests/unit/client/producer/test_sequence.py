"""Numbers of batches."""

from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.partition_queue import PartitionQueue, TopicQueues
from ottla.client.producer.sequence import UNKNOWN_PRODUCER, PartitionSequences, ProducerId
from ottla.wire.batch import SEQUENCE_MAX

ME, NEXT = ProducerId(1, 0), ProducerId(1, 1)


def batch(count: int) -> ProducerBatch:
    made = ProducerBatch(PartitionQueue(TopicQueues("t", 1), 0), 0, 0, 0.0, 0)
    made.count = count
    return made


def numbered(*counts: int) -> tuple[PartitionSequences, list[ProducerBatch]]:
    sequences = PartitionSequences()
    sequences.begin(ME)
    batches = [batch(count) for count in counts]
    for each in batches:
        sequences.number(each)
    return sequences, batches


def test_numbers_follow_each_other() -> None:
    sequences, batches = numbered(3, 1, 5)
    assert [each.base_sequence for each in batches] == [0, 3, 4]
    assert [each.last_sequence for each in batches] == [2, 3, 8]
    assert sequences.next == 9
    assert sequences.in_flight == batches
    assert sequences.is_next(0) and not sequences.is_next(3)
    sequences.acked(batches[0], 100)
    assert (sequences.last_acked, sequences.last_acked_offset) == (2, 102)
    assert sequences.is_next(3)
    assert sequences.in_flight == batches[1:]


def test_counting_begins_again_after_the_largest_number() -> None:
    sequences, _ = numbered()
    sequences.next = SEQUENCE_MAX - 1
    sequences.last_acked = SEQUENCE_MAX - 2
    one, two = batch(4), batch(2)
    sequences.number(one)
    sequences.number(two)
    assert (one.base_sequence, one.last_sequence, two.base_sequence) == (SEQUENCE_MAX - 1, 1, 2)
    sequences.acked(one, 10)
    assert sequences.last_acked == 1
    assert sequences.is_next(2)
    # An older answer does not undo a newer one.
    late = batch(1)
    late.number(*ME, SEQUENCE_MAX - 3)
    sequences.acked(late, 5)
    assert (sequences.last_acked, sequences.last_acked_offset) == (1, 13)


def test_a_new_epoch_numbers_what_is_in_flight_anew() -> None:
    sequences, batches = numbered(3, 1, 5)
    sequences.acked(batches[0], 0)
    sequences.give_up(batches[1])
    sequences.remove(batches[1])
    assert sequences.unresolved == 4
    sequences.begin(NEXT)
    assert (batches[2].base_sequence, batches[2].producer_epoch, batches[2].renumbered) == (0, 1, True)
    assert (sequences.next, sequences.last_acked, sequences.unresolved) == (5, -1, None)
    assert sequences.last_acked_offset == 2


def test_an_answer_of_an_earlier_epoch_is_none_of_this_count() -> None:
    sequences, batches = numbered(3)
    sequences.remove(batches[0])
    sequences.begin(NEXT)
    sequences.acked(batches[0], 7)
    assert sequences.last_acked == -1


def test_the_gap_of_a_refused_batch_is_closed() -> None:
    sequences, batches = numbered(3, 1, 5)
    sequences.remove(batches[0])
    sequences.close_gap(batches[0])
    assert [each.base_sequence for each in batches[1:]] == [0, 1]
    assert sequences.next == 6
    assert all(each.renumbered for each in batches[1:])


def test_only_what_follows_moves_up() -> None:
    sequences, batches = numbered(3, 1, 5)
    sequences.remove(batches[1])
    sequences.close_gap(batches[1])
    assert (batches[0].base_sequence, batches[2].base_sequence) == (0, 3)
    assert not batches[0].renumbered


def test_parts_stand_where_the_whole_stood() -> None:
    sequences, batches = numbered(3, 4, 5)
    parts = [batch(2), batch(2)]
    sequences.replace(batches[1], parts)
    assert sequences.in_flight == [batches[0], *parts, batches[2]]


def test_the_furthest_of_what_was_given_up_counts() -> None:
    sequences, batches = numbered(3, 4, 5)
    sequences.give_up(batches[1])
    sequences.give_up(batches[0])
    assert sequences.unresolved == 7
    sequences.reset()
    assert (sequences.unresolved, sequences.producer, sequences.in_flight) == (None, UNKNOWN_PRODUCER, [])
