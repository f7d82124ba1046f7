"""A load generator over plain sockets: prebuilt frames out, bytes counted in.

It costs a few microseconds a request, so that on two cores the server, and not the client, is what is measured.
Both servers get the very same bytes.
"""

import select
import struct
import time
from dataclasses import dataclass

from bench import frames
from ottla.wire.batch import scan
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsResponse
from ottla.wire.messages.fetch import FetchResponse
from ottla.wire.messages.list_offsets import ListOffsetsResponse
from ottla.wire.messages.produce import ProduceResponse
from tests.peers.connection import Connection
from tests.peers.deadline import eventually
from tests.peers.server import Server

RECEIVE_BYTES = 1 << 18


@dataclass(frozen=True)
class Load:
    """What a piece of work took: elapsed time, and the server's CPU time in it."""

    seconds: float
    cpu_seconds: float


def make_topic(server: Server, topic: str, partitions: int = 1) -> None:
    """Create a topic, and wait until it can be written to."""
    with Connection(server.port, seconds_max=120) as connection:
        answer = connection.ask(
            frames.create_topic_request(topic, partitions), CreateTopicsResponse, frames.CREATE_TOPICS_VERSION
        )
        assert answer.topics[0].error_code == ErrorCode.NONE, answer
        eventually(lambda: end_offset(connection, topic, partitions - 1) is not None, seconds_max=60)


def end_offset(connection: Connection, topic: str, partition: int = 0) -> int | None:
    """Where the partition ends, or None while it has no leader here."""
    answer = connection.ask(
        frames.end_offset_request(topic, partition), ListOffsetsResponse, frames.LIST_OFFSETS_VERSION
    )
    found = answer.topics[0].partitions[0]
    return found.offset if found.error_code == ErrorCode.NONE else None


def produce(
    server: Server,
    topic: str,
    *,
    requests: int,
    window: int,
    partition: int = 0,
    records: int = 1,
    size_bytes: int = 100,
    acks: int = 1,
    connections: int = 1,
) -> Load:
    """Pipeline so many requests, at most `window` unanswered on each connection; check that all arrived."""
    frame = frames.produce_frame(topic, partition, records=records, size_bytes=size_bytes, acks=acks)
    lines = [Connection(server.port, seconds_max=120) for _ in range(connections)]
    try:
        before = end_offset(lines[0], topic, partition)
        assert before is not None
        answer_size = _first_answer(lines[0], frame)
        each = requests // connections
        cpu, began = server.cpu_seconds(), time.perf_counter()
        _pump(lines, frame, answer_size, each, window)
        load = Load(time.perf_counter() - began, server.cpu_seconds() - cpu)
        arrived = (end_offset(lines[0], topic, partition) or 0) - before
        assert arrived == (each * connections + 1) * records, f"{arrived} records arrived"
        return load
    finally:
        for line in lines:
            line.close()


def _first_answer(line: Connection, frame: bytes) -> int:
    """Send one request, check its answer, and return the size of the answer with its length field."""
    line.send_bytes(frame)
    answer = line.receive_frame()
    decoded = ProduceResponse.decode(answer[5:], frames.PRODUCE_VERSION)  # correlation id, no tags
    assert decoded.responses[0].partition_responses[0].error_code == ErrorCode.NONE, decoded
    return len(answer) + 4


def _pump(lines: list[Connection], frame: bytes, answer_size: int, requests: int, window: int) -> None:
    burst = max(1, window // 4)
    bursts = frame * burst
    poller, by_number, sent, received = select.poll(), {}, {}, {}
    for line in lines:
        number = line.socket.fileno()
        by_number[number], sent[number], received[number] = line.socket, 0, 0
        poller.register(number, select.POLLIN)
    open_lines = len(lines)
    while open_lines:
        for number, stream in by_number.items():
            while (
                sent[number] < requests and sent[number] - received[number] // answer_size <= window - burst
            ):
                count = min(burst, requests - sent[number])
                stream.sendall(bursts if count == burst else frame * count)
                sent[number] += count
        for number, _ in poller.poll(30_000):
            received[number] += len(by_number[number].recv(RECEIVE_BYTES))
            if received[number] >= requests * answer_size:
                poller.unregister(number)
                open_lines -= 1


def fetch(
    server: Server, topic: str, *, start_offset: int, stop_offset: int, size_bytes_max: int = 1 << 20
) -> Load:
    """Read a range of one partition, one request after the other, and check that the batches follow each other."""
    with Connection(server.port, seconds_max=120) as line:
        offset, cpu, began = start_offset, server.cpu_seconds(), time.perf_counter()
        while offset < stop_offset:
            request = frames.fetch_request(topic, 0, offset, size_bytes_max)
            answer = line.ask(request, FetchResponse, frames.FETCH_VERSION)
            partition = answer.responses[0].partitions[0]
            assert partition.error_code == ErrorCode.NONE, partition
            for _, batch in scan(partition.records or b""):
                offset = batch.end_offset
        return Load(time.perf_counter() - began, server.cpu_seconds() - cpu)


def until_acknowledged(server: Server, topic: str, seconds_max: float = 120) -> None:
    """Send one record again and again, from before the server listens until it is acknowledged."""
    frame = frames.produce_frame(topic, 0, records=1, size_bytes=100, acks=1)

    def acknowledged() -> bool:
        try:
            with Connection(server.port, seconds_max=10) as line:
                line.send_bytes(frame)
                answer = ProduceResponse.decode(line.receive_frame()[5:], frames.PRODUCE_VERSION)
                return bool(answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE)
        except (OSError, struct.error):
            return False

    deadline = time.perf_counter() + seconds_max
    while not acknowledged():
        assert time.perf_counter() < deadline, f"no acknowledgement within {seconds_max} s"
        time.sleep(0.002)
