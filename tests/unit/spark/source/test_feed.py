"""A range is read whole and once, whatever happens meanwhile: holes, markers, moves, losses."""

import pytest

from ottla.client.errors import Malformed, Refused, TimedOut
from ottla.client.record import TopicPartition
from ottla.spark.source.refusal import DataLost
from ottla.spark.source.task import Task
from ottla.wire.batch import build_batch
from ottla.wire.compression import Codec
from ottla.wire.control import end_transaction_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.record import Record
from ottla.wire.uuid import uuid_text
from tests.unit.spark.source.world import drain, options, play

T0 = TopicPartition("t", 0)


def fill(mini, count=10, each=3):
    for n in range(count):
        mini.append("t", 0, *[b"%d" % (n * each + i) for i in range(each)])


def marker(offset, *, commit):
    return end_transaction_batch(
        commit=commit,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=1,
        base_offset=offset,
    )


def values(rows):
    return [int(value) for _, value in rows]


def test_a_range_is_cut_out_of_whole_batches():
    async def test(mini, connection, chosen):
        fill(mini)
        rows = await drain(connection, chosen, Task("t", 0, 4, 20))
        assert values(rows) == list(range(4, 20))
        assert [offset for offset, _ in rows] == list(range(4, 20))

    play(test)


def test_the_next_fetch_is_under_way_before_the_last_was_taken():
    async def test(mini, connection, chosen):
        fill(mini)
        rows = await drain(connection, chosen, Task("t", 0, 0, 30))
        assert values(rows) == list(range(30))
        assert len(mini.asked_for("Fetch")) > 3
        assert {request.min_bytes for request in mini.asked_for("Fetch")} == {0}

    play(test, options(kafka__max__partition__fetch__bytes=200))


def test_no_more_is_asked_for_than_the_range_is_likely_to_take():
    async def test(mini, connection, chosen):
        for _ in range(40):
            mini.append("t", 0, bytes(50_000))
        await drain(connection, chosen, Task("t", 0, 0, 24))
        sizes = [request.topics[0].partitions[0].partition_max_bytes for request in mini.asked_for("Fetch")]
        assert sizes[0] == 1 << 20  # as it was told
        assert sizes[-1] < 1 << 19

    play(test, options(kafka__max__partition__fetch__bytes=1 << 20))


def test_fetches_are_large_unless_told_otherwise():
    async def test(mini, connection, chosen):
        fill(mini)
        await drain(connection, chosen, Task("t", 0, 0, 3))
        [request] = mini.asked_for("Fetch")
        assert request.topics[0].partitions[0].partition_max_bytes == 4 << 20

    play(test)


def test_holes_are_passed_over():
    async def test(mini, connection, chosen):
        log = mini.logs[T0]
        mini.append("t", 0, b"0")
        # Compaction has left one record of nine, and nothing at all of the five behind them.
        log.batches.append((1, bytes(build_batch([Record(4, 1000, None, b"4")], base_offset=4))))
        log.end = 15
        mini.append("t", 0, b"15", b"16")
        assert values(await drain(connection, chosen, Task("t", 0, 0, 16))) == [0, 4, 15]
        assert values(await drain(connection, chosen, Task("t", 0, 2, 10))) == [4]
        assert values(await drain(connection, chosen, Task("t", 0, 6, 10))) == []

    play(test)


def test_a_range_whose_rest_is_gone_ends():
    async def test(mini, connection, chosen):
        mini.append("t", 0, b"0", b"1")
        # Tombstones were at the end, and compaction has taken them.
        mini.logs[T0].end = 9
        mini.logs[T0].read = lambda offset, _: mini.logs[T0].batches[0][1] if offset < 2 else b""
        assert values(await drain(connection, chosen, Task("t", 0, 0, 9))) == [0, 1]

    play(test)


def test_a_range_may_end_in_a_marker_and_aborted_records_stay_out():
    async def test(mini, connection, chosen):
        log = mini.logs[T0]
        mini.append("t", 0, b"0", b"1", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        log.append_bytes(bytes(marker(2, commit=True)), 1)
        mini.append("t", 0, b"3", producer_id=7, producer_epoch=0, base_sequence=2, transactional=True)
        log.append_bytes(bytes(marker(4, commit=False)), 1)
        log.aborted = [(7, 3)]
        assert values(await drain(connection, chosen, Task("t", 0, 0, 3))) == [0, 1]
        assert values(await drain(connection, chosen, Task("t", 0, 0, 5))) == [0, 1]
        assert values(await drain(connection, chosen, Task("t", 0, 4, 5))) == []
        assert {request.isolation_level for request in mini.asked_for("Fetch")} == {1}

    play(test)


def test_uncommitted_records_are_read_if_asked_for():
    async def test(mini, connection, chosen):
        mini.append("t", 0, b"0", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        mini.logs[T0].stable = 0
        assert values(await drain(connection, chosen, Task("t", 0, 0, 1))) == [0]
        assert {request.isolation_level for request in mini.asked_for("Fetch")} == {0}

    play(test, options(isolation="read_uncommitted"))


def test_what_retention_took_is_a_loss():
    async def test(mini, connection, chosen):
        fill(mini)
        mini.logs[T0].start = 6
        with pytest.raises(DataLost, match="lost the offsets from 2 up to 6") as raised:
            await drain(connection, chosen, Task("t", 0, 2, 9))
        assert "failOnDataLoss" in raised.value.hint and "retention.ms" in raised.value.hint

    play(test)


def test_a_loss_may_be_borne(caplog):
    async def test(mini, connection, chosen):
        fill(mini)
        mini.logs[T0].start = 6
        assert values(await drain(connection, chosen, Task("t", 0, 2, 9))) == [6, 7, 8]
        assert values(await drain(connection, chosen, Task("t", 0, 2, 5))) == []
        assert values(await drain(connection, chosen, Task("t", 0, 31, 35))) == []
        assert caplog.text.count("going on") == 3

    play(test, options(failOnDataLoss="false"))


def test_an_offset_behind_the_end_is_a_loss():
    async def test(mini, connection, chosen):
        fill(mini, 1)
        with pytest.raises(DataLost, match="ends at offset 3 now, and was to be read from 5 on"):
            await drain(connection, chosen, Task("t", 0, 5, 9))

    play(test)


def test_a_topic_made_anew_is_not_the_old_one():
    async def test(mini, connection, chosen):
        fill(mini)
        task = Task("t", 0, 0, 6, uuid_text(b"another id here!"))
        with pytest.raises(DataLost, match="topic t was deleted, and made anew"):
            await drain(connection, chosen, task)

    play(test)


def test_a_topic_that_is_gone(monkeypatch):
    monkeypatch.setattr("ottla.spark.source.feed._GONE_MS", 50.0)

    async def test(mini, connection, chosen):
        fill(mini)
        task = Task("t", 0, 0, 6, uuid_text(mini.ids["t"]))
        assert values(await drain(connection, chosen, task)) == list(range(6))
        mini.ids.clear()
        mini.logs.clear()
        with pytest.raises(DataLost, match="topic t was deleted before"):
            await drain(connection, chosen, task)

    play(test)


def test_a_leader_that_moved_is_found():
    async def test(mini, connection, chosen):
        fill(mini)
        await drain(connection, chosen, Task("t", 0, 0, 6))
        mini.nodes[2] = "two"
        mini.leaders[T0] = 2
        mini.logs[T0].elect(1)
        assert values(await drain(connection, chosen, Task("t", 0, 0, 6))) == list(range(6))
        assert mini.asked[-1][0] == "two:9092"

    play(test)


def test_a_near_replica_is_read_from_and_left_when_it_fails():
    async def test(mini, connection, chosen):
        fill(mini)
        mini.nodes[2] = "two"
        kind = FetchResponse.FetchableTopicResponse

        def elsewhere(request):
            assert request.rack_id == "near"
            part = kind.PartitionData(
                partition_index=0, high_watermark=30, last_stable_offset=30, preferred_read_replica=2,
                aborted_transactions=None, records=b"",
            )  # fmt: skip
            return FetchResponse(responses=[kind(topic_id=mini.ids["t"], partitions=[part])])

        mini.handlers["one:9092", "Fetch"] = elsewhere
        await connection.cluster.refresh()
        assert values(await drain(connection, chosen, Task("t", 0, 0, 6))) == list(range(6))
        fetches = [address for address, name, *_ in mini.asked if name == "Fetch"]
        assert fetches[0] == "one:9092" and fetches[-1] == "two:9092"

    play(test, options(kafka__client__rack="near"))


def test_a_leader_that_is_behind_is_waited_for_and_then_given_up():
    async def test(mini, connection, chosen):
        fill(mini, 2)
        with pytest.raises(DataLost, match="may be read up to offset 6 now, and could be up to 8 before"):
            await drain(connection, chosen, Task("t", 0, 6, 8))

    play(test, options(kafkaConsumer__pollTimeoutMs="100"))


def test_a_leader_that_is_behind_may_catch_up():
    async def test(mini, connection, chosen):
        fill(mini, 2)
        asked = []

        def late(request):
            asked.append(request)
            if len(asked) == 3:
                del mini.handlers["Fetch"]
                fill(mini, 1)
            return mini._Fetch(request, 0)

        mini.handlers["Fetch"] = late
        assert len(await drain(connection, chosen, Task("t", 0, 6, 8))) == 2

    play(test)


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID])
def test_what_passes_is_asked_again(code):
    async def test(mini, connection, chosen):
        fill(mini)
        kind = FetchResponse.FetchableTopicResponse

        def refuse(request):
            del mini.handlers["Fetch"]
            part = kind.PartitionData(
                partition_index=0, error_code=code, high_watermark=-1, aborted_transactions=None, records=b""
            )
            return FetchResponse(responses=[kind(topic_id=mini.ids["t"], partitions=[part])])

        mini.handlers["Fetch"] = refuse
        assert values(await drain(connection, chosen, Task("t", 0, 0, 6))) == list(range(6))

    play(test)


def test_what_does_not_pass_is_raised():
    async def test(mini, connection, chosen):
        fill(mini)
        mini.refuse("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(Refused, match="reading t-0"):
            await drain(connection, chosen, Task("t", 0, 0, 6))

    play(test)


def test_a_broker_that_hangs_up_is_asked_again():
    async def test(mini, connection, chosen):
        fill(mini)
        await drain(connection, chosen, Task("t", 0, 0, 3))
        mini.hang_up()
        assert values(await drain(connection, chosen, Task("t", 0, 0, 6))) == list(range(6))

    play(test)


def test_a_broken_batch_comes_after_the_rows_before_it():
    async def test(mini, connection, chosen):
        fill(mini, 2)
        base, data = mini.logs[T0].batches[1]
        mini.logs[T0].batches[1] = (base, data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(Malformed, match="batch at offset 3 of t-0"):
            await drain(connection, chosen, Task("t", 0, 0, 6))
        assert values(await drain(connection, chosen, Task("t", 0, 0, 3))) == [0, 1, 2]

    play(test)


def test_a_batch_that_is_large_once_opened_is_read_nevertheless(monkeypatch):
    monkeypatch.setattr("ottla.spark.source.reading._OPEN_BYTES_MAX", 1000)

    async def test(mini, connection, chosen):
        for _ in range(3):
            mini.append("t", 0, bytes(700), bytes(700), codec=Codec.GZIP)
        rows = await drain(connection, chosen, Task("t", 0, 0, 6))
        assert [offset for offset, _ in rows] == list(range(6))

    play(test)


def test_an_offset_that_is_refused_though_it_is_there_is_asked_for_again():
    async def test(mini, connection, chosen):
        fill(mini)
        mini.refuse("Fetch", ErrorCode.OFFSET_OUT_OF_RANGE, 2)
        assert values(await drain(connection, chosen, Task("t", 0, 4, 20))) == list(range(4, 20))

    play(test)


@pytest.mark.parametrize("fails", ["true", "false"])
def test_an_offset_that_is_refused_for_good_is_an_error_and_no_loss(fails):
    async def test(mini, connection, chosen):
        fill(mini)
        mini.refuse("Fetch", ErrorCode.OFFSET_OUT_OF_RANGE, 1_000_000)
        with pytest.raises(
            TimedOut, match="offset 4 of t-0 was refused as out of range, and the range is 0 to 30"
        ):
            await drain(connection, chosen, Task("t", 0, 4, 20))
        assert len(mini.asked_for("Fetch")) < 100

    play(test, options(kafkaConsumer__pollTimeoutMs=300, failOnDataLoss=fails))
