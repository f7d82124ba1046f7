"""Running an app: for good, or until enough has come out."""

import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from ottla.client.blocking import Admin
from ottla.client.record import Record
from ottla.spark.installed import require_pyspark
from ottla.streams.errors import TopologyError
from ottla.streams.plan.topology import Plan
from ottla.streams.settings import NEEDS_SPARK, AppSettings
from ottla.streams.status import StatusLine, status
from ottla.world.clock import RealClock

_LOOK_SECONDS = 0.25


class Running:
    """An app that is running."""

    def __init__(self, name: str, query: Any, line: StatusLine) -> None:
        self.name = name
        self._query = query
        self._line = line

    @property
    def is_active(self) -> bool:
        """Whether the app is still running."""
        return bool(self._query.isActive)

    @property
    def progress(self) -> dict[str, Any] | None:
        """The last progress report of Spark, or None."""
        found = self._query.lastProgress
        return None if found is None else dict(found)

    @property
    def status(self) -> str:
        """The progress of the app in one line."""
        return status(self.name, self.progress)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the app has ended, and return whether it has. Raises the error that has ended it.

        `timeout` is in seconds.
        """
        clock = RealClock()
        until = None if timeout is None else clock.monotonic() + timeout
        while True:
            left = _LOOK_SECONDS if until is None else min(_LOOK_SECONDS, until - clock.monotonic())
            if self._query.awaitTermination(max(left, 0.001)):
                self._line.aside()
                return True
            if until is not None and clock.monotonic() >= until:
                return False

    def watch(self, stopped: Callable[[], bool]) -> None:
        """Show the progress until the app ends or `stopped()` is true. Raises the error that has ended it."""
        while not stopped():
            if self._query.awaitTermination(_LOOK_SECONDS):
                break
            self._line.show(self.status)
        self._line.aside()

    def stop(self) -> None:
        """Stop the app. An unfinished micro-batch is repeated when the app starts again, and written once."""
        from ottla.streams.lowering.query import stop

        stop(self._query)
        self._line.aside()


def start(settings: AppSettings, plan: Plan, *, block: bool) -> Running:
    """Run a topology for good."""
    require_pyspark(NEEDS_SPARK)
    from ottla.streams.lowering.deployment import deploy
    from ottla.streams.lowering.silence import silence

    line = StatusLine(sys.stderr)
    _make_topics(settings, plan)

    def show(text: str) -> None:
        line.aside()
        _say(text)

    running = Running(settings.name, deploy(settings, plan, show=show), line)
    if not block:
        return running
    with _signals() as stopped, silence(settings.name):
        try:
            running.watch(stopped)
        finally:
            running.stop()
    return running


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(settings: AppSettings, plan: Plan, count: int | None, timeout: float | None) -> list[Record]:
    """Run a topology until enough has come out, and return that."""
    require_pyspark(NEEDS_SPARK)
    from ottla.streams.lowering.deployment import deploy
    from ottla.streams.lowering.query import stop
    from ottla.streams.lowering.silence import silence

    if count is not None and count < 1:
        raise TopologyError(
            f"run: count is {count}", hint="leave it out to run until all is done that is there"
        )
    found: list[Record] = []
    with ExitStack() as stack:
        if not plan.sinks:
            place = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="ottla-look-", ignore_cleanup_errors=True)
            )
            settings = replace(settings, checkpoint=place, is_look=True)
        _make_topics(settings, plan)
        at_once = count is None and timeout is None
        query = deploy(settings, plan, show=_say, collect=found.extend, available_now=at_once)
        try:
            with silence(settings.name):
                _wait(query, found, count, timeout)
        finally:
            stop(query)
    return found


def _wait(query: Any, found: list[Record], count: int | None, timeout: float | None) -> None:
    """Wait until there is enough, or too little, or a failure."""
    clock = RealClock()
    seen, since = 0, clock.monotonic()
    while not query.awaitTermination(_LOOK_SECONDS):
        now = clock.monotonic()
        # The time does not begin to count before there has been a first look at the topics.
        if len(found) > seen or query.lastProgress is None:
            seen, since = len(found), now
        if count is not None and len(found) >= count:
            return
        if timeout is not None and now - since >= timeout:
            return


def _make_topics(settings: AppSettings, plan: Plan) -> None:
    """Make the topics of tables that are not there yet: compacted, since a table needs the latest of each key alone."""
    wanted = [each.topic for each in plan.writes if each.compacted and each.topic is not None]
    if not wanted:
        return
    with Admin(settings.bootstrap_servers, settings.admin_settings) as admin:
        there = set(admin.topics.list())
        missing = [each for each in dict.fromkeys(wanted) if each not in there]
        if missing:
            admin.topics.create(missing, configs={"cleanup.policy": "compact"})


@contextmanager
def _signals() -> Iterator[Callable[[], bool]]:
    """Inside, Ctrl-C and SIGTERM ask for an end instead of being one."""
    asked: list[int] = []
    old = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            old[number] = signal.signal(number, lambda given, _: asked.append(given))
        except ValueError:  # not in the main thread, where signals are somebody else's
            break
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
