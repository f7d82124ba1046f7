"""`ottla dev` with its services: they come up beside it, come back after kill -9, and go when it goes."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import psutil
import pytest

from ottla.client.blocking import Consumer, Producer
from ottla.world.listening_socket import ListeningSocket
from ottla.world.network import free_port

PROGRAM = [sys.executable, "-m", "ottla.cli.main"]


class Dev:
    """A running `ottla dev`, and what it said until it was ready."""

    def __init__(self, process: subprocess.Popen[str], said: str, errors: list[str]) -> None:
        self.process = process
        self.said = said
        self.errors = errors
        self.kafka = re.search(r"Kafka clients +(\S+)", said)[1]  # type: ignore[index]
        services = re.search(r"services +(http://[0-9.:]+)", said)
        self.index = services[1] if services else ""

    def child(self) -> psutil.Process | None:
        children = psutil.Process(self.process.pid).children()
        return children[0] if children else None

    def ready(self) -> bool:
        return get(f"{self.index}/ready")[0] == 200


def get(url: str) -> tuple[int, bytes]:
    try:
        with urlopen(url, timeout=5) as page:
            return page.status, page.read()
    except HTTPError as error:
        return error.code, error.read()
    except (URLError, OSError):
        return 0, b""


def until(condition: Callable[[], Any], deadline_s: float = 20.0) -> float:
    """How many seconds a condition took to become true."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < deadline_s
        time.sleep(0.02)
    return time.monotonic() - started


@contextmanager
def dev(data: Path, *options: str) -> Iterator[Dev]:
    ports = ["--port", "0", "--metrics-port", "0"]
    if "--services-port" not in options:
        ports += ["--services-port", "0"]
    process = subprocess.Popen(
        [*PROGRAM, "dev", "--data", str(data), *ports, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    errors: list[str] = []
    assert process.stdout is not None and process.stderr is not None
    listening = threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True)  # type: ignore[arg-type]
    listening.start()
    try:
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        assert "is ready" in said, errors
        yield Dev(process, said, errors)
    finally:
        process.kill()
        process.wait()
        listening.join(5)
        process.stdout.close()
        process.stderr.close()


def test_they_come_up_and_say_what_there_is(tmp_path: Path) -> None:
    with dev(tmp_path / "data") as node:
        until(node.ready)
        status, body = get(node.index)
        assert status == 200 and node.kafka.encode() in body
        status, page = get(f"{node.index}/metrics")
        assert b"process_resident_memory_bytes" in page and b"ottla_http_requests_total" in page
        metrics = re.search(r"metrics +(http://[0-9.:]+)/metrics", node.said)
        assert metrics
        assert b"kafka_" in get(f"{metrics[1]}/metrics")[1]
        assert json.loads(get(f"{metrics[1]}/ready")[1]) == {"ready": True, "reasons": {}}
        assert get(f"{metrics[1]}/health")[0] == 200
        child = node.child()
        assert child is not None
        assert child.memory_info().rss < 90 << 20
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(15) == 0
        assert not child.is_running()
    assert not [line for line in node.errors if "services" in line]


def test_kill_9_of_the_services_is_noticed_by_nobody_else(tmp_path: Path) -> None:
    with dev(tmp_path / "data") as node:
        until(node.ready)
        written = 0
        stop = threading.Event()
        failures: list[Exception] = []

        def write() -> None:
            nonlocal written
            try:
                with Producer(node.kafka) as producer:
                    while not stop.is_set():
                        producer.send("steady", b"%d" % written).result()
                        written += 1
            except Exception as error:  # noqa: BLE001  # the test tells of it
                failures.append(error)

        writing = threading.Thread(target=write)
        writing.start()
        until(lambda: written > 10 or failures)
        for _ in range(2):
            child = node.child()
            assert child is not None
            before = written
            child.kill()
            took_s = until(lambda dead=child: node.child() not in (None, dead) and node.ready())
            assert took_s < 5, "2 s where nothing else runs"
            until(lambda seen=before: written > seen + 10 or failures)
        stop.set()
        writing.join(20)
        assert not failures
        with Consumer(node.kafka, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["steady"])
            read = []
            for record in consumer:
                read.append(int(record.value))
                if len(read) == written:
                    break
        assert read == list(range(written))
    assert any("ended by signal 9" in line for line in node.errors)


def test_kill_9_of_the_node_ends_the_services(tmp_path: Path) -> None:
    with dev(tmp_path / "data") as node:
        until(node.ready)
        child = node.child()
        assert child is not None
        node.process.kill()
        node.process.wait()
        try:
            until(lambda: not child.is_running(), 5)
        finally:
            if child.is_running():
                child.kill()


def test_a_child_whose_parent_is_gone_does_not_begin() -> None:
    told = subprocess.run(
        [*PROGRAM, "services", "--parent", "1", "--port", "index=0"],
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert told.returncode == 0 and told.stdout == b""


def test_a_port_that_is_taken_is_said_and_the_node_goes_on(tmp_path: Path) -> None:
    taken = ListeningSocket("127.0.0.1", 0)
    try:
        with dev(tmp_path / "data", "--services-port", str(taken.port)) as node:
            until(lambda: any("do not run" in line for line in node.errors))
            words = "".join(node.errors)
            assert f"127.0.0.1:{taken.port}" in words and "hint: " in words and "--services-port" in words
            with Producer(node.kafka) as producer:
                producer.send("hello", b"still here").result()
            assert node.child() is None
    finally:
        taken.close()


def test_the_broker_alone(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--no-services") as node:
        assert "not started" in node.said
        with Producer(node.kafka) as producer:
            producer.send("hello", b"alone").result()
        assert node.child() is None


def test_they_run_alone_and_say_that_the_cluster_is_missing() -> None:
    port, nobody = free_port(), free_port()
    command = [
        *PROGRAM,
        "services",
        "index",
        "--bootstrap-server",
        f"127.0.0.1:{nobody}",
        "--port",
        f"index={port}",
    ]
    command += ["--override", "ottla.http.access.log=true"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: get(f"http://127.0.0.1:{port}/health")[0] == 200)

        def names_the_cluster() -> bool:
            status, body = get(f"http://127.0.0.1:{port}/ready")
            # Where everything is slow, the first reason may be that there was no answer in time.
            return status == 503 and f"127.0.0.1:{nobody}" in json.loads(body)["reasons"]["cluster"]

        until(names_the_cluster)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=15)
        assert process.returncode == 0
        assert '"GET /health HTTP/1.1" 200' in errors
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["nothing"], 2, "there is no service nothing"),
        (["--port", "index"], 2, "not name=number"),
        (["--port", "other=1"], 2, "there is no service other"),
        (["--override", "no.such.setting=1"], 2, "no.such.setting"),
        (["--override", "ssl.client.authentication=REQUIRED"], 2, "ssl.keystore.location"),
    ],
)
def test_what_is_wrong_is_said(options: list[str], code: int, words: str) -> None:
    told = subprocess.run(
        [*PROGRAM, "services", *options], capture_output=True, text=True, timeout=30, check=False
    )
    assert told.returncode == code
    assert told.stderr.startswith("error: ") and words in told.stderr
