"""A stream on a broker in memory: where batches end, what they read, what is noticed, what a group is told."""

import json
import logging

import pytest

from ottla.client.errors import TimedOut
from ottla.client.record import TopicPartition
from ottla.spark.source.following import Follower
from ottla.spark.source.offsets import Reached
from ottla.spark.source.refusal import DataLost, GroupRefused, NothingThere, OptionError
from ottla.wire.errors import ErrorCode
from ottla.wire.uuid import uuid_text
from tests.unit.client.consumer.broker import Log
from tests.unit.spark.source.world import GIVEN, options, play, surveyor

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
EARLY = {"startingOffsets": "earliest"}


class Hand:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def now_ms(self):
        return int(self.now * 1000)


def follow(connection, chosen, clock=None):
    return Follower(chosen, surveyor(connection, chosen), clock or Hand())


def fill(mini, number, count):
    for n in range(count):
        mini.append("t", number, b"%d" % n)


def planned(tasks):
    return [(task.topic, task.partition, task.start, task.end) for task in tasks]


def test_batches_follow_one_another():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        fill(mini, 0, 3)
        start = await follower.initial()
        assert start.offsets == {T0: 0, T1: 0} and not start.is_initial
        end = await follower.advance(start, limited=False)
        assert end.offsets == {T0: 3, T1: 0}
        assert end.ids == {"t": uuid_text(mini.ids["t"])}
        assert planned(await follower.plan(start, end)) == [("t", 0, 0, 3)]
        # Nothing new: the same text, so that Spark makes no batch of it.
        assert (await follower.advance(end, limited=False)).json() == end.json()
        fill(mini, 1, 2)
        later = await follower.advance(end, limited=False)
        assert planned(await follower.plan(end, later)) == [("t", 1, 0, 2)]
        assert follower.latest.json(plain=True) == {"t": {"0": 3, "1": 2}}

    play(test, options(**EARLY), t=2)


def test_one_question_finds_the_end():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        end = await follower.advance(await follower.initial(), limited=False)
        before = len(mini.asked)
        await follower.advance(end, limited=False)
        assert [name for _, name, *_ in mini.asked[before:]] == ["ListOffsets"]

    play(test, options(**EARLY), t=2)


def test_a_query_that_begins_at_the_end_begins_there_after_a_crash_too():
    async def test(mini, connection, chosen):
        fill(mini, 0, 5)
        follower = follow(connection, chosen)
        start = await follower.initial()
        assert start.offsets == {T0: 5} and start.is_initial
        fill(mini, 0, 2)
        end = await follower.advance(start, limited=False)
        # The first batch is empty, and Spark writes its end down.
        assert end.offsets == {T0: 5}
        assert await follower.plan(start, end) == []
        # It crashed before that batch was done; the end of the topic is elsewhere by now.
        again = follow(connection, chosen)
        assert (await again.initial()).offsets == {T0: 7}
        assert await again.plan(await again.initial(), end) == []
        more = await again.advance(end, limited=False)
        assert planned(await again.plan(end, more)) == [("t", 0, 5, 7)]

    play(test, options())


def test_where_a_query_begins_is_worked_out_once():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        first = await follower.initial()
        fill(mini, 0, 2)
        assert await follower.initial() is first

    play(test, options())


def test_limits_and_what_is_there_now():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        fill(mini, 0, 10)
        fill(mini, 1, 5)
        follower.stop_at_end()
        at, ends = await follower.initial(), []
        while True:
            end = await follower.advance(at, limited=True)
            if end.json() == at.json():
                break
            assert sum(end.offsets.values()) - sum(at.offsets.values()) <= 6
            ends.append(end.offsets)
            at = end
            fill(mini, 0, 3)  # which is too late for this query
        assert at.offsets == {T0: 10, T1: 5}
        assert ends[0] == {T0: 4, T1: 2}

    play(test, options(maxOffsetsPerTrigger=6, **EARLY), t=2)


def test_all_that_is_there_means_all():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        fill(mini, 0, 10)
        end = await follower.advance(await follower.initial(), limited=False)
        assert end.offsets == {T0: 10}

    play(test, options(maxOffsetsPerTrigger=6, minOffsetsPerTrigger=5, **EARLY))


def test_few_records_are_waited_for_but_not_for_ever():
    async def test(mini, connection, chosen):
        clock = Hand()
        follower = follow(connection, chosen, clock)
        fill(mini, 0, 1)
        # The first batch does not wait, as in Spark's own source.
        at = await follower.advance(await follower.initial(), limited=True)
        assert at.offsets == {T0: 1}
        fill(mini, 0, 4)
        assert (await follower.advance(at, limited=True)).json() == at.json()
        clock.now += 59
        assert (await follower.advance(at, limited=True)).json() == at.json()
        fill(mini, 0, 1)
        at = await follower.advance(at, limited=True)
        assert at.offsets == {T0: 6}
        fill(mini, 0, 1)
        assert (await follower.advance(at, limited=True)).json() == at.json()
        clock.now += 60
        assert (await follower.advance(at, limited=True)).offsets == {T0: 7}

    play(test, options(minOffsetsPerTrigger=5, maxTriggerDelay="60s", **EARLY))


def test_a_query_that_ends_does_not_wait_for_more():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        follower.stop_at_end()
        fill(mini, 0, 7)
        at = await follower.advance(await follower.initial(), limited=True)
        assert at.offsets == {T0: 5}
        assert (await follower.advance(at, limited=True)).offsets == {T0: 7}

    play(test, options(minOffsetsPerTrigger=5, maxOffsetsPerTrigger=5, **EARLY))


def test_open_transactions_are_waited_for():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        fill(mini, 0, 7)
        mini.logs[T0].stable = 4
        assert (await follower.advance(await follower.initial(), limited=False)).offsets == {T0: 4}

    play(test, options(**EARLY))


def test_new_partitions_are_read_from_their_beginning():
    async def test(mini, connection, chosen):
        clock = Hand()
        follower = follow(connection, chosen, clock)
        at = await follower.advance(await follower.initial(), limited=False)
        mini.logs[T1], mini.leaders[T1] = Log(), 1
        fill(mini, 1, 3)
        assert (await follower.advance(at, limited=False)).json() == at.json()
        clock.now += 1
        end = await follower.advance(at, limited=True)
        assert end.offsets == {T0: 0, T1: 2}
        assert planned(await follower.plan(at, end)) == [("t", 1, 0, 2)]

    play(test, options(maxOffsetsPerTrigger=2, **EARLY))


def test_a_new_partition_that_lacks_its_beginning_is_a_loss():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        fill(mini, 1, 3)
        mini.logs[T1].start = 2
        end = await follower.advance(Reached({T0: 0}), limited=False)
        with pytest.raises(DataLost, match="t-1 is new, and begins at offset 2"):
            await follower.plan(Reached({T0: 0}), end)

    play(test, options(**EARLY), t=2)


def test_a_partition_that_is_gone_is_a_loss(caplog):
    start = Reached({T0: 0, T1: 4})

    async def fails(mini, connection, chosen):
        with pytest.raises(DataLost, match="t-1 is there no more"):
            await follow(connection, chosen).advance(start, limited=False)
        with pytest.raises(DataLost, match="t-1 is there no more"):
            await follow(connection, chosen).plan(start, Reached({T0: 1, T1: 5}))

    async def goes_on(mini, connection, chosen):
        fill(mini, 0, 2)
        follower = follow(connection, chosen)
        end = await follower.advance(start, limited=False)
        assert end.offsets == {T0: 2}
        assert planned(await follower.plan(start, end)) == [("t", 0, 0, 2)]
        assert "going on" in caplog.text

    play(fails, options())
    play(goes_on, options(failOnDataLoss="false"))


def test_a_topic_made_anew_is_a_loss_and_then_read_from_its_beginning():
    start = Reached({T0: 2}, {"t": uuid_text(b"that of long ago")})

    async def fails(mini, connection, chosen):
        fill(mini, 0, 9)
        with pytest.raises(DataLost, match="topic t was deleted and made anew"):
            await follow(connection, chosen).advance(start, limited=False)

    async def goes_on(mini, connection, chosen):
        fill(mini, 0, 9)
        follower = follow(connection, chosen)
        end = await follower.advance(start, limited=False)
        assert end.ids == {"t": uuid_text(mini.ids["t"])}
        assert planned(await follower.plan(start, end)) == [("t", 0, 0, 9)]
        again = await follower.advance(end, limited=False)
        assert again.json() == end.json()

    play(fails, options())
    play(goes_on, options(failOnDataLoss="false"))


def test_offsets_that_went_back_are_asked_for_again_and_are_a_loss():
    start = Reached({T0: 20})

    async def fails(mini, connection, chosen):
        fill(mini, 0, 9)
        with pytest.raises(DataLost, match="ends at offset 9, and was read up to 20"):
            await follow(connection, chosen).advance(start, limited=False)
        assert len(mini.asked_for("ListOffsets")) == 3

    async def goes_on(mini, connection, chosen):
        fill(mini, 0, 9)
        follower = follow(connection, chosen)
        end = await follower.advance(start, limited=False)
        assert end.offsets == {T0: 9}
        assert planned(await follower.plan(start, end)) == []

    play(fails, options())
    play(goes_on, options(failOnDataLoss="false"))


def test_what_was_lost_while_nobody_read_is_noticed_at_once():
    start, end = Reached({T0: 2}), Reached({T0: 9})

    async def fails(mini, connection, chosen):
        fill(mini, 0, 9)
        mini.logs[T0].start = 5
        with pytest.raises(DataLost, match="lost the offsets from 2 up to 5"):
            await follow(connection, chosen).plan(start, end)

    async def goes_on(mini, connection, chosen):
        fill(mini, 0, 9)
        mini.logs[T0].start = 5
        assert planned(await follow(connection, chosen).plan(start, end)) == [("t", 0, 5, 9)]

    play(fails, options())
    play(goes_on, options(failOnDataLoss="false"))


def test_tasks_are_as_many_as_asked_for():
    async def test(mini, connection, chosen):
        fill(mini, 0, 9)
        tasks = await follow(connection, chosen).plan(Reached({T0: 0}), Reached({T0: 9}))
        assert planned(tasks) == [("t", 0, 0, 3), ("t", 0, 3, 6), ("t", 0, 6, 9)]

    play(test, options(minPartitions=3))


def test_a_batch_that_is_run_again_has_the_same_tasks_whatever_the_options_say_by_then():
    async def test(mini, connection, chosen):
        fill(mini, 0, 9)
        start = Reached({T0: 0}, {"t": uuid_text(mini.ids["t"])})
        end = await follow(connection, chosen).advance(start, limited=False)
        before = planned(await follow(connection, chosen).plan(start, end))
        assert len(before) == 3
        # What the checkpoint has of it, read after a restart.
        again = Reached.of(json.loads(json.dumps(end.json())))
        changed = options(minPartitions=5, maxRecordsPerPartition=2, minRecordsPerPartition=9)
        assert planned(await follow(connection, changed).plan(start, again)) == before
        # Nothing is new, though the options are.
        assert (await follow(connection, changed).advance(again, limited=False)).json() == end.json()
        # The next batch is divided by what is said now.
        fill(mini, 0, 4)
        later = await follow(connection, changed).advance(again, limited=False)
        assert len(await follow(connection, changed).plan(again, later)) == 4

    play(test, options(minPartitions=3))


def test_a_missing_topic():
    async def test(mini, connection, chosen):
        with pytest.raises(NothingThere, match="topic t does not exist\nhint: create it"):
            await follow(connection, chosen).initial()
        assert len(mini.asked_for("Metadata")) >= 3
        assert not any(request.allow_auto_topic_creation for request in mini.asked_for("Metadata")[1:])

    play(test, options(), other=1)


def test_missing_partitions():
    async def test(mini, connection, chosen):
        with pytest.raises(NothingThere, match="no partition t-5\nhint: it has 2, from 0 to 1"):
            await follow(connection, chosen).initial()

    given = {name: value for name, value in GIVEN.items() if name != "subscribe"}
    from ottla.spark.source.options import parse

    play(test, parse(given | {"assign": '{"t": [1, 5]}'}), t=2)


def test_a_pattern_finds_what_there_is_and_what_comes():
    async def test(mini, connection, chosen):
        clock = Hand()
        follower = follow(connection, chosen, clock)
        at = await follower.advance(await follower.initial(), limited=False)
        assert at.offsets == {TopicPartition("orders-a", 0): 0}
        new = TopicPartition("orders-b", 0)
        mini.logs[new], mini.leaders[new], mini.ids["orders-b"] = Log(), 1, b"b" * 16
        clock.now += 2
        end = await follower.advance(at, limited=False)
        assert set(end.offsets) == {TopicPartition("orders-a", 0), new}

    from ottla.spark.source.options import parse

    given = {name: value for name, value in GIVEN.items() if name != "subscribe"}
    chosen = parse(given | {"subscribePattern": "^orders", "startingOffsets": "earliest"})
    play(test, chosen, **{"orders-a": 1, "clicks": 2})


@pytest.mark.parametrize(
    ("given", "offsets"),
    [
        ({"startingOffsets": '{"t": {"0": 3, "1": -1}}'}, {T0: 3, T1: 4}),
        ({"startingOffsets": '{"t": {"0": -2, "1": "group"}}', "groupId": "g"}, {T0: 0, T1: 2}),
        ({"startingOffsets": "group", "groupId": "g"}, {T0: 0, T1: 2}),
        ({"startingTimestamp": "1003"}, {T0: 3, T1: 3}),
        ({"startingOffsetsByTimestamp": '{"t": {"0": 1001, "1": 1002}}'}, {T0: 1, T1: 2}),
        (
            {"startingTimestamp": "1004", "startingOffsetsByTimestampStrategy": "latest"},
            {T0: 4, T1: 4},
        ),
    ],
)
def test_where_a_query_begins(given, offsets):
    async def test(mini, connection, chosen):
        fill(mini, 0, 6)
        fill(mini, 1, 4)
        mini.committed[T1] = 2
        assert (await follow(connection, chosen).initial()).offsets == offsets

    play(test, options(**given), t=2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"startingOffsets": '{"t": {"0": 3}}'}, "lacks t-1"),
        ({"startingOffsets": '{"t": {"0": 3, "1": 4, "2": 5}}'}, "names t-2"),
        ({"startingOffsetsByTimestamp": '{"u": {"0": 3}}'}, "lacks t-0, t-1 and names u-0"),
        ({"startingTimestamp": "9999"}, "t-0 has no record from 9999 ms on"),
    ],
)
def test_where_a_query_cannot_begin(given, words):
    async def test(mini, connection, chosen):
        with pytest.raises(OptionError, match=words):
            await follow(connection, chosen).initial()

    play(test, options(**given), t=2)


def test_a_group_is_told_what_is_finished():
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        fill(mini, 0, 3)
        start = await follower.initial()
        end = await follower.advance(start, limited=False)
        assert mini.committed == {}
        # Spark asks for the next batch when this one is done, whether or not there is one.
        await follower.advance(end, limited=False)
        assert mini.committed == {T0: 3}
        asked = len(mini.asked_for("OffsetCommit"))
        await follower.advance(end, limited=False)
        await follower.tell(end)
        assert len(mini.asked_for("OffsetCommit")) == asked

    play(test, options(groupId="g", **EARLY))


def test_a_group_that_cannot_be_told(caplog):
    async def test(mini, connection, chosen):
        follower = follow(connection, chosen)
        mini.refuse("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID)
        with pytest.raises(GroupRefused, match="group g") as raised:
            await follower.tell(Reached({T0: 1}))
        assert "no consumer is a member of" in raised.value.hint
        await follower.tell(Reached({T0: 1}))
        assert mini.committed == {T0: 1}

        async def late(*_):
            raise TimedOut("too late")

        follower._surveyor.commit = late
        with caplog.at_level(logging.WARNING):
            await follower.tell(Reached({T0: 2}))
        assert "not committed to group g" in caplog.text

    play(test, options(groupId="g", **EARLY))
