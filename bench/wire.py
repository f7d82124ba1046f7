"""The codec beside kio and kafka-python: encode and decode of Produce, Fetch and Metadata, in one run.

    python bench/wire.py [--json]

The three take turns in short rounds, so that a busy machine slows them alike; the figure is each one's best
round. All encode the same message to one `bytes`, and all decode the same `bytes`.
"""

import io
import json
import sys
import timeit
from collections.abc import Callable
from typing import Any

from ottla.wire.message import Message
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse

ROUNDS = 15
ROUND_SECONDS = 0.02
RECORDS = bytes(range(256)) * 64


def produce_request() -> ProduceRequest:
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData(index=3, records=RECORDS)
    return ProduceRequest(
        acks=-1, timeout_ms=30000, topic_data=[topic(name="orders-by-customer", partition_data=[partition])]
    )


def produce_response() -> ProduceResponse:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse(index=3, base_offset=1234567, log_start_offset=0)
    return ProduceResponse(responses=[topic(name="orders-by-customer", partition_responses=[partition])])


def fetch_request(partitions: int) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    wanted = [
        topic.FetchPartition(partition=p, fetch_offset=10_000 + p, partition_max_bytes=1 << 20)
        for p in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=[topic(topic="orders-by-customer", partitions=wanted)]
    )


def fetch_response(partitions: int) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse
    found = [
        topic.PartitionData(
            partition_index=p,
            high_watermark=20_000,
            last_stable_offset=20_000,
            log_start_offset=0,
            aborted_transactions=[],
            records=RECORDS,
        )
        for p in range(partitions)
    ]
    return FetchResponse(session_id=77, responses=[topic(topic="orders-by-customer", partitions=found)])


def metadata_response() -> MetadataResponse:
    topic = MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition
    return MetadataResponse(
        cluster_id="b1Zk0tBTSmyFtuMNjDMSXg",
        controller_id=1,
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=b, host=f"broker-{b}.example.org", port=9092, rack="a"
            )
            for b in range(3)
        ],
        topics=[
            topic(
                name=f"topic-number-{t}",
                topic_id=bytes([t + 1]) * 16,
                partitions=[
                    partition(
                        partition_index=p,
                        leader_id=p % 3,
                        leader_epoch=7,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                    )
                    for p in range(12)
                ],
            )
            for t in range(10)
        ],
    )


CASES: tuple[tuple[str, Message, int], ...] = (
    ("Produce request v9, 1 partition, 16 kB", produce_request(), 9),
    ("Produce response v9, 1 partition", produce_response(), 9),
    ("Fetch request v12, 1 partition", fetch_request(1), 12),
    ("Fetch request v12, 10 partitions", fetch_request(10), 12),
    ("Fetch response v12, 1 partition, 16 kB", fetch_response(1), 12),
    ("Fetch response v12, 10 partitions, 16 kB each", fetch_response(10), 12),
    ("Metadata response v12, 120 partitions", metadata_response(), 12),
)

Call = Callable[[], object]


def ottla_calls(message: Message, version: int, data: bytes) -> dict[str, Call]:
    cls = type(message)
    decode, size = cls.decoder(version), len(data)
    encode = cls.encoder(version)

    def encoded() -> bytes:
        out = bytearray()
        encode(message, out)
        return bytes(out)

    assert encoded() == data
    return {"encode": encoded, "decode": lambda: decode(data, 0, size)}


def kio_calls(message: Message, version: int, data: bytes) -> dict[str, Call]:
    from kio.index import load_payload_module
    from kio.serial import entity_reader, entity_writer
    from kio.static.constants import EntityType

    kind: Any = EntityType.request if type(message).__name__.endswith("Request") else EntityType.response
    cls = getattr(load_payload_module(message.api_key or 0, version, kind), type(message).__name__)
    read, write = entity_reader(cls), entity_writer(cls)
    entity, _ = read(data, 0)

    def encoded() -> bytes:
        with io.BytesIO() as out:
            write(out, entity)
            return out.getvalue()

    assert encoded() == data
    return {"encode": encoded, "decode": lambda: read(data, 0)}


def kafka_python_calls(message: Message, version: int, data: bytes) -> dict[str, Call]:
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer

    name = type(message).__name__
    rooms = (kafka.protocol.producer, kafka.protocol.consumer, kafka.protocol.metadata)
    cls: Any = next(getattr(room, name) for room in rooms if hasattr(room, name))
    entity = cls.decode(data, version=version)
    entity._header = None  # Only its constructor sets it, and encode asks for it.
    assert bytes(entity.encode(version=version)) == data
    return {
        "encode": lambda: entity.encode(version=version),
        "decode": lambda: cls.decode(data, version=version),
    }


CODECS = {"ottla": ottla_calls, "kio": kio_calls, "kafka-python": kafka_python_calls}


def best_of_turns(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """The best time of each call in microseconds, a round of each in turn."""
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    loops = {name: max(1, int(ROUND_SECONDS / (timer.timeit(20) / 20))) for name, timer in timers.items()}
    best = dict.fromkeys(timers, float("inf"))
    for _ in range(rounds):
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(loops[name]) / loops[name] * 1e6)
    return best


def run(rounds: int = ROUNDS) -> dict[str, dict[str, dict[str, float]]]:
    """Microseconds by case, by "encode" or "decode", by codec."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for title, message, version in CASES:
        data = message.encode(version)
        calls = {name: codec(message, version, data) for name, codec in CODECS.items()}
        figures[title] = {
            step: best_of_turns({name: each[step] for name, each in calls.items()}, rounds)
            for step in ("encode", "decode")
        }
    return figures


def main() -> None:
    figures = run()
    if "--json" in sys.argv:
        print(json.dumps(figures, indent=2))
        return
    print(f"{'µs':<48}{'':<8}" + "".join(f"{name:>14}" for name in CODECS))
    for title, steps in figures.items():
        for step, times in steps.items():
            print(f"{title:<48}{step:<8}" + "".join(f"{times[name]:>14.2f}" for name in CODECS))


if __name__ == "__main__":
    main()
