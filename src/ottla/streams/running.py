"""Running an app: for good, or until enough has come out."""

import logging
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from ottla.client.blocking import Admin
from ottla.client.errors import NoBroker
from ottla.client.record import Record
from ottla.spark.installed import require_pyspark
from ottla.streams.errors import TopologyError
from ottla.streams.plan.topology import Plan
from ottla.streams.settings import NEEDS_SPARK, AppSettings
from ottla.streams.status import StatusLine, status
from ottla.world.clock import RealClock

_LOOK_SECONDS = 0.25
# How long a broker is looked for: until something is said, and in all, as the command line does.
_FIRST_LOOK_MS = 3_000
_BROKER_MS = 15_000


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
        if not isinstance(self._query, _NeverStarted):
            from ottla.streams.lowering.query import stop

            stop(self._query)
        self._line.aside()


def start(settings: AppSettings, plan: Plan, *, block: bool) -> Running:
    """Run a topology for good."""
    require_pyspark(NEEDS_SPARK)
    line = StatusLine(sys.stderr)
    if not block:
        _find_brokers(settings)
        return _begin(settings, plan, line)
    running = Running(settings.name, _NeverStarted(), line)
    # Before anything of Spark's is imported, which takes seconds.
    with StopSignals() as signals:
        try:
            _find_brokers(settings)
            _start_spark(settings)
            # Spark takes SIGINT for itself when it starts.
            signals.install()
            running = _begin(settings, plan, line)
            signals.is_starting = False
            _follow(running, signals)
        except (AskedToStop, KeyboardInterrupt):
            # It was still starting, or had just begun.
            with suppress(Exception):
                running.stop()
        except Exception:
            # A signal for the whole process group ends Java as well, so that nothing more can be asked of Spark.
            if not signals.received:
                raise
    return running


def _start_spark(settings: AppSettings) -> None:
    from ottla.spark import session

    session(settings.name, settings.master, **settings.spark)


def _begin(settings: AppSettings, plan: Plan, line: StatusLine) -> Running:
    from ottla.streams.lowering.deployment import deploy

    def show(text: str) -> None:
        line.aside()
        _say(text)

    _make_topics(settings, plan)
    return Running(settings.name, deploy(settings, plan, show=show), line)


def _follow(running: Running, signals: "StopSignals") -> None:
    from ottla.streams.lowering.silence import silence

    with silence(running.name):
        try:
            running.watch(lambda: signals.received)
        finally:
            running.stop()


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
        _find_brokers(settings)
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


class AskedToStop(BaseException):
    """A signal arrived while the app was starting."""


class StopSignals:
    """SIGINT and SIGTERM, which stop an app: while it is starting they end the start with AskedToStop, later they are
    only noted.
    """

    def __init__(self) -> None:
        self.received = False
        self.is_starting = True
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        self.install()
        # What breaks in py4j is raised as well, and a call that a signal has interrupted is nobody's business.
        logging.getLogger().addFilter(_is_not_of_py4j)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if not self.received:
            logging.getLogger().removeFilter(_is_not_of_py4j)

    def install(self) -> None:
        """Take the signals, from whoever has them now; they are given back in the end."""
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                before = signal.signal(number, self._handle)
            except ValueError:  # not in the main thread, where signals are somebody else's
                return
            if before != self._handle:
                self._before[number] = before

    def _handle(self, number: int, frame: object) -> None:
        self.received = True
        # Java may end as well, of which py4j would tell at length.
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
        if self.is_starting:
            raise AskedToStop


class _NeverStarted:
    """The query of an app that was stopped while it started."""

    isActive = False  # noqa: N815
    lastProgress = None  # noqa: N815

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        return True


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "/py4j/" not in record.pathname


def _find_brokers(settings: AppSettings) -> None:
    """Look for a broker before Spark starts, which takes many seconds and says nothing of brokers."""
    own = settings.admin_settings
    if "default.api.timeout.ms" in own:
        with Admin(settings.bootstrap_servers, own):
            return
    try:
        with Admin(settings.bootstrap_servers, {**own, **_patience(_FIRST_LOOK_MS)}):
            return
    except NoBroker:
        sys.stderr.write(f"{settings.name}  still looking for a broker of {_listed(settings)}\n")
        sys.stderr.flush()
    with Admin(settings.bootstrap_servers, {**own, **_patience(_BROKER_MS - _FIRST_LOOK_MS)}):
        return


def _patience(timeout_ms: int) -> dict[str, int]:
    return {"default.api.timeout.ms": timeout_ms, "request.timeout.ms": timeout_ms}


def _listed(settings: AppSettings) -> str:
    given = settings.bootstrap_servers
    return given if isinstance(given, str) else ",".join(given)
