"""A consumer on a broker in memory: fetching ahead, sessions, resets, truncation, replicas, leaders that move."""

import asyncio

import pytest

from ottla.client.errors import Malformed, NoOffset, Refused, WrongState
from ottla.client.record import TopicPartition
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.messages.metadata import MetadataResponse
from tests.unit.client.consumer.broker import consumer_on, play, until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


async def read(consumer, count):
    found = []
    while len(found) < count:
        found += await consumer.poll(timeout=2.0)
    return [record.value for record in found]


def test_records_come_in_order_and_the_next_are_fetched_meanwhile():
    async def test(mini):
        for n in range(10):
            mini.append("t", 0, *[b"%d" % (n * 10 + i) for i in range(10)])
        async with consumer_on(mini, max_poll_records=7, max_partition_fetch_bytes=250) as consumer:
            consumer.assign([T0])
            first = await consumer.poll(timeout=2.0)
            assert [record.value for record in first] == [b"%d" % n for n in range(7)]
            # More comes without a poll, but not everything.
            await until(lambda: consumer.statistics()["buffered_bytes"] > 250)
            await asyncio.sleep(0.02)
            assert consumer.statistics()["buffered_bytes"] < 800
            assert await read(consumer, 93) == [b"%d" % n for n in range(7, 100)]
            assert await consumer.position(T0) == 100
            assert consumer.lag(T0) == 0

    play(test)


def test_only_changes_are_named_after_the_first_fetch():
    async def test(mini):
        async with consumer_on(mini) as consumer:
            consumer.assign([T0, T1])
            mini.append("t", 0, b"a")
            assert await read(consumer, 1) == [b"a"]
            await until(lambda: len(mini.asked_for("Fetch")) >= 3)
            first, second, *rest = mini.asked_for("Fetch")
            assert len(first.topics[0].partitions) == 2
            assert [p.partition for t in second.topics for p in t.partitions] == [0]
            assert all(not each.topics for each in rest)
        assert mini.asked_for("Fetch")[-1].session_epoch == -1
        assert mini.sessions == {}

    play(test, t=2)


def test_a_session_that_the_broker_lost_costs_nothing():
    async def test(mini):
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            mini.append("t", 0, b"a")
            assert await read(consumer, 1) == [b"a"]
            mini.sessions.clear()
            mini.append("t", 0, b"b")
            assert await read(consumer, 1) == [b"b"]

    play(test)


def test_a_connection_that_is_lost_is_made_again_and_nothing_is_missed():
    async def test(mini):
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            for n in range(5):
                mini.append("t", 0, b"%d" % n)
                assert await read(consumer, 1) == [b"%d" % n]
                mini.hang_up()

    play(test)


def test_a_cancelled_poll_loses_nothing():
    async def test(mini):
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            for n in range(20):
                polling = asyncio.create_task(consumer.poll(timeout=2.0))
                await asyncio.sleep(0.001 * (n % 5))
                polling.cancel()
                found = await asyncio.gather(polling, return_exceptions=True)
                assert isinstance(found[0], asyncio.CancelledError)
                mini.append("t", 0, b"%d" % n)
                assert await read(consumer, 1) == [b"%d" % n]

    play(test)


def test_one_task_polls_at_a_time():
    async def test(mini):
        async with consumer_on(mini) as consumer:
            with pytest.raises(WrongState, match="nothing to read"):
                await consumer.poll()
            consumer.assign([T0])
            polling = asyncio.create_task(consumer.poll(timeout=2.0))
            await asyncio.sleep(0)
            with pytest.raises(WrongState, match="another task"):
                await consumer.poll()
            polling.cancel()

    play(test)


def test_iteration_hands_out_one_by_one_and_a_poll_the_rest():
    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(10)])
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            async for record in consumer:
                assert await consumer.position(T0) == record.offset + 1
                if record.offset == 2:
                    break
            assert [record.offset for record in await consumer.poll(max_records=3)] == [3, 4, 5]
            async for record in consumer:
                if record.offset == 7:
                    consumer.seek(T0, 1)
                if record.offset == 1:
                    break
                assert record.offset <= 7
            assert await consumer.position(T0) == 2

    play(test)


# Where to begin


@pytest.mark.parametrize(
    ("reset", "expected"),
    [("earliest", 3), ("latest", 9), ("by_duration:PT0S", 9)],
)
def test_where_to_begin_without_a_position(reset, expected):
    async def test(mini):
        mini.append("t", 0, *[b"x"] * 9)
        mini.logs[T0].start = 3
        async with consumer_on(mini, auto_offset_reset=reset) as consumer:
            consumer.assign([T0])
            assert await consumer.position(T0) == expected

    play(test)


def test_nowhere_to_begin_is_told_until_somebody_seeks():
    async def test(mini):
        mini.append("t", 0, b"a", b"b")
        async with consumer_on(mini, auto_offset_reset="none") as consumer:
            consumer.assign([T0])
            for _ in range(2):
                with pytest.raises(NoOffset, match="t-0"):
                    await consumer.poll(timeout=1.0)
            consumer.seek(T0, 1)
            assert await read(consumer, 1) == [b"b"]

    play(test)


def test_an_offset_that_is_gone_is_reset():
    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(9)])
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            await read(consumer, 9)
            mini.logs[T0].start = 5
            # Whatever lies in a batch whose end is still there is read along with it.
            for gone in (2, 100):
                consumer.seek(T0, gone)
                assert (await read(consumer, 4))[-4:] == [b"5", b"6", b"7", b"8"]
        async with consumer_on(mini, auto_offset_reset="none") as consumer:
            consumer.assign([T0])
            consumer.seek(T0, 2)
            with pytest.raises(NoOffset, match="no offset 2"):
                await consumer.poll(timeout=1.0)

    play(test)


def test_who_seeks_twice_reads_from_the_second_place():
    """As one does who goes back over what was polled, record by record: each place was asked for when it was sought."""

    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(9)])
        async with consumer_on(mini) as consumer:
            await consumer.partitions_for("t")  # so that whom to ask is known
            consumer.assign([T0])
            for offset in (8, 5, 2):
                consumer.seek(T0, offset)
            assert (await read(consumer, 1))[0] == b"2"

    play(test)


def test_a_partition_that_comes_back_is_not_read_where_it_was_before():
    """A fetch for the assignment before is still waiting, and is answered when the new one has its position."""

    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(9)])
        async with consumer_on(mini, fetch_max_wait_ms=200) as consumer:
            consumer.assign([T0])
            await read(consumer, 9)
            await asyncio.sleep(0.05)  # the next fetch waits at the end
            consumer.assign([])
            consumer.assign([T0])
            assert await consumer.position(T0) == 0
            mini.append("t", 0, b"new")
            assert (await read(consumer, 1))[0] == b"0"

    play(test)


def test_seeking_to_either_end():
    async def test(mini):
        mini.append("t", 0, *[b"%d" % n for n in range(9)])
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 9)
            consumer.seek_to_beginning()
            assert await consumer.position(T0) == 0
            assert (await read(consumer, 1))[0] == b"0"
            consumer.seek_to_end([T0])
            mini.append("t", 0, b"new")
            assert await consumer.position(T0) in (9, 10)
            with pytest.raises(WrongState):
                consumer.seek_to_end([T1])

    play(test)


def test_offsets_by_time_and_at_the_ends():
    async def test(mini):
        mini.append("t", 0, *[b"x"] * 9)
        async with consumer_on(mini) as consumer:
            found = await consumer.offsets_for_times({T0: 1_004, T1: 1_000})
            assert found[T0].offset == 4
            assert found[T0].timestamp == 1_004
            assert found[T1] is None
            assert await consumer.beginning_offsets([T0, T1]) == {T0: 0, T1: 0}
            assert await consumer.end_offsets([T0, T1]) == {T0: 9, T1: 0}
            mini.refuse("ListOffsets", ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
            assert await consumer.end_offsets([T0]) == {T0: 9}
            mini.refuse("ListOffsets", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            with pytest.raises(Refused, match="TOPIC_AUTHORIZATION_FAILED"):
                await consumer.end_offsets([T0])

    play(test, t=2)


# Leaders and epochs


def test_a_new_epoch_is_checked_before_reading_on():
    async def test(mini):
        mini.append("t", 0, b"a", b"b")
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 2) == [b"a", b"b"]
            mini.logs[T0].elect(1)
            mini.append("t", 0, b"c")
            assert await read(consumer, 1) == [b"c"]
            [asked] = mini.asked_for("OffsetForLeaderEpoch")
            assert asked.topics[0].partitions[0].leader_epoch == 0
            assert asked.topics[0].partitions[0].current_leader_epoch == 1

    play(test)


def test_a_log_that_was_truncated_is_read_from_where_it_diverges():
    async def test(mini):
        mini.append("t", 0, b"a", b"b")
        mini.append("t", 0, b"lost", b"lost")
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 4) == [b"a", b"b", b"lost", b"lost"]
            mini.logs[T0].elect(2, truncate_to=2)
            mini.append("t", 0, b"c", b"d", b"e", b"f")
            assert await read(consumer, 4) == [b"c", b"d", b"e", b"f"]

    play(test)


def test_truncation_is_told_where_nothing_may_be_reset():
    async def test(mini):
        mini.append("t", 0, b"a", b"b")
        mini.append("t", 0, b"lost")
        async with consumer_on(mini, auto_offset_reset="none") as consumer:
            consumer.assign([T0])
            consumer.seek(T0, 0)
            await read(consumer, 3)
            mini.logs[T0].elect(2, truncate_to=2)
            mini.append("t", 0, b"c", b"d")
            with pytest.raises(NoOffset, match="truncated below offset 3, which now ends at 2"):
                await consumer.poll(timeout=1.0)
            consumer.seek(T0, 2)
            assert await read(consumer, 2) == [b"c", b"d"]

    play(test)


def test_a_leader_that_moved_is_found_by_the_hint_in_the_answer():
    async def test(mini):
        mini.append("t", 0, b"a")
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 1) == [b"a"]
            asked = len(mini.asked_for("Metadata"))
            serve = mini._Fetch
            mini.nodes[2] = "two"

            def moved(request):
                kind = FetchResponse.FetchableTopicResponse.PartitionData
                data = kind(
                    partition_index=0,
                    error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                    current_leader=kind.LeaderIdAndEpoch(leader_id=2, leader_epoch=1),
                    records=b"",
                )
                return FetchResponse(
                    session_id=request.session_id,
                    responses=[
                        FetchResponse.FetchableTopicResponse(topic_id=mini.ids["t"], partitions=[data])
                    ],
                    node_endpoints=[FetchResponse.NodeEndpoint(node_id=2, host="two", port=9092)],
                )

            mini.handlers["one:9092", "Fetch"] = moved
            mini.handlers["two:9092", "Fetch"] = lambda request: serve(request, 0)
            mini.logs[T0].elect(1)
            mini.leaders[T0] = 2
            mini.append("t", 0, b"b")
            assert await read(consumer, 1) == [b"b"]
            assert len(mini.asked_for("Metadata")) == asked
            assert mini.asked_for("OffsetForLeaderEpoch")

    play(test)


def test_a_nearer_replica_is_read_from_until_it_fails():
    async def test(mini):
        mini.nodes[2] = "two"
        serve = mini._Fetch
        mini.append("t", 0, b"a")

        def elsewhere(request):
            kind = FetchResponse.FetchableTopicResponse.PartitionData
            data = kind(partition_index=0, high_watermark=1, preferred_read_replica=2, records=b"")
            return FetchResponse(
                session_id=0,
                responses=[FetchResponse.FetchableTopicResponse(topic_id=mini.ids["t"], partitions=[data])],
            )

        mini.handlers["one:9092", "Fetch"] = elsewhere
        mini.handlers["two:9092", "Fetch"] = lambda request: serve(request, 0)
        async with consumer_on(mini, client_rack="here") as consumer:
            consumer.assign([T0])
            assert await read(consumer, 1) == [b"a"]
            assert {address for address, name, *_ in mini.asked if name == "Fetch"} == {
                "one:9092",
                "two:9092",
            }
            assert mini.asked_for("Fetch")[0].rack_id == "here"
            mini.handlers["one:9092", "Fetch"] = lambda request: serve(request, 0)
            mini.down.add("two:9092")
            mini.hang_up()
            mini.append("t", 0, b"b")
            assert await read(consumer, 1) == [b"b"]

    play(test)


# What is not for the application


def test_aborted_records_and_markers_are_not_seen_by_who_reads_what_counts():
    async def test(mini):
        log = mini.logs[T0]
        mini.append("t", 0, b"plain")
        mini.append(
            "t", 0, b"bad", b"bad", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True
        )
        for commit in (False, True):
            marker = end_transaction_batch(
                commit=commit, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1,
                base_offset=log.end, leader_epoch=0,
            )  # fmt: skip
            log.append_bytes(bytes(marker), 1)
            if not commit:
                mini.append(
                    "t", 0, b"good", producer_id=9, producer_epoch=0, base_sequence=2, transactional=True
                )
        log.aborted = [(9, 1)]
        async with consumer_on(mini, isolation_level="read_committed") as consumer:
            consumer.assign([T0])
            assert await read(consumer, 2) == [b"plain", b"good"]
            assert await consumer.position(T0) == log.end
            assert mini.asked_for("Fetch")[0].isolation_level == 1
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 4) == [b"plain", b"bad", b"bad", b"good"]

    play(test)


def test_a_poll_returns_when_only_hidden_records_were_passed():
    async def test(mini):
        log = mini.logs[T0]
        marker = end_transaction_batch(
            commit=True, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1, leader_epoch=0
        )
        log.append_bytes(bytes(marker), 1)
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            assert await consumer.poll(timeout=60.0) == []
            assert await consumer.position(T0) == 1

    play(test)


def test_a_wrong_checksum_is_told_or_not_looked_at():
    async def test(mini):
        mini.append("t", 0, b"good")
        mini.append("t", 0, b"evil")
        log = mini.logs[T0]
        base, data = log.batches[1]
        # In the value, so that nothing else notices.
        log.batches[1] = (base, data.replace(b"evil", b"Evil"))
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 1) == [b"good"]
            with pytest.raises(Malformed, match="checksum"):
                await consumer.poll(timeout=1.0)
        async with consumer_on(mini, check_crcs=False) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 2) == [b"good", b"Evil"]

    play(test)


def test_paused_partitions_are_not_fetched_and_not_handed_out():
    async def test(mini):
        mini.append("t", 0, b"zero")
        mini.append("t", 1, b"one")
        async with consumer_on(mini) as consumer:
            consumer.assign([T0, T1])
            consumer.pause([T0])
            assert consumer.paused == {T0}
            assert await read(consumer, 1) == [b"one"]
            assert await consumer.poll(timeout=0.05) == []
            assert all(
                p.partition == 1 for f in mini.asked_for("Fetch") for t in f.topics for p in t.partitions
            )
            consumer.resume([T0])
            assert await read(consumer, 1) == [b"zero"]

    play(test, t=2)


def test_one_partition_in_trouble_does_not_hold_up_the_others():
    async def test(mini):
        mini.append("t", 1, b"one")
        async with consumer_on(mini) as consumer:
            consumer.assign([T0, T1])
            await read(consumer, 1)
            mini.logs[T0].epoch = -5  # whatever epoch it is asked with, it is not this one's
            for n in range(3):
                mini.append("t", 1, b"%d" % n)
                assert await read(consumer, 1) == [b"%d" % n]

    play(test, t=2)


def test_errors_for_good_come_out_of_a_poll():
    async def test(mini):
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            mini.handlers["Metadata"] = lambda request: MetadataResponse(
                brokers=[],
                topics=[
                    MetadataResponse.MetadataResponseTopic(
                        name="t", error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    )
                ],
            )
            with pytest.raises(Refused, match="TOPIC_AUTHORIZATION_FAILED"):
                await consumer.poll(timeout=2.0)

    play(test)


def test_interceptors_see_records_before_the_application():
    class Shouting:
        closed = False

        def on_consume(self, records):
            return [record._replace(value=record.value.upper()) for record in records]

        def close(self):
            Shouting.closed = True

    class Failing:
        def on_consume(self, records):
            raise RuntimeError

    async def test(mini):
        mini.append("t", 0, b"a")
        async with consumer_on(mini, interceptors=[Shouting(), Failing]) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 1) == [b"A"]
        assert Shouting.closed

    play(test)


def test_a_mistake_of_ours_in_the_background_comes_out_of_a_poll(monkeypatch):
    async def test(mini):
        async with consumer_on(mini) as consumer:
            consumer.assign([T0])
            monkeypatch.setattr(consumer._parts.fetcher, "_handle_response", lambda *parts: 1 // 0)
            with pytest.raises(ZeroDivisionError):
                await consumer.poll(timeout=2.0)

    play(test)


def test_a_broker_that_falls_silent_is_given_up_and_asked_again():
    async def test(mini):
        serve, turns = mini._Fetch, []

        async def mute(request):
            turns.append(1)
            return await asyncio.sleep(60) if len(turns) == 1 else await serve(request, 0)

        mini.handlers["Fetch"] = mute
        mini.append("t", 0, b"a")
        async with consumer_on(mini, {"request.timeout.ms": 80}) as consumer:
            consumer.assign([T0])
            assert await read(consumer, 1) == [b"a"]

    play(test)
