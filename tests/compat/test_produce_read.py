"""Each client writes with every codec, acks and kind of record, and reads the same back, by assignment."""

import time

import pytest

from tests.compat.absence import need
from tests.compat.chosen import MakeTopic
from tests.compat.clients import CLIENTS, CODECS, Client, Sample, Seen

# Old enough to be told from "now", young enough for retention to leave it alone.
MOMENT_MS = int(time.time() * 1000) - 3_600_000

EVERY_KIND = (
    Sample(value=b"plain"),
    Sample(key=b"k1", value=b"keyed"),
    Sample(key=b"k2", value=None),
    Sample(key=b"", value=b""),
    Sample(key=None, value=b"\x00\xff\n binary | bytes"),
    Sample(
        key=b"k3", value=b"with headers", headers=(("one", b"1"), ("two", b"\x00\x01"), ("one", b"again"))
    ),
    Sample(key=b"k4", value=b"stamped", timestamp_ms=MOMENT_MS),
    Sample(key=b"k5", value=b"x" * 10_000, timestamp_ms=MOMENT_MS + 1),
)
AS_TEXT = tuple(Sample(key=b"k%d" % n, value=None if n % 7 == 6 else b"line %d" % n) for n in range(20))


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.param
    need(chosen)
    return chosen


def samples_for(client: Client) -> tuple[Sample, ...]:
    return AS_TEXT if client.text_only else EVERY_KIND


def same(samples: tuple[Sample, ...], seen: list[Seen], started_ms: int, start_offset: int = 0) -> None:
    """Every record once, in order, unaltered, and stamped as asked or with the time of writing."""
    assert [(each.key, each.value, each.headers) for each in seen] == [tuple(each[:3]) for each in samples]
    assert [each.offset for each in seen] == list(range(start_offset, start_offset + len(samples)))
    for sample, each in zip(samples, seen, strict=True):
        if sample.timestamp_ms is not None:
            assert each.timestamp_ms == sample.timestamp_ms
        else:
            assert started_ms <= each.timestamp_ms <= time.time() * 1000 + 1


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec(client: Client, codec: str, bootstrap: str, topic: str) -> None:
    samples, started_ms = samples_for(client), int(time.time() * 1000)
    client.produce(bootstrap, topic, samples, codec=codec)
    same(samples, client.read(bootstrap, topic, len(samples)), started_ms)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks(client: Client, acks: str, bootstrap: str, topic: str) -> None:
    samples, started_ms = samples_for(client), int(time.time() * 1000)
    client.produce(bootstrap, topic, samples, acks=acks)
    same(samples, client.read(bootstrap, topic, len(samples)), started_ms)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_every_isolation_level(client: Client, isolation: str, bootstrap: str, topic: str) -> None:
    samples, started_ms = samples_for(client), int(time.time() * 1000)
    client.produce(bootstrap, topic, samples)
    same(samples, client.read(bootstrap, topic, len(samples), isolation=isolation), started_ms)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_idempotent_producer(client: Client, codec: str, bootstrap: str, topic: str) -> None:
    samples, started_ms = samples_for(client) * 20, int(time.time() * 1000)
    client.produce(bootstrap, topic, samples, idempotent=True, codec=codec)
    same(samples, client.read(bootstrap, topic, len(samples)), started_ms)


def test_reading_starts_inside_a_compressed_batch(client: Client, bootstrap: str, topic: str) -> None:
    samples, started_ms = AS_TEXT, int(time.time() * 1000)
    client.produce(bootstrap, topic, samples, codec="gzip")
    same(samples[13:], client.read(bootstrap, topic, 7, start_offset=13), started_ms, start_offset=13)


def test_other_partition(client: Client, bootstrap: str, make_topic: MakeTopic) -> None:
    topic, started_ms = make_topic(partitions=3), int(time.time() * 1000)
    client.produce(bootstrap, topic, AS_TEXT, partition=2)
    same(AS_TEXT, client.read(bootstrap, topic, len(AS_TEXT), partition=2), started_ms)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_records_of_a_megabyte(client: Client, codec: str, bootstrap: str, make_topic: MakeTopic) -> None:
    topic, started_ms = make_topic(max_message_bytes=2_000_000), int(time.time() * 1000)
    samples = tuple(Sample(key=b"k", value=bytes([65 + n]) * 1_000_000) for n in range(3))
    client.produce(bootstrap, topic, samples, codec=codec)
    same(samples, client.read(bootstrap, topic, len(samples)), started_ms)


def test_log_append_time(client: Client, bootstrap: str, make_topic: MakeTopic) -> None:
    topic, started_ms = make_topic(message_timestamp_type="LogAppendTime"), int(time.time() * 1000)
    old = () if client.text_only else (Sample(key=b"k", value=b"old", timestamp_ms=MOMENT_MS),)
    client.produce(bootstrap, topic, AS_TEXT + old)
    for each in client.read(bootstrap, topic, len(AS_TEXT + old)):
        assert started_ms <= each.timestamp_ms <= time.time() * 1000 + 1


@pytest.mark.parametrize("codec", CODECS[1:])
def test_topic_that_compresses_by_itself(
    client: Client, codec: str, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic, started_ms = make_topic(compression_type=codec), int(time.time() * 1000)
    client.produce(bootstrap, topic, AS_TEXT, codec="none")
    same(AS_TEXT, client.read(bootstrap, topic, len(AS_TEXT)), started_ms)
