"""A consumer in a group, on a broker in memory: joining, heartbeats, rebalances, commits, leaving, and trouble."""

import asyncio
import re

import pytest

from ottla.client.consumer.assignors.protocol import decode_subscription
from ottla.client.consumer.commits import OffsetCommits
from ottla.client.consumer.group.heartbeat_timers import HeartbeatTimers
from ottla.client.consumer.listener import RebalanceListener
from ottla.client.errors import (
    ClientError,
    CommitFailed,
    Fenced,
    Malformed,
    NoOffset,
    Refused,
    TimedOut,
    WrongState,
)
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.sync_group import SyncGroupResponse
from tests.unit.client.consumer.broker import consumer_on, play, until

T0, T1, T2 = (TopicPartition("t", n) for n in range(3))
CLASSIC = {"heartbeat_interval_ms": 10, "session_timeout_ms": 1_000}
PROTOCOLS = [pytest.param(CLASSIC, id="classic"), pytest.param({"group_protocol": "consumer"}, id="consumer")]
both = pytest.mark.parametrize("options", PROTOCOLS)


class Diary(RebalanceListener):
    """Writes down what it is told."""

    def __init__(self):
        self.entries = []
        self.then = {}

    async def on_partitions_assigned(self, partitions):
        await self._note("assigned", partitions)

    async def on_partitions_revoked(self, partitions):
        await self._note("revoked", partitions)

    async def on_partitions_lost(self, partitions):
        await self._note("lost", partitions)

    async def _note(self, what, partitions):
        self.entries.append((what, [each.partition for each in partitions]))
        if what in self.then:
            await self.then[what](partitions)


async def settled(consumer, *partitions):
    """Poll until these are assigned."""
    async with asyncio.timeout(3):
        while consumer.assignment != set(partitions):
            await consumer.poll(timeout=0.02)


async def polled_until(consumer, condition):
    """Poll until something is so."""
    async with asyncio.timeout(3):
        while not condition():
            await consumer.poll(timeout=0.02)


@both
def test_joining_reading_committing_and_leaving(options):
    async def test(mini):
        mini.append("t", 0, b"a", b"b")
        diary = Diary()
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            with pytest.raises(CommitFailed, match="not, or no longer, a member"):
                await consumer.commit({T0: 0})
            assert [record.value for record in await consumer.poll(timeout=2.0)] == [b"a", b"b"]
            assert consumer.assignment == {T0}
            assert consumer.subscription == {"t"}
            assert diary.entries == [("assigned", [0])]
            assert consumer.group_metadata.group_id == "g"
            assert consumer.group_metadata.generation_id > 0
            await consumer.commit()
            assert mini.committed == {T0: 2}
            assert await consumer.committed([T0]) == {T0: OffsetAndMetadata(2, "", -1)}
        assert diary.entries == [("assigned", [0]), ("revoked", [0])]
        last = mini.asked_for("LeaveGroup" if "session_timeout_ms" in options else "ConsumerGroupHeartbeat")[
            -1
        ]
        assert getattr(last, "member_epoch", -1) == -1

    play(test)


@both
def test_reading_goes_on_where_the_group_has_committed(options):
    async def test(mini):
        mini.append("t", 0, b"a", b"b", b"c")
        mini.committed[T0] = 2
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            assert [record.value for record in await consumer.poll(timeout=2.0)] == [b"c"]

    play(test)


@both
def test_unstable_offsets_are_waited_for(options):
    async def test(mini):
        mini.append("t", 0, b"a", b"b")
        mini.committed[T0] = 1
        mini.refuse("OffsetFetch", ErrorCode.UNSTABLE_OFFSET_COMMIT, 3)
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            assert [record.value for record in await consumer.poll(timeout=2.0)] == [b"b"]
            assert all(each.require_stable for each in mini.asked_for("OffsetFetch"))

    play(test)


@both
def test_nothing_committed_and_nowhere_to_begin(options):
    async def test(mini):
        async with consumer_on(mini, group_id="g", auto_offset_reset="none", **options) as consumer:
            await consumer.subscribe(["t"])
            with pytest.raises(NoOffset, match="no offset is committed for t-0"):
                await consumer.poll(timeout=2.0)

    play(test)


@both
def test_heartbeats_go_on_without_polls(options):
    async def test(mini):
        name = "Heartbeat" if "session_timeout_ms" in options else "ConsumerGroupHeartbeat"
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            before = len(mini.asked_for(name))
            await until(lambda: len(mini.asked_for(name)) >= before + 3)

    play(test)


@both
def test_the_listener_may_seek_and_nothing_overrides_it(options):
    async def test(mini):
        mini.append("t", 0, b"a", b"b", b"c")
        mini.committed[T0] = 1
        diary = Diary()
        async with consumer_on(mini, group_id="g", **options) as consumer:

            async def seek(partitions):
                await asyncio.sleep(0.02)
                consumer.seek(T0, 2)

            diary.then["assigned"] = seek
            await consumer.subscribe(["t"], listener=diary)
            assert [record.value for record in await consumer.poll(timeout=2.0)] == [b"c"]

    play(test)


@both
def test_a_listener_may_be_plain_and_what_it_raises_comes_out_of_poll(options):
    class Failing(RebalanceListener):
        def on_partitions_assigned(self, partitions):
            raise ZeroDivisionError("on purpose")

    async def test(mini):
        mini.append("t", 0, b"a")
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"], listener=Failing())
            with pytest.raises(ZeroDivisionError, match="on purpose"):
                await consumer.poll(timeout=2.0)
            assert consumer.assignment == {T0}
            assert [record.value for record in await consumer.poll(timeout=2.0)] == [b"a"]

    play(test)


@both
def test_a_poll_that_is_cancelled_in_a_callback_leaves_it_to_the_next(options):
    async def test(mini):
        mini.append("t", 0, b"a")
        diary, gate = Diary(), asyncio.Event()

        async def wait(partitions):
            await gate.wait()
            diary.entries.append(("through", []))

        diary.then["assigned"] = wait
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            polling = asyncio.create_task(consumer.poll(timeout=2.0))
            await until(lambda: diary.entries)
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)
            polling = asyncio.create_task(consumer.poll(timeout=2.0))
            await asyncio.sleep(0.02)
            assert not polling.done()
            gate.set()
            assert [record.value for record in await polling] == [b"a"]
            assert diary.entries == [("assigned", [0]), ("through", [])]

    play(test)


# Auto-commit


@both
def test_auto_commit_commits_what_was_handed_out_and_not_more(options):
    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(6)])
        keywords = {"auto_commit_interval_ms": 0, "max_poll_records": 2, **options}
        async with consumer_on(mini, group_id="g", **keywords) as consumer:
            await consumer.subscribe(["t"])
            assert len(await consumer.poll(timeout=2.0)) == 2
            assert mini.committed.get(T0, 0) == 0
            assert len(await consumer.poll(timeout=2.0)) == 2
            await until(lambda: mini.committed.get(T0) == 2)
            async for record in consumer:
                assert record.offset == 4
                break
        # The last record was taken from the broker, but never come to.
        assert mini.committed[T0] == 5

    play(test)


@both
def test_a_poll_of_what_iteration_has_left_keeps_the_member_alive(options):
    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(8)])
        diary = Diary()
        keywords = {**options, "max_poll_interval_ms": 80}
        async with consumer_on(mini, group_id="g", **keywords) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            async for _ in consumer:
                break
            seen = []
            for _ in range(6):
                await asyncio.sleep(0.03)
                seen += [record.offset for record in await consumer.poll(timeout=0.0, max_records=1)]
            assert seen == [1, 2, 3, 4, 5, 6]
            assert [record.offset for record in await consumer.poll(timeout=0.0)] == [7]
            assert await consumer.poll(timeout=0.02) == []
            assert diary.entries == [("assigned", [0])]

    play(test)


@both
def test_what_iteration_has_left_of_a_partition_that_is_gone_is_not_handed_out(options):
    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(8)])
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            async for _ in consumer:
                break
            consumer._subscription.assignment.clear()
            assert await consumer.poll(timeout=0.0, max_records=1) == []

    play(test)


@both
def test_without_auto_commit_nothing_is_committed(options):
    async def test(mini):
        mini.append("t", 0, b"a")
        async with consumer_on(mini, group_id="g", enable_auto_commit=False, **options) as consumer:
            await consumer.subscribe(["t"])
            assert await consumer.poll(timeout=2.0)
            await consumer.poll(timeout=0.01)
        assert mini.committed == {}

    play(test)


def test_partitions_assigned_by_hand_are_committed_for_no_member():
    async def test(mini):
        mini.append("t", 0, b"a")
        async with consumer_on(mini, group_id="g") as consumer:
            consumer.assign([T0])
            assert await consumer.poll(timeout=2.0)
        [request] = mini.asked_for("OffsetCommit")
        assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)
        assert mini.committed == {T0: 1}
        assert not mini.asked_for("JoinGroup")

    play(test)


# Committing by hand


@both
def test_commits_in_order_and_their_outcomes(options):
    async def test(mini):
        mini.append("t", 0, *[b"x"] * 9)
        topic_data = []
        async with consumer_on(mini, group_id="g", enable_auto_commit=False, **options) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            for offset in (1, 2, 3):
                consumer.commit_nowait(
                    {T0: offset}, lambda offsets, error: topic_data.append((offsets[T0].offset, error))
                )
            await consumer.commit({T0: OffsetAndMetadata(4, "note", 0)})
            assert topic_data == [(1, None), (2, None), (3, None)]
            assert [r.topics[0].partitions[0].committed_offset for r in mini.asked_for("OffsetCommit")] == [
                1,
                2,
                3,
                4,
            ]
            mini.refuse("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            consumer.commit_nowait({T0: 5}, lambda offsets, error: topic_data.append(error))
            await until(lambda: len(topic_data) == 4)
            assert topic_data[-1].retriable
            mini.refuse("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 2)
            mini.refuse("OffsetCommit", ErrorCode.NOT_COORDINATOR)
            await consumer.commit({T0: 6})
            assert mini.committed[T0] == 6
            mini.refuse("OffsetCommit", ErrorCode.OFFSET_METADATA_TOO_LARGE)
            with pytest.raises(Refused, match="OFFSET_METADATA_TOO_LARGE"):
                await consumer.commit({T0: 7})
            mini.refuse("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1000)
            with pytest.raises(TimedOut):
                await consumer.commit({T0: 7}, timeout=0.05)
            mini.refusals.clear()

    play(test)


def test_interceptors_hear_of_commits():
    class Listening:
        def __init__(self):
            self.topic_data = []

        def on_commit(self, offsets):
            self.topic_data.append(offsets)

    async def test(mini):
        listening = Listening()
        async with consumer_on(mini, group_id="g", interceptors=[listening]) as consumer:
            consumer.assign([T0])
            await consumer.commit({T0: 5})
        assert listening.topic_data[0] == {T0: OffsetAndMetadata(5)}

    play(test)


def test_a_group_is_needed_for_what_groups_do():
    async def test(mini):
        async with consumer_on(mini) as consumer:
            with pytest.raises(WrongState, match="needs a group"):
                await consumer.subscribe(["t"])
            consumer.assign([T0])
            for call in (consumer.commit_nowait, consumer.enforce_rebalance, lambda: consumer.group_metadata):
                with pytest.raises(WrongState):
                    call()
            with pytest.raises(WrongState):
                await consumer.commit()
        async with consumer_on(mini, group_id="g") as consumer:
            with pytest.raises(WrongState, match="list of topics"):
                await consumer.subscribe("t")

    play(test)


# Rebalances of the classic protocol


def test_eager_members_give_up_everything_first():
    async def test(mini):
        mini.append("t", 0, b"a")
        diary = Diary()
        keywords = {**CLASSIC, "partition_assignment_strategy": ["range"]}
        async with consumer_on(mini, group_id="g", **keywords) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0, T1)
            while await consumer.position(T0) < 1:
                await consumer.poll(timeout=0.02)
            mini.refuse("Heartbeat", ErrorCode.REBALANCE_IN_PROGRESS)
            await until(lambda: not mini.refusals["Heartbeat"])
            assert consumer.assignment == {T0, T1}, "between polls nothing changes"
            mini.target = [T1]
            await settled(consumer, T1)
            assert diary.entries == [("assigned", [0, 1]), ("revoked", [0, 1]), ("assigned", [1])]
            assert mini.committed[T0] == 1
            first, _, again = mini.asked_for("JoinGroup")
            assert first.member_id == ""
            assert again.member_id == "me"
            assert again.reason == "group is already rebalancing"
            assert decode_subscription(bytes(again.protocols[0].metadata)).owned == ()

    play(test, t=2)


def test_cooperative_members_keep_what_stays():
    async def test(mini):
        diary = Diary()
        keywords = {**CLASSIC, "partition_assignment_strategy": "cooperative-sticky"}
        async with consumer_on(mini, group_id="g", **keywords) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0, T1, T2)
            assigned = consumer._subscription.assignment[T1]
            mini.target = [T1]
            consumer.enforce_rebalance("because")
            # Joins again so that what was let go of can be given away; being alone it gets it back.
            await until(lambda: not consumer._polling)
            await consumer.poll(timeout=0.05)
            await settled(consumer, T0, T1, T2)
            assert consumer._subscription.assignment[T1] is assigned
            assert diary.entries == [
                ("assigned", [0, 1, 2]), ("revoked", [0, 2]), ("assigned", []), ("assigned", [0, 2]),
            ]  # fmt: skip
            joins = mini.asked_for("JoinGroup")
            assert joins[2].reason == "because"
            assert sorted(decode_subscription(bytes(joins[2].protocols[0].metadata)).owned) == [T0, T1, T2]
            assert joins[3].reason == "need to revoke partitions and re-join"

    play(test, t=3)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_seat_that_is_lost_loses_its_partitions(code):
    async def test(mini):
        diary = Diary()
        async with consumer_on(mini, group_id="g", **CLASSIC) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0)
            mini.refuse("Heartbeat", code)
            await until(lambda: not mini.refusals["Heartbeat"])
            with pytest.raises(CommitFailed):
                await consumer.commit({T0: 0})
            await consumer.poll(timeout=0.05)
            await settled(consumer, T0)
            assert diary.entries == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]
            kept = code is ErrorCode.ILLEGAL_GENERATION
            assert mini.asked_for("JoinGroup")[2].member_id == ("me" if kept else "")

    play(test)


def test_a_static_member_that_is_fenced_can_only_close():
    async def test(mini):
        async with consumer_on(mini, group_id="g", group_instance_id="i", **CLASSIC) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            assert mini.asked_for("JoinGroup")[0].group_instance_id == "i"
            mini.refuse("Heartbeat", ErrorCode.FENCED_INSTANCE_ID)
            await until(lambda: not mini.refusals["Heartbeat"])
            with pytest.raises(Fenced, match="close this one"):
                await consumer.poll(timeout=1.0)
            mini.refuse("JoinGroup", ErrorCode.FENCED_INSTANCE_ID, 100)
        assert not mini.asked_for("LeaveGroup"), "its seat is kept for it"

    play(test)


def test_heartbeats_begin_again_after_what_nobody_foresaw(monkeypatch):
    async def test(mini):
        async with consumer_on(mini, group_id="g", **CLASSIC) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            with monkeypatch.context() as broken:
                broken.setattr(HeartbeatTimers, "answered", lambda *_: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    await polled_until(consumer, lambda: False)
            joins = len(mini.asked_for("SyncGroup"))
            await polled_until(consumer, lambda: len(mini.asked_for("SyncGroup")) > joins)
            await settled(consumer, T0)
            before = len(mini.asked_for("Heartbeat"))
            await until(lambda: len(mini.asked_for("Heartbeat")) > before + 1)

    play(test)


def test_an_assignment_that_cannot_be_read_is_told_with_every_poll():
    async def test(mini):
        async with consumer_on(mini, group_id="g", **CLASSIC) as consumer:
            mini.handlers["SyncGroup"] = lambda request: SyncGroupResponse(assignment=b"\xff")
            await consumer.subscribe(["t"])
            for _ in range(2):
                with pytest.raises(Malformed):
                    await polled_until(consumer, lambda: False)
            del mini.handlers["SyncGroup"]
            await settled(consumer, T0)

    play(test)


@both
def test_a_commit_that_nobody_foresaw_is_told(options, monkeypatch):
    """Else automatic commits would wait for its end for good."""

    async def test(mini):
        mini.append("t", 0, b"a", b"b")
        async with consumer_on(mini, group_id="g", auto_commit_interval_ms=10, **options) as consumer:
            await consumer.subscribe(["t"])
            with monkeypatch.context() as broken:
                broken.setattr(OffsetCommits, "_commit", lambda *_: 1 / 0)
                topic_data = []
                await settled(consumer, T0)
                await consumer.poll(timeout=1.0)
                await consumer.poll(timeout=0.05)
                consumer.commit_nowait({T0: 1}, lambda _, error: topic_data.append(error))
                await until(lambda: topic_data)
                assert isinstance(topic_data[0], ClientError) and "ZeroDivisionError" in str(topic_data[0])
            await polled_until(consumer, lambda: mini.committed == {T0: 2})

    play(test)


def test_a_static_member_may_leave_for_good():
    async def test(mini):
        consumer = consumer_on(mini, group_id="g", group_instance_id="i", **CLASSIC)
        await consumer.open()
        await consumer.subscribe(["t"])
        await settled(consumer, T0)
        await consumer.close(leave_group=True)
        assert mini.asked_for("LeaveGroup")

    play(test)


def test_who_does_not_poll_leaves_and_joins_again():
    async def test(mini):
        diary = Diary()
        keywords = {**CLASSIC, "max_poll_interval_ms": 80}
        async with consumer_on(mini, group_id="g", **keywords) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0)
            await until(lambda: mini.asked_for("LeaveGroup"))
            with pytest.raises(CommitFailed):
                await consumer.commit({T0: 0})
            await consumer.poll(timeout=0.03)
            await settled(consumer, T0)
            assert diary.entries == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]
            # Who polls for long is not late.
            await consumer.poll(timeout=0.2)
            assert len(mini.asked_for("LeaveGroup")) == 1

    play(test)


@pytest.mark.parametrize("name", ["JoinGroup", "SyncGroup"])
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ],
)
def test_a_join_that_fails_for_now_is_tried_again(name, code):
    async def test(mini):
        mini.refuse(name, code, 2)
        async with consumer_on(mini, group_id="g", **CLASSIC) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)

    play(test)


@both
@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.GROUP_MAX_SIZE_REACHED])
def test_a_join_that_fails_for_good_comes_out_of_poll(options, code):
    async def test(mini):
        name = "JoinGroup" if "session_timeout_ms" in options else "ConsumerGroupHeartbeat"
        mini.refuse(name, code, 2)
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            for _ in range(2):
                with pytest.raises(Refused, match=code.name):
                    await consumer.poll(timeout=2.0)

    play(test)


@both
def test_a_coordinator_that_cannot_be_found_is_looked_for(options):
    async def test(mini):
        mini.refuse("FindCoordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE, 3)
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            mini.hang_up()
            await consumer.commit({T0: 0})
        mini.refuse("FindCoordinator", ErrorCode.GROUP_AUTHORIZATION_FAILED, 3)
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            with pytest.raises(Refused, match="GROUP_AUTHORIZATION_FAILED"):
                await consumer.poll(timeout=2.0)

    play(test)


def test_other_topics_mean_another_join():
    async def test(mini):
        diary = Diary()
        async with consumer_on(mini, group_id="g", **CLASSIC) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0)
            await consumer.subscribe(["t", "u"], listener=diary)
            await settled(consumer, T0, TopicPartition("u", 0))
            assert mini.asked_for("JoinGroup")[-1].reason.endswith("has changed")
            await consumer.unsubscribe()
            assert consumer.assignment == set()
            assert mini.asked_for("LeaveGroup")
            consumer.assign([T0])

    play(test, t=1, u=1)


@pytest.mark.parametrize(("rack", "more"), [("", 0), ("rack-1", 1)])
def test_replicas_that_move_are_a_reason_to_rebalance_for_who_has_a_rack(rack, more):
    async def test(mini):
        keywords = {"metadata_max_age_ms": 20, "client_rack": rack, **CLASSIC}
        async with consumer_on(mini, group_id="g", **keywords) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            joins, asked = len(mini.asked_for("JoinGroup")), len(mini.asked_for("Metadata"))
            mini.nodes[2] = "two"
            await until(lambda: len(mini.asked_for("Metadata")) > asked + 2)
            await consumer.poll(timeout=0.05)
            assert len(mini.asked_for("JoinGroup")) == joins + more

    play(test)


def test_the_leader_watches_for_new_partitions():
    async def test(mini):
        async with consumer_on(mini, group_id="g", metadata_max_age_ms=30, **CLASSIC) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            log = type(mini.logs[T0])
            mini.logs[T1], mini.leaders[T1] = log(), 1
            await settled(consumer, T0, T1)
            assert mini.asked_for("JoinGroup")[-1].reason == "cached metadata has changed"

    play(test)


@both
def test_a_pattern_finds_topics_as_they_come(options):
    async def test(mini):
        async with consumer_on(mini, group_id="g", metadata_max_age_ms=30, **options) as consumer:
            await consumer.subscribe(pattern=re.compile("t.?"))
            await settled(consumer, T0)
            assert consumer.subscription == {"t"}
            new = TopicPartition("tt", 0)
            mini.logs[new], mini.leaders[new], mini.ids["tt"] = (
                type(mini.logs[T0])(),
                1,
                b"tt".ljust(16, b"."),
            )
            mini.logs[TopicPartition("other", 0)] = type(mini.logs[T0])()
            mini.leaders[TopicPartition("other", 0)] = 1
            if "group_protocol" in options:
                await until(lambda: mini.asked_for("ConsumerGroupHeartbeat"))
                mini.target = [T0, new]
            await settled(consumer, T0, new)
            assert consumer.subscription == {"t", "tt"}

    play(test)


# The consumer protocol


def test_a_text_pattern_is_the_brokers_to_match():
    async def test(mini):
        async with consumer_on(mini, group_id="g", group_protocol="consumer") as consumer:
            await consumer.subscribe(pattern="t.*")
            await settled(consumer, T0)
            first = mini.asked_for("ConsumerGroupHeartbeat")[0]
            assert first.subscribed_topic_regex == "t.*"
            assert first.subscribed_topic_names == []
            await consumer.unsubscribe()
            await consumer.subscribe(["t"])
            await settled(consumer, T0)

    play(test)


def test_what_heartbeats_say_and_when():
    async def test(mini):
        keywords = {"group_remote_assignor": "uniform", "client_rack": "r", "group_instance_id": "i"}
        async with consumer_on(mini, group_id="g", group_protocol="consumer", **keywords) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            beats = lambda: mini.asked_for("ConsumerGroupHeartbeat")  # noqa: E731
            await until(lambda: len(beats()) >= 4)
            first, second, third, *_ = beats()
            assert (first.member_epoch, first.server_assignor, first.rack_id, first.instance_id) == (
                0,
                "uniform",
                "r",
                "i",
            )
            assert first.rebalance_timeout_ms == 300_000
            assert first.topic_partitions == []
            assert [each.partitions for each in second.topic_partitions] == [[0]]
            assert second.subscribed_topic_names is None
            assert third.topic_partitions is None
            assert third.rebalance_timeout_ms == -1
            # After a failure everything is said again.
            mini.refuse("ConsumerGroupHeartbeat", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            count = len(beats())
            await until(lambda: len(beats()) >= count + 3 and not mini.refusals["ConsumerGroupHeartbeat"])
            assert any(
                each.subscribed_topic_names == ["t"] and each.member_epoch > 0 for each in beats()[count:]
            )
        assert beats()[-1].member_epoch == -2

    play(test)


def test_a_coordinator_that_says_it_is_none_is_not_asked_without_pause():
    """Too few replicas in sync for its records: whoever looks for it finds the same one again, at once."""

    async def test(mini):
        options = {"group_protocol": "consumer", "retry_backoff_ms": 40}
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            mini.refuse("ConsumerGroupHeartbeat", ErrorCode.COORDINATOR_NOT_AVAILABLE, 1_000)
            await consumer.poll(timeout=0.4)
            assert 3 <= len(mini.asked_for("ConsumerGroupHeartbeat")) <= 50
            mini.refusals["ConsumerGroupHeartbeat"].clear()
            await settled(consumer, T0)

    play(test)


def test_what_is_taken_away_is_committed_and_let_go_of_first():
    async def test(mini):
        mini.append("t", 0, b"a")
        diary = Diary()
        async with consumer_on(mini, group_id="g", group_protocol="consumer") as consumer:
            mini.target = [T0, T1]
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0, T1)
            assert await consumer.poll(timeout=1.0) or await consumer.position(T0) == 1
            assigned = consumer._subscription.assignment[T1]
            mini.target = [T1, T2]
            await settled(consumer, T1, T2)
            assert consumer._subscription.assignment[T1] is assigned
            assert mini.committed[T0] == 1
            assert diary.entries == [("assigned", [0, 1]), ("revoked", [0]), ("assigned", [2])]
            said = lambda: [  # noqa: E731
                sorted(each.topic_partitions[0].partitions)
                for each in mini.asked_for("ConsumerGroupHeartbeat")
                if each.topic_partitions
            ]
            await until(lambda: [1, 2] in said())

    play(test, t=3)


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_its_partitions_and_joins_again(code):
    async def test(mini):
        diary = Diary()
        async with consumer_on(mini, group_id="g", group_protocol="consumer") as consumer:
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0)
            mini.refuse("ConsumerGroupHeartbeat", code)
            await until(lambda: not mini.refusals["ConsumerGroupHeartbeat"])
            await asyncio.sleep(0.03)
            assert consumer.assignment == {T0}, "between polls nothing changes"
            await consumer.poll(timeout=0.02)
            await settled(consumer, T0)
            assert diary.entries == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]
            names = {each.member_id for each in mini.asked_for("ConsumerGroupHeartbeat")}
            assert len(names) == 1

    play(test)


def test_an_epoch_member_that_does_not_poll_leaves_and_joins_again():
    async def test(mini):
        diary = Diary()
        keywords = {"group_protocol": "consumer", "max_poll_interval_ms": 80}
        async with consumer_on(mini, group_id="g", **keywords) as consumer:
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0)
            await until(lambda: mini.asked_for("ConsumerGroupHeartbeat")[-1].member_epoch == -1)
            await consumer.poll(timeout=0.02)
            await settled(consumer, T0)
            assert diary.entries == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]

    play(test)


def test_a_cluster_without_the_protocol_is_told_as_such():
    async def test(mini):
        mini.limits["one:9092"] = {"ConsumerGroupHeartbeat": -1}
        async with consumer_on(mini, group_id="g", group_protocol="consumer") as consumer:
            await consumer.subscribe(["t"])
            with pytest.raises(ClientError, match="group.protocol=classic"):
                await consumer.poll(timeout=2.0)

    play(test)


def test_an_unknown_topic_id_is_looked_up():
    async def test(mini):
        async with consumer_on(mini, group_id="g", group_protocol="consumer") as consumer:
            await consumer.subscribe(pattern="t|u")
            await settled(consumer, T0, TopicPartition("u", 0))
            assert any(each.name is None for r in mini.asked_for("Metadata") for each in r.topics or ())

    play(test, t=1, u=1)


# The end


@both
def test_closing_while_the_broker_is_gone_ends_in_time(options):
    async def test(mini):
        mini.append("t", 0, b"a")
        consumer = consumer_on(mini, group_id="g", **options)
        await consumer.open()
        await consumer.subscribe(["t"])
        await consumer.poll(timeout=2.0)
        mini.down.add("one:9092")
        mini.hang_up()
        began = asyncio.get_running_loop().time()
        await consumer.close(timeout=0.2)
        assert asyncio.get_running_loop().time() - began < 1.5
        await consumer.close()

    play(test)


@both
def test_closing_in_the_midst_of_a_join_leaves_nothing_behind(options):
    async def test(mini):
        name = "JoinGroup" if "session_timeout_ms" in options else "ConsumerGroupHeartbeat"

        async def never(request):
            await asyncio.sleep(60)

        mini.handlers[name] = never
        consumer = consumer_on(mini, group_id="g", **options)
        await consumer.open()
        await consumer.subscribe(["t"])
        polling = asyncio.create_task(consumer.poll(timeout=60.0))
        await until(lambda: mini.asked_for(name))
        closing = asyncio.create_task(consumer.close(timeout=0.3))
        with pytest.raises(ClientError, match="closed"):
            await polling
        await closing

    play(test)


def test_a_consumer_that_was_never_opened_closes():
    async def test(mini):
        consumer = consumer_on(mini, group_id="g")
        with pytest.raises(WrongState, match="not open"):
            await consumer.poll()
        await consumer.close()
        with pytest.raises(ClientError, match="closed"):
            await consumer.open()

    play(test)


@both
def test_a_listener_may_commit_while_the_consumer_closes(options):
    async def test(mini):
        mini.append("t", 0, b"a")
        diary = Diary()
        async with consumer_on(mini, group_id="g", enable_auto_commit=False, **options) as consumer:

            async def commit(partitions):
                assert await consumer.position(T0) == 1
                await consumer.commit()
                with pytest.raises(ClientError, match="closed"):
                    await consumer.poll(timeout=0.01)

            diary.then["revoked"] = commit
            await consumer.subscribe(["t"], listener=diary)
            assert await consumer.poll(timeout=2.0)
        assert mini.committed == {T0: 1}
        with pytest.raises(ClientError, match="closed"):
            await consumer.commit()

    play(test)


def test_an_epoch_that_changes_under_a_commit_before_a_rebalance_is_no_reason_to_lose_it():
    async def test(mini):
        mini.append("t", 0, b"a")
        async with consumer_on(mini, group_id="g", group_protocol="consumer") as consumer:
            await consumer.subscribe(["t"])
            assert await consumer.poll(timeout=2.0)
            mini.refuse("OffsetCommit", ErrorCode.STALE_MEMBER_EPOCH, 2)
            mini.target = [T1]
            await settled(consumer, T1)
            assert mini.committed[T0] == 1
            mini.refuse("OffsetCommit", ErrorCode.STALE_MEMBER_EPOCH)
            with pytest.raises(CommitFailed, match="STALE_MEMBER_EPOCH"):
                await consumer.commit({T1: 0})

    play(test, t=2)


@pytest.mark.parametrize("kind", ["eager", "consumer"])
def test_nothing_is_handed_out_while_it_is_being_given_up(kind):
    options = (
        {**CLASSIC, "partition_assignment_strategy": "range"}
        if kind == "eager"
        else {"group_protocol": "consumer"}
    )

    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(10)])
        serve, gate = mini._OffsetCommit, asyncio.Event()

        async def slow(request):
            await gate.wait()
            return serve(request, 0)

        async with consumer_on(mini, group_id="g", max_poll_records=3, **options) as consumer:
            mini.target = [T0]
            await consumer.subscribe(["t"])
            assert len(await consumer.poll(timeout=2.0)) == 3
            mini.handlers["OffsetCommit"] = slow
            mini.target = [T1]
            if kind == "eager":
                consumer.enforce_rebalance()
            await until(lambda: kind == "eager" or mini.target is None)
            assert await consumer.poll(timeout=0.06) == []
            assert await consumer.poll(timeout=0.06) == []
            assert consumer.assignment == {T0}
            gate.set()
            await settled(consumer, T1)
            assert mini.committed[T0] == 3

    play(test, t=2)


@both
def test_nothing_is_looked_up_before_the_listener_was_heard(options):
    async def test(mini):
        diary = Diary()
        async with consumer_on(mini, group_id="g", **options) as consumer:

            async def seek(partitions):
                consumer.seek(T0, 0)
                await asyncio.sleep(0.03)
                assert not mini.asked_for("OffsetFetch")

            diary.then["assigned"] = seek
            await consumer.subscribe(["t"], listener=diary)
            await settled(consumer, T0, T1)
            assert await consumer.position(T1) == 0

    play(test, t=2)


@both
def test_a_coordinator_that_dies_is_looked_for_elsewhere(options):
    async def test(mini):
        mini.nodes[2] = "two"
        async with consumer_on(mini, group_id="g", **options) as consumer:
            await consumer.subscribe(["t"])
            await settled(consumer, T0)
            mini.leaders[T0] = mini.coordinator = 2
            mini.down.add("one:9092")
            mini.hang_up()
            await consumer.commit({T0: 0})
            assert [a for a, name, *_ in mini.asked if name == "OffsetCommit"][-1] == "two:9092"

    play(test)
