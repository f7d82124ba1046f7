"""Committing, fetching and deleting offsets."""

import pytest

from ottla.groups.offset_commit import refused_commit, refused_transactional
from ottla.groups.offset_fetch import asked_groups, fetch_response, refused_fetch
from ottla.groups.topics import TopicFacts
from ottla.replicated.keyed import KeyedRecord
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from ottla.wire.records.offset import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.unit.groups.test_classic_party import DELAY_MS, SESSION_MS, Party, subscription, topic_id
from tests.unit.replicated.journal import NOW

NONE = ErrorCode.NONE


def commit(party, offsets, *, member_id="", generation=-1, version=9, metadata="", instance=None, **fields):
    """Commit offsets given as {(topic, partition): offset}; return the codes by partition."""
    made = OffsetCommitRequest.OffsetCommitRequestTopic
    by_id = version >= 10
    request = OffsetCommitRequest(
        group_id=party.group,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        group_instance_id=instance,
        topics=[
            made(
                **({"topic_id": topic_id(topic)} if by_id else {"name": topic}),
                partitions=[
                    made.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=5,
                        committed_metadata=metadata,
                    )
                ],
            )
            for (topic, partition), offset in offsets.items()
        ],
        **fields,
    )
    request = OffsetCommitRequest.decode(request.encode(version), version)
    response = party.bench.ask(party.machine.offsets.commit, request, version)
    found = OffsetCommitResponse.decode(response.encode(version), version)
    names = [topic for topic, _ in offsets]
    return {
        (name, each.partition_index): ErrorCode(each.error_code)
        for name, topic in zip(names, found.topics, strict=True)
        for each in topic.partitions
    }


def fetch(party, *places, version=9, stable=False, group=None, member_id=None, epoch=-1, machine=None):
    """Fetch offsets of places, or all of them; return {(topic, partition): offset or code}."""
    group = party.group if group is None else group
    topics = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    if version >= 8:
        made = OffsetFetchRequest.OffsetFetchRequestGroup
        asked = made(group_id=group, topics=None, member_id=member_id, member_epoch=epoch)
        if places:
            asked.topics = [
                made.OffsetFetchRequestTopics(
                    **({"topic_id": topic_id(name)} if version >= 10 else {"name": name}),
                    partition_indexes=indexes,
                )
                for name, indexes in topics.items()
            ]
        request = OffsetFetchRequest(groups=[asked], require_stable=stable)
    else:
        request = OffsetFetchRequest(group_id=group, topics=None, require_stable=stable and version >= 7)
        if places:
            request.topics = [
                OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
    request = OffsetFetchRequest.decode(request.encode(version), version)
    (one,) = asked_groups(request, version)
    offsets = (machine or party.machine).offsets
    reply = party.bench.ask(offsets.fetch, one, version, require_stable=request.require_stable)
    response = OffsetFetchResponse.decode(fetch_response([reply], version).encode(version), version)
    if version >= 8:
        (answer,) = response.groups
        assert answer.group_id == group
        code, found = answer.error_code, answer.topics
    else:
        code, found = response.error_code, response.topics
    if code:
        return ErrorCode(code)
    names = {topic_id(name): name for name in (*topics, "orders", "bills")}
    return {
        (names[topic.topic_id] if version >= 10 else topic.name, each.partition_index): (
            ErrorCode(each.error_code) if each.error_code else each.committed_offset
        )
        for topic in found
        for each in topic.partitions
    }


def delete(party, *places):
    """Delete offsets; return the code of the whole, or codes by partition."""
    made = OffsetDeleteRequest.OffsetDeleteRequestTopic
    request = OffsetDeleteRequest(
        group_id=party.group,
        topics=[
            made(name=topic, partitions=[made.OffsetDeleteRequestPartition(partition_index=partition)])
            for topic, partition in places
        ],
    )
    response = party.bench.ask(party.machine.offsets.delete, request)
    response.encode(0)
    if response.error_code:
        return ErrorCode(response.error_code)
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_a_commit_without_members_makes_a_group_that_holds_offsets(version):
    party = Party()
    assert commit(party, {("orders", 0): 7, ("bills", 3): 9}, version=version) == {
        ("orders", 0): NONE,
        ("bills", 3): NONE,
    }
    assert party.state() == "Empty"
    assert fetch(party, ("orders", 0), ("bills", 3), ("orders", 1)) == {
        ("orders", 0): 7,
        ("bills", 3): 9,
        ("orders", 1): -1,
    }
    assert fetch(party, machine=party.replayed()) == {("orders", 0): 7, ("bills", 3): 9}


def test_a_commit_is_recorded_as_kafka_records_it():
    party = Party()
    commit(party, {("orders", 1): 7}, metadata="note", version=10)
    assert party.bench.records == [
        KeyedRecord(
            OffsetCommitKey(group="g", topic="orders", partition=1),
            OffsetCommitValue(
                offset=7,
                leader_epoch=5,
                metadata="note",
                commit_timestamp=NOW,
                expire_timestamp=-1,
                topic_id=topic_id("orders"),
            ),
            4,
        )
    ]
    commit(party, {("orders", 1): 8}, version=4, retention_time_ms=1000)
    record = party.bench.records[-1]
    assert (record.version, record.value.expire_timestamp) == (1, NOW + 1000)
    for asked, stored in ((2**63 - 1, 2**63 - 1), (-(2**63), NOW - 2**63)):
        commit(party, {("orders", 1): 8}, version=4, retention_time_ms=asked)
        assert party.bench.records[-1].value.expire_timestamp == stored
        party.bench.records[-1].encode()


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_fetched_at_every_version(version):
    party = Party()
    commit(party, {("orders", 0): 7, ("orders", 2): 9})
    assert fetch(party, ("orders", 0), ("orders", 1), version=version) == {
        ("orders", 0): 7,
        ("orders", 1): -1,
    }
    if version >= 2:
        assert fetch(party, version=version) == {("orders", 0): 7, ("orders", 2): 9}
    assert fetch(party, ("orders", 0), version=version, group="none") == {("orders", 0): -1}


def test_what_is_not_there_can_not_be_committed():
    party = Party()
    assert commit(party, {("orders", 4): 1, ("orders", 0): 1, ("gone", 0): 1}) == {
        ("orders", 4): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 0): NONE,
        ("gone", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert commit(party, {("gone", 0): 1}, version=10) == {("gone", 0): ErrorCode.UNKNOWN_TOPIC_ID}
    assert fetch(party, ("gone", 0), ("orders", 0), version=10) == {
        ("gone", 0): ErrorCode.UNKNOWN_TOPIC_ID,
        ("orders", 0): 1,
    }


def test_a_note_has_a_largest_size():
    party = Party(offset_metadata_max_bytes=4)
    assert commit(party, {("orders", 0): 1}, metadata="four") == {("orders", 0): NONE}
    for note in ("fives", "\N{GRINNING FACE}" * 3):
        assert commit(party, {("orders", 0): 2}, metadata=note) == {
            ("orders", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE
        }
    assert commit(party, {("orders", 0): 3}, metadata="\N{GRINNING FACE}" * 2) == {("orders", 0): NONE}
    assert fetch(party) == {("orders", 0): 3}


@pytest.mark.parametrize(("version", "code"), [(8, "ILLEGAL_GENERATION"), (9, "GROUP_ID_NOT_FOUND")])
def test_a_generation_of_no_group_is_told(version, code):
    party = Party()
    found = commit(party, {("orders", 0): 1}, member_id="m", generation=3, version=version)
    assert found == {("orders", 0): ErrorCode[code]}
    assert party.bench.records == []


def test_members_commit_under_their_generation():
    party = Party()
    one, _ = party.settled(subscription("orders"), subscription("orders"))
    place = ("orders", 0)

    def code(**how):
        return commit(party, {place: 1}, **how)[place]

    assert code(member_id=one, generation=1) == NONE
    assert code(member_id=one, generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert code(member_id="ghost", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code() == ErrorCode.UNKNOWN_MEMBER_ID, "an administrator only when nobody is in"
    assert code(member_id=one, generation=1, instance="i") == ErrorCode.UNKNOWN_MEMBER_ID
    party.join(one)
    assert code(member_id=one, generation=1) == NONE, "while the others are called together"


def test_nobody_commits_between_join_and_sync():
    party = Party()
    one, _ = party.enter()
    party.pass_time(DELAY_MS)
    found = commit(party, {("orders", 0): 1}, member_id=one, generation=1)
    assert found == {("orders", 0): ErrorCode.REBALANCE_IN_PROGRESS}


def test_a_commit_is_as_good_as_a_heartbeat():
    party = Party()
    (one,) = party.settled()
    for _ in range(4):
        party.pass_time(SESSION_MS - 1)
        commit(party, {("orders", 0): 1}, member_id=one, generation=1)
    assert party.members() == [one]


def test_offsets_are_of_a_topic_not_of_its_name():
    party = Party()
    commit(party, {("orders", 0): 7}, version=10)
    topics = party.machine.shelf.topics
    topics.known["orders"] = TopicFacts("orders", topic_id("new"), 4)
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", member_id=None, member_epoch=-1)
    made = OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics
    asked.topics = [made(topic_id=topic_id("new"), partition_indexes=[0])]
    found = party.bench.ask(party.machine.offsets.fetch, asked, 10, require_stable=False)
    assert found.topics[0].partitions[0].committed_offset == -1
    assert fetch(party, ("orders", 0)) == {("orders", 0): 7}, "by name there is no telling"


def test_offsets_of_deleted_topics_go():
    party = Party()
    commit(party, {("orders", 0): 7, ("bills", 0): 8}, version=10)
    party.group = "h"
    commit(party, {("orders", 1): 9}, version=10)
    deleted = {"orders": topic_id("orders"), "bills": bytes(15) + b"x"}
    party.bench.take_steps(party.machine.offsets.forget_topics(deleted))
    assert fetch(party, group="g") == {("bills", 0): 8}, "that of a newer topic of the same name stays"
    assert fetch(party, group="h") == {}
    assert fetch(party, group="g", machine=party.replayed()) == {("bills", 0): 8}


def test_offsets_are_deleted():
    party = Party()
    assert delete(party, ("orders", 0)) == ErrorCode.GROUP_ID_NOT_FOUND
    commit(party, {("orders", 0): 1, ("orders", 1): 2})
    assert delete(party, ("orders", 0), ("orders", 3), ("orders", 9), ("gone", 0)) == {
        ("orders", 0): NONE,
        ("orders", 3): NONE,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("gone", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [record.value is None for record in party.bench.records] == [False, False, True]
    assert fetch(party) == fetch(party, machine=party.replayed()) == {("orders", 1): 2}
    party.group = ""
    assert delete(party, ("orders", 0)) == ErrorCode.INVALID_GROUP_ID


def test_offsets_that_members_read_are_not_deleted():
    party = Party()
    party.settled(subscription("orders"))
    assert delete(party, ("orders", 0), ("bills", 0)) == {
        ("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("bills", 0): NONE,
    }


def test_offsets_of_members_that_do_not_say_what_they_read_are_not_deleted():
    party = Party()
    token = party.enter(protocol_type="connect")[1]
    party.pass_time(DELAY_MS)
    assert party.code(token) == NONE
    assert delete(party, ("orders", 0)) == ErrorCode.NON_EMPTY_GROUP


def test_the_oldest_format_is_read():
    party = Party()
    key = LegacyOffsetCommitKey(group="g", topic="orders", partition=0)
    value = LegacyOffsetCommitValue(offset=5, metadata="", commit_timestamp=NOW)
    party.machine.apply(0, KeyedRecord(key, value))
    assert fetch(party) == {("orders", 0): 5}
    assert 0 in party.machine.kinds
    party.machine.apply(1, KeyedRecord(key, None))
    assert fetch(party) == {}


def test_whole_requests_are_refused():
    made = OffsetCommitRequest.OffsetCommitRequestTopic
    one = made.OffsetCommitRequestPartition(partition_index=3)
    request = OffsetCommitRequest(group_id="g", topics=[made(name="orders", partitions=[one])])
    found = refused_commit(request, ErrorCode.NOT_COORDINATOR)
    assert found.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    made = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    one = made.TxnOffsetCommitRequestPartition(partition_index=3)
    request = TxnOffsetCommitRequest(group_id="g", topics=[made(name="orders", partitions=[one])])
    found = refused_transactional(request, ErrorCode.NOT_COORDINATOR)
    assert found.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    made = OffsetFetchRequest.OffsetFetchRequestGroup
    asked = made(group_id="g", topics=[made.OffsetFetchRequestTopics(name="orders", partition_indexes=[1])])
    assert refused_fetch(asked, ErrorCode.NOT_COORDINATOR, 2).error_code == ErrorCode.NOT_COORDINATOR
    found = refused_fetch(asked, ErrorCode.NOT_COORDINATOR, 1)
    assert found.error_code == NONE
    assert found.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
