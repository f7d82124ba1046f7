"""Where queries are under fire: a broker behind a gate, a driver and its understudy, a feed, a watch on each target.

A1  Whoever is killed has a successor at once: a driver's is a session that was started beforehand and waits.
A2  Whatever is started here is ended here, by its process id; of a driver whose Java alone was killed, too.
"""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.client.blocking import Admin
from tests.faults.by_hand import hand
from tests.faults.spark import queries
from tests.faults.spark.feed import Feed
from tests.faults.spark.gate import Gate, Trap
from tests.faults.spark.history import Span, violations
from tests.faults.spark.ledger import Ledger
from tests.faults.spark.target import Watch, committed_rows
from tests.peers.deadline import eventually
from tests.peers.driver import SHORT_LIVED, SparkDriver
from tests.peers.server import HOST, Server, free_ports

if TYPE_CHECKING:
    from tests.compat.spark.standalone import Standalone

PARTITIONS = 4
BATCH_ROWS = 200
STILL_SECONDS_MAX = 120.0
# Clients have to find the broker again after it has answered: so long an outage lasts on.
RECONNECT_SECONDS_MAX = 2.0
DRIVER = SHORT_LIVED | {"spark.sql.streaming.minBatchesToRetain": "100000"}


class Arena:
    """See the head. `kinds` are the queries that run on the one source, in local mode or on a cluster."""

    def __init__(
        self,
        make_server: Callable[..., Server],
        kinds: Sequence[str],
        directory: Path,
        chance: random.Random,
        *,
        cluster: "Standalone | None" = None,
    ) -> None:
        self.kinds, self.chance = list(kinds), chance
        self.cluster = cluster
        self._directory = directory
        [port] = free_ports(1)
        advertised = {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
        self.server = make_server(directory / "server", advertised)
        self.gate = Gate(port, self.server.port)
        self.bootstrap = f"{HOST}:{port}"
        self.outages: list[Span] = []
        self.failures: list[str] = []
        self._drivers: list[SparkDriver] = []
        self._leftovers: list[tuple[int, int]] = []
        self._understudy: SparkDriver | None = None

    @contextlib.contextmanager
    def open(self, per_second: int) -> Iterator["Arena"]:
        """Start everything, and end everything."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._clean)
            self.prepare()
            stack.enter_context(self.server)
            stack.enter_context(self.gate)
            with hand(self.server.port) as client:
                for topic in (queries.SOURCE, *self.kinds):
                    client.create_topic(topic, PARTITIONS)
            self.feed = stack.enter_context(
                Feed(self.bootstrap, queries.SOURCE, PARTITIONS, per_second, self.chance, self._done)
            )
            self.watches = {
                kind: stack.enter_context(Watch(self.bootstrap, kind, PARTITIONS)) for kind in self.kinds
            }
            self.succeed()
            yield self

    @property
    def driver(self) -> SparkDriver:
        return self._drivers[-1]

    def ledger(self, kind: str) -> Ledger:
        return Ledger(self._directory / "checkpoints" / kind, PARTITIONS)

    def _done(self) -> int:
        return min(sum(self.ledger(kind).committed()) for kind in self.kinds)

    def prepare(self) -> None:
        """Have an understudy start, without waiting for it."""
        if self._understudy is None:
            place = self._directory / f"driver-{len(self._drivers)}"
            master = "local[2]" if self.cluster is None else self.cluster.master
            self._understudy = SparkDriver(place, DRIVER, master=master, ottla=True).start(wait=False)

    def succeed(self) -> None:
        """Let the understudy run the queries."""
        self.prepare()
        assert self._understudy is not None
        self._drivers.append(self._understudy)
        self._understudy = None
        self.driver.wait_ready()
        for kind in self.kinds:
            checkpoint = self._directory / "checkpoints" / kind
            self.driver.call(queries.start, kind, self.bootstrap, str(checkpoint), BATCH_ROWS)

    def let_pass(self, batches: int) -> None:
        """Let every query finish so many batches in peace."""
        goals = {kind: self.ledger(kind).done() + batches for kind in self.kinds}
        deadline = time.monotonic() + STILL_SECONDS_MAX
        while any(self.ledger(kind).done() < goal for kind, goal in goals.items()):
            assert time.monotonic() < deadline, f"no batch is finished:\n{self.words()}"
            time.sleep(0.02)

    def strike(self, trap: Trap) -> None:
        """Set a trap, and wait until it has done its work."""
        self.wait(self.gate.set(trap))

    def wait(self, trap: Trap) -> None:
        for event in (trap.sprung, trap.done):
            if not event.wait(STILL_SECONDS_MAX):
                raise AssertionError(f"no {trap.request.__name__} came by:\n{self.words()}")
        assert trap.failure is None, trap.failure

    def kill_driver(self) -> None:
        """The driver and all of its processes at once, as when a machine goes."""
        self.driver.kill()

    def kill_java(self) -> None:
        """The Java machine alone; Python's processes around it have to notice."""
        self._leftovers += [(pid, started) for pid in self.driver.family() if (started := _started(pid))]
        os.kill(self.driver.java_pid(), signal.SIGKILL)

    def kill_broker(self) -> None:
        """The broker, which is then started again on the same files.

        Apache Kafka 4.3.1, killed between the decision to commit and the markers, takes the partitions for deleted when
        it starts again, as long as it is fenced, and calls the transaction complete without any marker. What it has
        acknowledged is never seen then, whatever a client does; so it is given the moment to write them.
        """
        if self.server.name == "kafka":
            with Admin(f"{HOST}:{self.server.port}") as admin:
                eventually(lambda: not admin.transactions.list(states=["PrepareCommit", "PrepareAbort"]))
        began = time.monotonic()
        self.server.kill()
        self.server.start()
        self.outages.append((began, time.monotonic() + RECONNECT_SECONDS_MAX))

    def drain(self) -> None:
        """Write no more, and wait until the queries have done with everything."""
        self.feed.end()
        goal = [self.feed.counts] * len(self.kinds)
        moved, before = time.monotonic(), [[0]]
        while (now := [self.ledger(kind).committed() for kind in self.kinds]) != goal:
            if now != before:
                moved, before = time.monotonic(), now
            assert time.monotonic() - moved < STILL_SECONDS_MAX, f"nothing moves at {now}:\n{self.words()}"
            time.sleep(0.05)
        self.failures += self.driver.call(queries.failures)

    def check(self) -> dict[str, int]:
        """Assert that all is exactly once; the number of batches of each query."""
        checked = {}
        for kind in self.kinds:
            expected = self.ledger(kind).expected(kind, self.feed.keys)
            rows = committed_rows(self.server.port, kind, PARTITIONS)
            self._see_all(kind, len(rows))
            found = violations(expected, rows, self.watches[kind].sights, self.outages)
            assert not found, f"{kind}:\n" + "\n".join(found)
            # Whatever the offsets of batches say, in the end all that was written has been read.
            if kind == "copy":
                assert len(rows) == sum(self.feed.counts)
            else:
                last = {row.line: row.number for row in sorted(rows, key=lambda row: row.number)}
                assert sum(last.values()) == sum(self.feed.counts)
            checked[kind] = len(expected)
        return checked

    def _see_all(self, kind: str, count: int) -> None:
        deadline = time.monotonic() + 30
        while len(self.watches[kind].sights) < count and time.monotonic() < deadline:
            time.sleep(0.05)

    def words(self) -> str:
        """What the driver has to say."""
        try:
            failures = self.driver.call(queries.failures, seconds_max=10)
        except Exception as failure:  # noqa: BLE001 - it is only for a message
            failures = [str(failure)]
        return "\n".join([*(each[-1500:] for each in failures[-3:]), self.driver.last_words()])

    def _clean(self) -> None:
        for driver in [*self._drivers, self._understudy]:
            if driver is not None:
                driver.kill()
        for pid, started in self._leftovers:
            if _started(pid) == started:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _started(pid: int) -> int:
    """When a process began, so that its id is not mistaken for another's; 0 when there is none."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 0
