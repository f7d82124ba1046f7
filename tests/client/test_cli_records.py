"""`ottla produce` and `ottla consume` against real servers."""

import json
import os
import pty
import signal
import struct
import subprocess
import threading
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.cli.consume import reading
from ottla.cli.error import CUT_OFF, FAILED, INTERRUPTED, MISUSED, TERMINATED
from tests.client.command_line import COMMAND, CommandLine
from tests.client.readback import Read, read, values
from tests.compat.chosen import MakeTopic
from tests.peers.deadline import eventually
from tests.peers.server import Server


@pytest.fixture
def ottla(server: Server, tmp_path: Path) -> CommandLine:
    return CommandLine(server.bootstrap, tmp_path)


def test_lines_with_keys(ottla: CommandLine, server: Server, topic: str) -> None:
    ottla("produce", topic, "-K", ":", "-H", "a=1", "-H", "b=x=y", "-k", "default", stdin="k1:v1\nv2\nk3:\n")
    found = read(server.bootstrap, topic)
    headers = (("a", b"1"), ("b", b"x=y"))
    assert [(each.key, each.value, each.headers) for each in found] == [
        (b"k1", b"v1", headers),
        (b"default", b"v2", headers),
        (b"k3", b"", headers),
    ]


def test_values_partitions_times_and_reports(
    ottla: CommandLine, server: Server, make_topic: MakeTopic
) -> None:
    topic = make_topic(3)
    moment = ["--timestamp", "2026-10-09T08:00:00Z"]
    told = ottla("produce", topic, "one", "two", "-p", "2", "-v", *moment, "-o", "json").jsons
    at = 1_791_532_800_000
    assert told == [{"topic": topic, "partition": 2, "offset": n, "timestamp": at} for n in (0, 1)]
    assert read(server.bootstrap, topic, 2) == [
        Read(n, at, None, v, ()) for n, v in enumerate((b"one", b"two"))
    ]
    assert ottla("produce", topic, "three", "-p", "2", "-v").out == f"{topic}[2]@2\n"
    refused = ottla.run("produce", topic, "x", "-p", "9", "-X", "max.block.ms=400")
    assert refused.code == FAILED and "9" in refused.err
    at = monotonic()
    refused = ottla.run("produce", topic, "x", "-p", "17")
    assert refused.code == FAILED
    assert refused.err == f"error: topic {topic} has no partition 17\nhint: it has 3, counted from 0\n"
    assert monotonic() - at < 10, "it waited for somebody to add the partition"


def test_a_place_behind_the_end_is_said(ottla: CommandLine, topic: str) -> None:
    ottla("produce", topic, "v")
    read = ottla("consume", topic, "--from", "1000", "-e")
    assert (read.out, read.err) == ("", f"{topic}-0 ends at 1, before 1000: it is read from its end\n")
    assert ottla("consume", topic, "--from", "1", "-e").err == ""


@pytest.mark.parametrize(
    ("codec", "acks"),
    [("none", "0"), ("none", "1"), ("gzip", "all"), ("snappy", "1"), ("lz4", "0"), ("zstd", "all")],
)
def test_codecs_and_acks(codec: str, acks: str, ottla: CommandLine, server: Server, topic: str) -> None:
    ottla("produce", topic, "-z", codec, "--acks", acks, stdin="".join(f"{n}\n" for n in range(100)))
    # With acks=0 nobody has said that they are there yet.
    eventually(lambda: values(server.bootstrap, topic) == [b"%d" % n for n in range(100)])


def test_formats_in(ottla: CommandLine, server: Server, topic: str, tmp_path: Path) -> None:
    ottla("produce", topic, "-f", "hex", "-K", " ", stdin="00ff 0102\n")
    ottla("produce", topic, "-f", "base64", stdin="/w==\n")
    line = {
        "key": "k",
        "value": {"n": 1},
        "headers": {"h": "x"},
        "timestamp": 5,
        "offset": 99,
        "topic": "other",
    }
    ottla("produce", topic, "-f", "json", stdin=json.dumps(line) + '\n{"key": "k", "value": null}\n')
    ottla("produce", topic, "-f", "%K{big16}%k%v;", stdin=struct.pack(">H", 2) + b"k2v2;")
    (tmp_path / "whole").write_bytes(b"a\nb\n")
    (tmp_path / "lines").write_bytes(b"c|d")
    ottla("produce", topic, "--file", "whole", "--whole")
    ottla("produce", topic, "--file", "lines", "--file", "lines", "-D", "|")
    ottla("produce", topic, "-Z", "-K", ":", stdin="gone:\n")
    found = read(server.bootstrap, topic)
    assert [(each.key, each.value) for each in found] == [
        (b"\x00\xff", b"\x01\x02"),
        (None, b"\xff"),
        (b"k", b'{"n":1}'),
        (b"k", None),
        (b"k2", b"v2"),
        (None, b"a\nb\n"),
        (None, b"c"),
        (None, b"d"),
        (None, b"c"),
        (None, b"d"),
        (b"gone", None),
    ]
    assert found[2].timestamp == 5 and found[2].headers == (("h", b"x"),)


def test_bad_input_is_named_and_what_was_before_it_is_kept(
    ottla: CommandLine, server: Server, topic: str
) -> None:
    outcome = ottla.run("produce", topic, "-f", "hex", stdin="00\n01\nxx\n02\n")
    assert outcome.code == FAILED
    assert outcome.err.splitlines() == [
        "error: record 3: 'xx' is not a row of hexadecimal digits, two for a byte",
        "hint: the records before it were written",
    ]
    assert values(server.bootstrap, topic) == [b"\0", b"\1"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("-f", "xml"),
        ("-f", "%z"),
        ("-f", "%k%v"),
        ("-f", "json", "-K", ":"),
        ("-f", "%v\\n", "--whole"),
        ("-K", ""),
        ("--timestamp", "later"),
        ("-H", "no-value"),
        ("x", "--file", "y"),
        ("--acks", "2"),
        ("--rate", "0"),
    ],
)
def test_produce_misused(arguments: tuple[str, ...], ottla: CommandLine) -> None:
    outcome = ottla.run("produce", "nowhere", *arguments)
    assert outcome.code == MISUSED, outcome
    assert outcome.err.startswith("error: ")


def test_a_missing_file(ottla: CommandLine, topic: str) -> None:
    outcome = ottla.run("produce", topic, "--file", "nowhere")
    assert outcome.code == FAILED
    assert outcome.err == "error: nowhere: No such file or directory\n"


def test_records_that_are_refused(ottla: CommandLine, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes=200)
    outcome = ottla.run("produce", topic, "x" * 500)
    assert outcome.code == FAILED
    assert outcome.err.startswith("error: 1 of 1 records were not written: ")
    assert "hint: raise max.message.bytes" in outcome.err


def test_one_transaction(ottla: CommandLine, server: Server, topic: str) -> None:
    ottla("produce", topic, "-X", f"transactional.id={topic}", "a", "b")
    # Apache Kafka answers before its markers are written.
    eventually(lambda: values(server.bootstrap, topic, committed=True) == [b"a", b"b"])
    bad = ottla.run("produce", topic, "-f", "hex", "-X", f"transactional.id={topic}", stdin="00\nxx\n")
    assert bad.code == FAILED and "hint: " not in bad.err
    assert values(server.bootstrap, topic, committed=True) == [b"a", b"b"]
    # Reading stops where the transactions do, though nothing that is shown lies there.
    assert ottla("consume", topic, "-e", "--read-committed").lines == ["a", "b"]


def test_a_rate_is_kept(ottla: CommandLine, topic: str) -> None:
    told = ottla("produce", topic, "--rate", "50", "-v", "-o", "json", stdin="x\n" * 26).jsons
    assert told[-1]["timestamp"] - told[0]["timestamp"] >= 350


@pytest.fixture
def filled(ottla: CommandLine, make_topic: MakeTopic) -> str:
    """Two partitions of ten records, a minute apart, and what is not text in one of them."""
    topic = make_topic(2)
    for partition in (0, 1):
        lines = (
            {
                "key": f"k{n}",
                "value": f"{partition}-{n}",
                "timestamp": 1_760_000_000_000 + n * 60_000,
                "headers": {"n": n},
            }
            for n in range(10)
        )
        stdin = "".join(json.dumps(line) + "\n" for line in lines)
        ottla("produce", topic, "-f", "json", "-p", str(partition), stdin=stdin)
    return topic


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), range(10)),
        (("--from", "7"), range(7, 10)),
        (("--from", "-2"), range(8, 10)),
        (("--from", "+2", "--to", "4"), range(2, 4)),
        (("--from", "@1760000120000", "--to", "@2025-10-09T08:57:20Z"), range(2, 4)),
        (("--from", "@now"), range(0)),
        (("--from", "end"), range(0)),
        (("--to", "start"), range(0)),
        (("-n", "3"), range(3)),
    ],
)
def test_from_here_to_there(
    arguments: tuple[str, ...], expected: range, ottla: CommandLine, filled: str
) -> None:
    end = () if "--to" in arguments else ("-e",)
    lines = ottla("consume", filled, "-p", "1", *arguments, *end).lines
    assert lines == [f"1-{n}" for n in expected]


def test_all_partitions(ottla: CommandLine, filled: str) -> None:
    lines = ottla("consume", filled, "-e").lines
    assert sorted(lines) == sorted(f"{p}-{n}" for p in (0, 1) for n in range(10))


def test_formats_out(ottla: CommandLine, filled: str) -> None:
    one = ("consume", filled, "-p", "0", "--from", "3", "-n", "1")
    assert ottla(*one, "--print", "partition,offset,key,value,headers").out == "0\t3\tk3\t0-3\tn=3\n"
    assert ottla(*one, "-K", " => ", "-D", ";").out == "k3 => 0-3;"
    assert ottla(*one, "-f", "hex").out == "302d33\n"
    assert ottla(*one, "-f", "%t/%p@%o %d{iso} %k=%v{base64}%h{ %k:%v}").out == (
        f"{filled}/0@3 2025-10-09T08:56:20.000Z k3=MC0z n:3"
    )
    expected = {
        "topic": filled, "partition": 0, "offset": 3, "timestamp": 1760000180000, "key": "k3", "value": "0-3",
        "headers": [{"key": "n", "value": "3"}],
    }  # fmt: skip
    assert ottla(*one, "-f", "json").json == expected
    assert ottla(*one, "-o", "json").json == expected
    assert ottla(*one, "-o", "yaml").lines[:3] == [f"- topic: {filled}", "  partition: 0", "  offset: 3"]


def test_bytes_come_out_as_they_went_in(ottla: CommandLine, topic: str) -> None:
    raw = bytes(range(256))
    ottla("produce", topic, "--whole", stdin=raw)
    assert ottla("consume", topic, "-e", "-D", "").bytes == raw


def test_a_copy_is_the_same(ottla: CommandLine, server: Server, make_topic: MakeTopic, filled: str) -> None:
    copy = make_topic(2, "-copy")
    dumped = ottla("consume", filled, "-e", "-f", "json").bytes
    ottla("produce", copy, "-f", "json", "--keep-partitions", stdin=dumped)
    for partition in (0, 1):
        assert read(server.bootstrap, copy, partition) == read(server.bootstrap, filled, partition)


def test_topics_by_pattern(ottla: CommandLine, make_topic: MakeTopic) -> None:
    one, two, other = make_topic(1, "-red"), make_topic(1, "-rot"), make_topic(1, "-blue")
    for each in (one, two, other):
        ottla("produce", each, each)
    pattern = one.removesuffix("red").replace(".", r"\.") + "r.*"
    assert sorted(ottla("consume", "-r", pattern, "-e").lines) == sorted([one, two])
    assert ottla.run("consume", "-r", "no-such-.*", "-e").code == FAILED
    assert ottla.run("consume", "-r", "(", "-e").code == MISUSED


def test_topics_that_appear_while_others_are_followed(
    ottla: CommandLine, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch, bootstrap: str
) -> None:
    one = make_topic(1, "-one")
    ottla("produce", one, "first")
    begun = threading.Event()
    spans_of = reading.spans_of

    async def watched(*arguments: Any) -> Any:
        found = await spans_of(*arguments)
        begun.set()
        return found

    monkeypatch.setattr(reading, "spans_of", watched)
    monkeypatch.setattr(reading, "GROWTH_SECONDS", 0.1)

    def go_on() -> None:
        assert begun.wait(20)
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(make_topic(1, "-two"), "second")
        producer.flush(20)

    later = threading.Thread(target=go_on)
    later.start()
    try:
        lines = ottla("consume", "-r", one.removesuffix("one").replace(".", r"\.") + ".*", "-n", "2").lines
    finally:
        later.join()
    assert lines == ["first", "second"]


def test_a_group_goes_on_where_it_stopped(ottla: CommandLine, filled: str) -> None:
    group = f"{filled}-group"
    first = ottla("consume", filled, "-g", group, "-n", "7").lines
    kept = ottla("consume", filled, "-g", group, "-e", "--no-commit").lines
    rest = ottla("consume", filled, "-g", group, "-e").lines
    assert len(first) == 7
    assert sorted(kept) == sorted(rest)
    assert sorted(first + rest) == sorted(f"{p}-{n}" for p in (0, 1) for n in range(10))
    assert ottla("consume", filled, "-g", group, "-e").lines == []
    assert ottla("consume", filled, "-g", f"{group}-late", "--from", "end", "-e").lines == []


def test_silence_ends_it(ottla: CommandLine, filled: str) -> None:
    assert len(ottla("consume", filled, "--idle", "1s").lines) == 20


@pytest.mark.parametrize(
    "arguments",
    [
        ("-f", "xml"),
        ("-f", "%z"),
        ("-f", "json", "-K", ":"),
        ("--print", "colour"),
        ("--print", "key", "-K", ":"),
        ("--from", "somewhere"),
        ("--from", "stored"),
        ("-e", "--to", "5"),
        ("--no-commit",),
        ("-g", "g", "-p", "0"),
        ("-g", "g", "--from", "7"),
        ("-g", "g", "--to", "7"),
        ("-n", "0"),
        ("-p", "1-"),
    ],
)
def test_consume_misused(arguments: tuple[str, ...], ottla: CommandLine) -> None:
    outcome = ottla.run("consume", "nowhere", *arguments)
    assert outcome.code == MISUSED, outcome
    assert outcome.err.startswith("error: ")


def test_topics_and_partitions_that_are_not_there(ottla: CommandLine, topic: str) -> None:
    missing = ottla.run("consume", f"{topic}-gone", "-e")
    assert missing.code == FAILED and "hint: create the topic" in missing.err
    assert "has no partition 7" in ottla.run("consume", topic, "-p", "7", "-e").err


def test_following(ottla: CommandLine, topic: str) -> None:
    """A record comes out as soon as it is written, and an interrupt is the quiet end of it."""
    process = ottla.start("consume", topic)
    try:
        assert process.stdout is not None
        for value in ("first", "second"):
            ottla("produce", topic, value)
            assert process.stdout.readline() == value.encode() + b"\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (INTERRUPTED, b"", b"")
    finally:
        process.kill()
        process.communicate()


def test_an_interrupt_while_nobody_types(ottla: CommandLine, topic: str) -> None:
    process = ottla.start("produce", topic, "-v")
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"typed\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{topic}[0]@0\n".encode()
        process.send_signal(signal.SIGINT)
        # Its input stays open, and it ends all the same.
        assert process.wait(20) == INTERRUPTED
        assert process.stderr is not None and process.stderr.read() == b""
    finally:
        process.kill()
        process.communicate()


def test_an_interrupted_member_has_committed_what_it_printed(ottla: CommandLine, filled: str) -> None:
    group = f"{filled}-cut"
    process = ottla.start("consume", filled, "-g", group)
    try:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(20)]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == INTERRUPTED
        assert len(set(printed)) == 20
    finally:
        process.kill()
        process.communicate()
    assert ottla("consume", filled, "-g", group, "-e").lines == []


def test_a_reader_that_has_enough(ottla: CommandLine, filled: str) -> None:
    """`ottla consume | head -1`, with records to come and without."""
    for arguments in (("consume", filled), ("consume", filled, "-e", "-f", "%v" * 10_000)):
        process = ottla.start(*arguments)
        head = subprocess.run(["head", "-c", "1"], stdin=process.stdout, capture_output=True, check=True)
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        try:
            assert len(head.stdout) == 1
            assert process.wait(20) == CUT_OFF
            assert process.stderr.read() == b""
        finally:
            process.kill()
            process.wait()


def test_a_pipe_of_two(ottla: CommandLine, server: Server, make_topic: MakeTopic, filled: str) -> None:
    copy = make_topic(1, "-copy")
    reader = ottla.start("consume", filled, "-p", "0", "-e", "-K", ":")
    writer = subprocess.run(
        [*COMMAND, "produce", copy, "-K", ":"],
        stdin=reader.stdout,
        env=ottla.environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert reader.wait(20) == 0 and writer.stderr == b""
    assert values(server.bootstrap, copy) == [b"0-%d" % n for n in range(10)]


def test_who_is_told_to_end_leaves_in_order(ottla: CommandLine, filled: str) -> None:
    """SIGTERM, as a service manager sends it: what was printed is committed, and the group is left at once."""
    group = f"{filled}-told"
    process = ottla.start("consume", filled, "-g", group)
    try:
        assert process.stdout is not None
        for _ in range(20):
            process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == TERMINATED
    finally:
        process.kill()
        process.communicate()
    (found,) = ottla("group", "describe", group, "-o", "json").json
    assert found["state"] == "Empty"
    assert [each["lag"] for each in found["offsets"]] == [0, 0]


def test_reports_that_nobody_reads(ottla: CommandLine, topic: str) -> None:
    """`ottla produce -v | head -1`, with lines to come and the input still open."""
    process = ottla.start("produce", topic, "-v")
    try:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"two\n")
        process.stdin.flush()
        assert process.wait(20) == CUT_OFF
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()


def test_somebody_who_looks_on_sees_a_bar(ottla: CommandLine, topic: str, tmp_path: Path) -> None:
    """On a terminal, while a file is sent and while one is filled; and what was asked for is not mixed with it."""
    (tmp_path / "lines").write_text("".join(f"{n}\n" for n in range(2000)))
    screen = on_terminal(ottla, "produce", topic, "--file", "lines")
    assert "records/s" in screen and screen.endswith("\r\x1b[K")
    with (tmp_path / "copy").open("wb") as copy:
        screen = on_terminal(ottla, "consume", topic, "-e", stdout=copy)
    assert "\r\x1b[K[#" in screen and screen.endswith("\r\x1b[K")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "lines").read_bytes()
    # Nothing is drawn where records are read as they come.
    assert on_terminal(ottla, "consume", topic, "-n", "1", stdout=subprocess.DEVNULL) == ""


def on_terminal(ottla: CommandLine, *arguments: str, **options: Any) -> str:
    """What a command shows to somebody at a terminal, on stderr."""
    ours, theirs = pty.openpty()
    process = ottla.start(*arguments, stderr=theirs, **options)
    os.close(theirs)
    shown = b""
    try:
        while data := _read(ours):
            shown += data
        assert process.wait(30) == 0, shown
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody is at the other end any more
        return b""
