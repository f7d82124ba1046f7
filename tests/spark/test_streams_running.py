"""Apps on a broker: run, start, stop, go on, and refuse what has changed."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from ottla.client.admin.configs import Resource
from ottla.client.blocking import Admin, Consumer, Producer
from ottla.client.record import TopicPartition
from ottla.spark import SparkFailure
from ottla.streams import App, TopologyChanged
from ottla.testing import Broker

SECONDS_MAX = 100
COMMITTED = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}


@dataclass
class Order:
    user: str
    total: int


def wait(what: Callable[[], bool]) -> None:
    until = monotonic() + SECONDS_MAX
    while not what():
        assert monotonic() < until, "waited too long"
        sleep(0.1)


def produce(broker: Broker, topic: str, *values: str) -> None:
    with Producer(broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value.encode())


def read(broker: Broker, topic: str) -> list[tuple[Any, Any]]:
    """Everything in a topic that a reader of committed records sees."""
    with Consumer(broker.bootstrap, **COMMITTED) as consumer:
        places = [TopicPartition(topic, each) for each in consumer.partitions_for(topic)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found = []
        while any(consumer.position(each) < ends[each] for each in places):
            found += [(each.key, each.value) for each in consumer.poll(timeout=0.2)]
        return found


def number(data: bytes) -> int:
    return int.from_bytes(data, signed=True)


def word_count(broker: Broker, topic: str, checkpoint: Path) -> App:
    app = App(topic, broker.bootstrap, checkpoint=str(checkpoint))
    words = app.stream(topic).flat_map_values(lambda line: line.split())
    words.group_by(lambda word: word).count(name="per-word").to(f"{topic}-counts")
    return app


def test_an_app_goes_on_where_it_ended(spark: Any, broker: Broker, topic_name: str, tmp_path: Path) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(topic_name, partitions=2)
    produce(broker, topic_name, "a b", "a")
    app = word_count(broker, topic_name, tmp_path)
    found = app.run()
    assert sorted((each.key, each.value) for each in found) == [("a", 1), ("a", 2), ("b", 1)]
    assert {each.topic for each in found} == {f"{topic_name}-counts"}
    assert app.run() == []

    produce(broker, topic_name, "b c")
    running = word_count(broker, topic_name, tmp_path).start(block=False)
    counts = f"{topic_name}-counts"
    wait(lambda: len(read(broker, counts)) >= 5)
    wait(lambda: " lag 0 " in running.status)
    assert running.is_active and not running.wait(0.01)
    running.stop()
    assert running.wait(SECONDS_MAX)
    found = sorted((key.decode(), number(value)) for key, value in read(broker, counts))
    assert found == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)]

    with Admin(broker.bootstrap) as admin:
        # The topic of a table is compacted, and the group shows how far the app is.
        (config,) = admin.configs.describe(Resource.topic(counts)).values()
        assert config["cleanup.policy"].value == "compact"
        offsets = admin.offsets.committed(topic_name)
        assert sum(each.offset for each in offsets.values()) == 3

    changed = App(topic_name, broker.bootstrap, checkpoint=str(tmp_path))
    grouped = (
        changed.stream(topic_name).flat_map_values(lambda line: line.split()).group_by(lambda word: word)
    )
    grouped.aggregate(float, lambda word, total: total + 1, name="per-word").to(counts)
    with pytest.raises(TopologyChanged, match=r"per-word has another value: bigint then, double now"):
        changed.run()
    changed = App(topic_name, broker.bootstrap, checkpoint=str(tmp_path))
    changed.stream(topic_name).to(counts)
    with pytest.raises(TopologyChanged, match=r"per-word \(aggregate\) is gone"):
        changed.run()


def test_several_sinks_are_one_transaction(
    spark: Any, broker: Broker, topic_name: str, tmp_path: Path
) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(
            [topic_name, *(f"{topic_name}-{each}" for each in ("big", "all", "dead"))], partitions=1
        )
    produce(broker, topic_name, '{"user":"a","total":5}', "{", '{"user":"b","total":15}')
    app = App(topic_name, broker.bootstrap, checkpoint=str(tmp_path), dead_letters=f"{topic_name}-dead")
    orders = app.stream(topic_name, value=Order)
    orders.filter(lambda v: v.total > 10).map_values(lambda v: v.user).to(f"{topic_name}-big")
    orders.map_values(lambda v: f"{v.user}!", value=str).to(f"{topic_name}-all")
    seen: list[Any] = []
    orders.for_each(lambda k, v: seen.append(v))
    found = app.run()
    assert len(found) == 3 + 1 + 2  # what was written, and what for_each saw
    assert read(broker, f"{topic_name}-big") == [(None, b"b")]
    assert read(broker, f"{topic_name}-all") == [(None, b"a!"), (None, b"b!")]
    assert read(broker, f"{topic_name}-dead") == [(None, b"{")]
    assert seen == [Order("a", 5), Order("b", 15)]


def test_looking_leaves_no_trace(spark: Any, broker: Broker, topic_name: str) -> None:
    produce(broker, topic_name, "1", "2", "3")
    app = App(topic_name, broker.bootstrap)
    app.stream(topic_name).map_values(lambda line: line + "!", name="loud")
    for _ in range(2):
        assert [each.value for each in app.run(count=3)] == ["1!", "2!", "3!"]
    with Admin(broker.bootstrap) as admin:
        assert topic_name not in admin.groups.list()


def test_an_unreadable_record_stops_the_app_and_nothing_is_lost(
    spark: Any, broker: Broker, topic_name: str, tmp_path: Path
) -> None:
    def app(kind: Any) -> App:
        made = App(topic_name, broker.bootstrap, checkpoint=str(tmp_path))
        made.stream(topic_name, value=kind).map_values(lambda v: f"<{v}>", value=str).to(f"{topic_name}-out")
        return made

    with Admin(broker.bootstrap) as admin:
        admin.topics.create(f"{topic_name}-out", partitions=1)
    produce(broker, topic_name, "[1]", "nonsense", "[2]")
    with pytest.raises(SparkFailure) as failed:
        app(list[int]).run()
    said = f"the record {topic_name}-0@1 cannot be read: value: it is not JSON of the type that is wanted"
    assert said in str(failed.value)
    assert read(broker, f"{topic_name}-out") == []
    # Mended: what is there is text, whatever it says.
    app(str).run()
    assert [value for _, value in read(broker, f"{topic_name}-out")] == [b"<[1]>", b"<nonsense>", b"<[2]>"]


def halved(text: str) -> int:
    return 100 // int(text)


def shielded(text: str) -> int:
    return 100 // int(text) if text != "0" else 0


def test_a_function_is_mended_and_the_app_goes_on(
    spark: Any, broker: Broker, topic_name: str, tmp_path: Path
) -> None:
    """With state behind it: what was counted before the failure is counted once, and what came with it not lost."""

    def app(function: Any) -> App:
        made = App(topic_name, broker.bootstrap, checkpoint=str(tmp_path))
        shares = made.stream(topic_name).map_values(function, name="sharing")
        shares.group_by(lambda share: share).count(name="shares").to(f"{topic_name}-out")
        return made

    produce(broker, topic_name, "50", "20")
    app(halved).run()
    produce(broker, topic_name, "50", "0", "20")
    with pytest.raises(SparkFailure) as failed:
        app(halved).run()
    said = str(failed.value)
    assert said.startswith("sharing: ZeroDivisionError") and f"{topic_name}-0@3" in said
    line = halved.__code__.co_firstlineno + 1
    assert f'test_streams_running.py", line {line}, in halved' in said and "\nhint: " in said

    def counts() -> list[tuple[int, int]]:
        return sorted((number(key), number(value)) for key, value in read(broker, f"{topic_name}-out"))

    assert counts() == [(2, 1), (5, 1)]
    app(shielded).run()
    assert counts() == [(0, 1), (2, 1), (2, 2), (5, 1), (5, 2)]


def test_an_app_without_its_topic(spark: Any, broker: Broker, topic_name: str, tmp_path: Path) -> None:
    def app() -> App:
        made = App(topic_name, broker.bootstrap, checkpoint=str(tmp_path))
        made.stream(topic_name).map_values(lambda line: line + "!").to(f"{topic_name}-out")
        return made

    with pytest.raises(SparkFailure) as failed:
        app().run()
    assert topic_name in str(failed.value) and "\nhint: " in str(failed.value)
    produce(broker, topic_name, "a")
    app().run()
    assert read(broker, f"{topic_name}-out") == [(None, b"a!")]


def test_it_ends_when_it_is_told_to(broker: Broker, topic_name: str, tmp_path: Path) -> None:
    produce(broker, topic_name, "hello")
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(f"""
        from ottla.streams import App

        def shout(text):
            return text.upper() + "!"

        app = App("{topic_name}", "{broker.bootstrap}", checkpoint="{tmp_path}/checkpoint", master="local[1]")
        loud = app.stream("{topic_name}").map_values(shout, value=str)
        loud.to("{topic_name}-out")
        loud.print("loud")
        app.start()
        print("ended")
        """)
    )
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "[loud]: None, HELLO!\n"
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "ended\n")
    assert "Traceback" not in said and "rror" not in said
    assert said.startswith(f"{topic_name}  starting\n")
    assert read(broker, f"{topic_name}-out") == [(None, b"HELLO!")]


def stopped_program(broker: Broker, topic: str, place: Path, stop: Callable[[Any], None]) -> tuple[int, str, str]:
    """Start an app in a process group of its own, stop it, and return its exit code and what it said."""
    script = place / "program.py"
    script.write_text(
        textwrap.dedent(f"""
        import signal

        import ottla.streams.running
        from ottla.streams import App

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
        app = App("{topic}", "{broker.bootstrap}", checkpoint="{place}/checkpoint", master="local[1]")
        app.stream("{topic}").map_values(lambda text: (lambda: text)(), value=str).print("seen")
        print("built", flush=True)
        app.start()
        print("ended")
        """)
    )
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "built\n"
        stop(process)
        # Java holds these pipes as well: so this waits for its end, too.
        out, said = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    return process.returncode, out, said


def test_a_signal_for_all_of_its_processes_ends_it_quietly(
    broker: Broker, topic_name: str, tmp_path: Path
) -> None:
    produce(broker, topic_name, "hello")

    def stop(process: Any) -> None:
        assert process.stdout.readline() == "[seen]: None, hello\n"
        os.killpg(process.pid, signal.SIGTERM)

    code, out, said = stopped_program(broker, topic_name, tmp_path, stop)
    assert (code, out) == (0, "ended\n")
    assert set(said.splitlines()) == {f"{topic_name}  starting"}


@pytest.mark.parametrize("seconds", [0.5, 3, 6])
def test_a_signal_while_it_starts_ends_it_quietly(
    seconds: float, broker: Broker, topic_name: str, tmp_path: Path
) -> None:
    produce(broker, topic_name, "hello")

    def stop(process: Any) -> None:
        sleep(seconds)  # wherever that is: Java starts, Spark starts, the plan is compiled
        os.killpg(process.pid, signal.SIGINT)

    code, out, said = stopped_program(broker, topic_name, tmp_path, stop)
    assert code == 0 and out.splitlines()[-1] == "ended"
    assert "Traceback" not in said and "rror" not in said


def test_a_wrong_address_is_said_soon(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        from ottla.streams import App

        app = App("lost", "127.0.0.1:1", checkpoint="checkpoint", master="local[1]")
        app.stream("in").print()
        app.start()
        """)
    )
    at = monotonic()
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=SECONDS_MAX, cwd=tmp_path
    )
    assert monotonic() - at < 40
    assert done.returncode == 1
    assert done.stderr.startswith("lost  still looking for a broker of 127.0.0.1:1\n")
    assert "no broker of 127.0.0.1:1 answered within 12 s" in done.stderr
    assert not (tmp_path / "checkpoint").exists()


def test_a_failure_is_told_once(broker: Broker, topic_name: str, tmp_path: Path) -> None:
    """By the error, and not a second time by Spark."""
    produce(broker, topic_name, "0")
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(f"""
        from ottla.streams import App

        def divide(text):
            return 1 // int(text)

        app = App("{topic_name}", "{broker.bootstrap}", checkpoint="{tmp_path}/checkpoint", master="local[1]")
        app.stream("{topic_name}").map_values(divide, value=int, name="dividing").to("{topic_name}-out")
        try:
            app.start()
        except Exception as error:
            print(error)
        """)
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=SECONDS_MAX
    )
    assert done.stdout.startswith("dividing: ZeroDivisionError") and "in divide" in done.stdout
    assert done.stderr == f"{topic_name}  starting\n"


def test_the_example_counts(spark: Any, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    from ottla.streams.examples.word_count import COUNTS, TEXT, main

    main(["--bootstrap-server", broker.bootstrap, "--words", "500"])
    said = capsys.readouterr().out
    assert "starting Spark" in said and "lines written" in said
    counted: dict[bytes, int] = {}
    for key, value in read(broker, COUNTS):
        assert number(value) == counted.get(key, 0) + 1  # every change, once, in order
        counted[key] = number(value)
    assert counted.keys() == set(TEXT.encode().split())
    assert sum(counted.values()) >= 500
