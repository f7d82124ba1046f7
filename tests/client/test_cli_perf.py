"""`ottla perf` against real servers: that it measures what it says, not how fast that is."""

import json
import os
import pty
import signal
from pathlib import Path

import pytest

from ottla.cli.error import FAILED, INTERRUPTED
from tests.client.command_line import CommandLine
from tests.client.readback import end_offset, read
from tests.peers.deadline import eventually
from tests.peers.server import Server


@pytest.fixture
def ottla(server: Server, tmp_path: Path) -> CommandLine:
    return CommandLine(server.bootstrap, tmp_path)


def test_producing(ottla: CommandLine, server: Server, topic: str) -> None:
    options = ("-n", "2000", "-s", "1k", "--key-size", "10", "-z", "lz4")
    found = ottla("perf", "produce", topic, *options, "-o", "json").json
    assert found["records"] == 2000 and found["bytes"] == 2000 * 1034
    assert found["records_per_second"] == pytest.approx(2000 / found["seconds"], rel=0.05)
    latency = found["latency"]
    assert 0 < latency["p50_ms"] <= latency["p99_ms"] <= latency["max_ms"]
    records = read(server.bootstrap, topic)
    assert len(records) == 2000
    assert {(len(each.value or b""), len(each.key or b"")) for each in records} == {(1024, 10)}


def test_a_rate(ottla: CommandLine, topic: str) -> None:
    found = ottla("perf", "produce", topic, "-n", "100", "--rate", "200", "--acks", "1", "-o", "json").json
    assert found["records"] == 100 and 0.4 < found["seconds"]


def test_consuming(ottla: CommandLine, topic: str) -> None:
    ottla("perf", "produce", topic, "-n", "3000")
    found = ottla("perf", "consume", topic, "-o", "json").json
    assert found["records"] == 3000 and found["bytes"] == 300_000
    assert ottla("perf", "consume", topic, "--from", "2000", "-o", "json").json["records"] == 1000
    assert (
        ottla("perf", "consume", topic, "-g", f"{topic}-g", "-n", "3000", "-o", "json").json["records"]
        == 3000
    )
    lines = ottla("perf", "consume", topic, "-n", "100").lines
    assert [line.split()[0] for line in lines] == ["records", "throughput"]


def test_latency(ottla: CommandLine, server: Server, topic: str) -> None:
    found = ottla("perf", "latency", topic, "-n", "50", "-s", "10", "-o", "json").json
    assert found["records"] == 50
    assert 0 < found["acknowledged"]["p50_ms"]
    assert 0 < found["latency"]["p50_ms"] <= found["latency"]["max_ms"]
    # Those that warmed up were written, and not counted.
    assert end_offset(server.bootstrap, topic) == 70


def test_what_cannot_be_measured(ottla: CommandLine, topic: str) -> None:
    assert ottla.run("perf", "consume", f"{topic}-gone").code == FAILED
    assert ottla.run("perf", "latency", f"{topic}-gone").code == FAILED


def test_a_bar_on_a_terminal_and_the_result_on_stdout(ottla: CommandLine, topic: str) -> None:
    ours, theirs = pty.openpty()
    process = ottla.start("perf", "produce", topic, "-n", "300", "--rate", "300", stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # the other end of a terminal is closed
                break
            if not data:
                break
            shown += data
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert process.returncode == 0
    assert b"\r\x1b[K[#" in shown and b"records/s" in shown
    assert shown.endswith(b"\r\x1b[K")
    assert out.startswith(b"records     300 in ")


def test_an_interrupt_ends_it_with_what_was_measured(ottla: CommandLine, topic: str) -> None:
    process = ottla.start("perf", "produce", topic, "-n", "1000000", "--rate", "500", "-o", "json")
    try:
        eventually(lambda: end_offset(ottla.environment["OTTLA_BOOTSTRAP"], topic) > 10)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == INTERRUPTED and err == b""
        assert 10 < json.loads(out)["records"] < 1_000_000
    finally:
        process.kill()
        process.communicate()
