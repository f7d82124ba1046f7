"""Offsets that are part of a transaction."""

import pytest

from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from ottla.wire.records.classic_group import GroupMetadataKey
from ottla.wire.uuid import ZERO_UUID
from tests.unit.groups.test_classic_party import DELAY_MS, Party, topic_id
from tests.unit.groups.test_offsets import commit, delete, fetch

NONE = ErrorCode.NONE
PRODUCER = 9


def commit_in(party, offsets, producer_id=PRODUCER, *, version=5, member_id="", generation=-1, metadata=""):
    """Commit offsets in a transaction; return the codes in order."""
    made = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    by_id = version >= 6
    who = {"member_id": member_id, "generation_id_or_member_epoch": generation} if version >= 3 else {}
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=party.group,
        producer_id=producer_id,
        producer_epoch=1,
        topics=[
            made(
                **({"topic_id": topic_id(topic)} if by_id else {"name": topic}),
                partitions=[
                    made.TxnOffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=metadata
                    )
                ],
            )
            for (topic, partition), offset in offsets.items()
        ],
        **who,
    )
    request = TxnOffsetCommitRequest.decode(request.encode(version), version)
    response = party.bench.ask(party.machine.offsets.commit_transactional, request, version)
    found = TxnOffsetCommitResponse.decode(response.encode(version), version)
    return [ErrorCode(each.error_code) for topic in found.topics for each in topic.partitions]


@pytest.mark.parametrize("version", range(7))
def test_offsets_are_seen_when_the_transaction_commits(version):
    party = Party()
    commit(party, {("orders", 0): 1})
    assert commit_in(party, {("orders", 0): 5, ("bills", 0): 6}, version=version) == [NONE, NONE]
    assert fetch(party) == {("orders", 0): 1}
    party.bench.end_transaction(PRODUCER, committed=True)
    assert fetch(party) == fetch(party, machine=party.replayed()) == {("orders", 0): 5, ("bills", 0): 6}


def test_offsets_are_never_seen_when_it_aborts():
    party = Party()
    commit_in(party, {("orders", 0): 5})
    party.bench.end_transaction(PRODUCER, committed=False)
    assert fetch(party, stable=True) == fetch(party, machine=party.replayed()) == {}
    party.bench.end_transaction(PRODUCER, committed=True)
    assert fetch(party) == {}, "a marker ends what is open, and nothing is"


def test_who_wants_stable_offsets_is_told_to_wait():
    party = Party()
    commit(party, {("orders", 0): 1, ("orders", 1): 1})
    commit_in(party, {("orders", 0): 5})
    commit_in(party, {("orders", 0): 6}, producer_id=10)
    expected = {("orders", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT, ("orders", 1): 1}
    assert fetch(party, stable=True) == expected
    assert fetch(party, ("orders", 0), ("orders", 1), stable=True, version=7) == expected
    party.bench.end_transaction(PRODUCER, committed=False)
    assert fetch(party, stable=True) == expected, "the other one is still open"
    party.bench.end_transaction(10, committed=False)
    assert fetch(party, stable=True) == {("orders", 0): 1, ("orders", 1): 1}


def test_the_later_record_holds_whichever_ends_first():
    party = Party()
    commit_in(party, {("orders", 0): 5})
    commit(party, {("orders", 0): 7})
    party.bench.end_transaction(PRODUCER, committed=True)
    assert fetch(party) == fetch(party, machine=party.replayed()) == {("orders", 0): 7}


def test_a_deleted_offset_does_not_come_back_with_a_transaction():
    party = Party()
    commit(party, {("orders", 0): 1})
    commit_in(party, {("orders", 0): 5})
    assert delete(party, ("orders", 0)) == {("orders", 0): NONE}
    party.bench.end_transaction(PRODUCER, committed=True)
    assert fetch(party) == fetch(party, machine=party.replayed()) == {}


def test_offsets_of_deleted_topics_go_from_open_transactions():
    party = Party()
    commit_in(party, {("orders", 0): 5, ("bills", 0): 6})
    party.bench.take_steps(party.machine.offsets.forget_topics({"orders": topic_id("orders")}))
    party.bench.end_transaction(PRODUCER, committed=True)
    assert fetch(party) == {("bills", 0): 6}


def test_the_record_is_part_of_the_producers_transaction_and_names_no_topic_id():
    party = Party()
    commit_in(party, {("orders", 0): 5}, version=6)
    ((what, producer_id, record),) = party.bench.log
    assert (what, producer_id) == ("pending", PRODUCER)
    assert (record.version, record.value.topic_id) == (4, ZERO_UUID)


def test_members_commit_under_their_generation_even_while_they_wait_for_their_share():
    party = Party()
    place = {("orders", 0): 1}
    assert commit_in(party, place, member_id="m", generation=1) == [ErrorCode.ILLEGAL_GENERATION]
    one, _ = party.enter()
    party.pass_time(DELAY_MS)
    assert party.state() == "CompletingRebalance"
    assert commit_in(party, place, member_id=one, generation=1) == [NONE]
    assert commit_in(party, place, member_id=one, generation=2) == [ErrorCode.ILLEGAL_GENERATION]
    assert commit_in(party, place, member_id="ghost", generation=1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert commit_in(party, place, version=2) == [NONE], "who was before there were members to name"


def test_what_can_not_be_committed_is_told():
    party = Party(offset_metadata_max_bytes=2)
    assert commit_in(party, {("gone", 0): 1, ("orders", 9): 1}) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert commit_in(party, {("gone", 0): 1}, version=6) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert commit_in(party, {("orders", 0): 1}, metadata="long") == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    party.group = ""
    assert commit_in(party, {("orders", 0): 1}) == [ErrorCode.INVALID_GROUP_ID]
    assert party.bench.records == []


def test_what_was_committed_for_a_newer_topic_of_the_name_meanwhile_stays():
    """Offsets go in several steps, and between two of them the topic may be there again."""
    party = Party()
    for group in ("a", "b"):
        party.group = group
        commit_in(party, {("orders", 0): 5, ("bills", 0): 6})  # without an id of their topic
        party.bench.end_transaction(PRODUCER, committed=True)
    steps = party.machine.offsets.forget_topics({"orders": topic_id("orders")})
    commit_in(party, {("orders", 0): 7})
    party.bench.end_transaction(PRODUCER, committed=True)
    party.bench.take_steps(steps)
    assert fetch(party, group="a") == {("bills", 0): 6}
    assert fetch(party, group="b") == {("orders", 0): 7, ("bills", 0): 6}


def test_transactions_of_a_group_that_is_gone_by_its_record_bring_it_back():
    """The tombstones of its offsets may be missing from the log; two markers follow."""
    party = Party()
    commit_in(party, {("orders", 0): 5}, producer_id=1)
    commit_in(party, {("bills", 0): 6}, producer_id=2)
    party.machine.apply(9, KeyedRecord(GroupMetadataKey(group=party.group), None))
    for producer_id in (1, 2):
        party.bench.end_transaction(producer_id, committed=True)
    assert party.group in party.machine.shelf.groups, "or nobody would look when they expire"
    assert fetch(party) == {("orders", 0): 5, ("bills", 0): 6}
