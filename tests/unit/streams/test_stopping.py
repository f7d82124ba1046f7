"""Signals that stop an app, and brokers that are looked for before it starts."""

import logging
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.errors import NoBroker
from ottla.streams import running
from ottla.streams.running import AskedToStop, StopSignals
from ottla.streams.settings import app_settings


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What is hushed for one test is heard in the next."""
    yield
    logging.getLogger("py4j").setLevel(logging.NOTSET)
    logging.getLogger().removeFilter(running._is_not_of_py4j)


def test_while_it_starts_a_signal_ends_the_start() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals() as signals, pytest.raises(AskedToStop):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signals.received
    assert signal.getsignal(signal.SIGTERM) is before


def test_later_a_signal_is_noted_whoever_had_it_meanwhile() -> None:
    before = signal.getsignal(signal.SIGINT)

    def sparks(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    try:
        with StopSignals() as signals:
            signal.signal(signal.SIGINT, sparks)
            signals.install()
            signals.is_starting = False
            os.kill(os.getpid(), signal.SIGINT)
            assert signals.received
        assert signal.getsignal(signal.SIGINT) is sparks, "Spark has it back"
    finally:
        signal.signal(signal.SIGINT, before)


def test_py4j_is_hushed_and_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    made = logging.LogRecord("root", logging.ERROR, "/lib/py4j/java_gateway.py", 1, "gone", None, None)
    assert not running._is_not_of_py4j(made)
    with StopSignals():
        logging.getLogger().error("of the program")
    assert caplog.messages == ["of the program"]


class Silence:
    """An admin client that finds no broker, or one at its second look."""

    looks: list[dict[str, Any]]
    finds = False

    def __init__(self, servers: str, settings: dict[str, Any]) -> None:
        self.looks.append(settings)

    def __enter__(self) -> None:
        if not (self.finds and len(self.looks) == 2):
            raise NoBroker("nobody is there")

    def __exit__(self, *_: object) -> None:
        pass


def look(monkeypatch: pytest.MonkeyPatch, *, finds: bool = False, **settings: Any) -> list[Any]:
    monkeypatch.setattr(Silence, "looks", [], raising=False)
    monkeypatch.setattr(Silence, "finds", finds)
    monkeypatch.setattr(running, "Admin", Silence)
    running._find_brokers(app_settings("app", ["one:1", "two:2"], settings))
    return Silence.looks


def test_a_broker_is_looked_for_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NoBroker):
        look(monkeypatch)
    assert [each["default.api.timeout.ms"] for each in Silence.looks] == [3_000, 12_000]
    assert capsys.readouterr().err == "app  still looking for a broker of one:1,two:2\n"
    look(monkeypatch, finds=True)
    with pytest.raises(NoBroker):
        look(monkeypatch, default_api_timeout_ms=500)
    assert [each["default.api.timeout.ms"] for each in Silence.looks] == ["500"]


class Query:
    """A query of Spark's, as far as is asked here."""

    isActive = True  # noqa: N815
    lastProgress = None  # noqa: N815


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What an app does one after the other, each to be replaced."""
    done = {
        "_find_brokers": lambda settings: None,
        "_start_spark": lambda settings: None,
        "_begin": lambda settings, plan, line: running.Running(settings.name, Query(), line),
        "_follow": lambda app, signals: None,
    }
    for name in done:
        monkeypatch.setattr(running, name, lambda *given, name=name: done[name](*given))
    monkeypatch.setattr(running.Running, "stop", lambda self: None)
    return done


def start() -> running.Running:
    return running.start(app_settings("app", "one:1", {}), None, block=True)  # type: ignore[arg-type]


def told(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("step", ["_find_brokers", "_start_spark", "_begin"])
def test_an_app_that_is_stopped_while_it_starts_has_ended(step: str, steps: dict[str, Any]) -> None:
    steps[step] = told
    steps["_follow"] = lambda *_: pytest.fail("it did not start")
    assert not start().is_active


def test_an_interrupt_that_spark_takes_is_one_as_well(steps: dict[str, Any]) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    steps["_begin"] = interrupted
    assert not start().is_active


def test_once_it_is_to_stop_a_java_that_is_gone_is_no_failure(steps: dict[str, Any]) -> None:
    def lost(*_: Any) -> None:
        raise ConnectionResetError("Java is gone")

    def told_and_lost(*_: Any) -> None:
        told()
        lost()

    steps["_follow"] = told_and_lost
    assert start().name == "app"
    steps["_follow"] = lost
    with pytest.raises(ConnectionResetError):
        start()
