"""The page: every family once, in the order in which a person would read it.

A page costs a look at each partition, 30 ms for 2,000 of them, and at each committed offset, so it is made when asked
for, and in pieces of at most a few milliseconds, between which the loop serves others. So it shows no single moment.
"""

from collections.abc import Iterable, Iterator

from ottla.broker.broker import Broker
from ottla.broker.dispatch import Dispatcher
from ottla.broker.metrics.cluster import cluster
from ottla.broker.metrics.groups import groups
from ottla.broker.metrics.network import Idleness, network
from ottla.broker.metrics.partitions import PartitionGauges
from ottla.broker.metrics.quorum import quorum
from ottla.broker.metrics.requests import RequestTimes
from ottla.broker.metrics.share import share
from ottla.broker.metrics.topics import TopicTraffic
from ottla.broker.metrics.transactions import transactions
from ottla.channel.connections import Connections
from ottla.http.metrics.process import loop_cpu_seconds, process
from ottla.http.metrics.text import Family, counter, gauge, page_pieces
from ottla.world.disk import Disk


class Page:
    """What `/metrics` shows. `listeners` are those of the broker, the first being the one that others are told of;
    `others` the connections of listeners that are not the broker's.
    """

    def __init__(
        self,
        broker: Broker,
        dispatcher: Dispatcher,
        disk: Disk,
        listeners: Iterable[str],
        version: str,
        *others: Connections,
    ) -> None:
        self._broker = broker
        self._dispatcher = dispatcher
        self._disk = disk
        self._listeners = tuple(listeners)
        self._version = version
        self._others = others
        self._start_ms = broker.clock.now_ms()
        self._traffic = TopicTraffic()
        self._requests = RequestTimes()
        self._partitions = PartitionGauges()
        self._idleness = Idleness(loop_cpu_seconds(), broker.clock.monotonic())

    def __call__(self) -> Iterator[bytes]:
        """Render the page, a piece at a time."""
        return page_pieces(self.families())

    def families(self) -> Iterator[Family | None]:
        """Everything there is to tell; None where the page may pause."""
        broker = self._broker
        about = gauge("ottla_info", "The version of this software.")
        yield about.add(1, version=self._version, node_id=broker.node_id, cluster_id=broker.cluster_id)
        yield from self._traffic.families(broker.table.partitions.values())
        yield from self._requests.families(self._dispatcher.routes.values())
        failures = counter("ottla_handler_failures_total", "Requests that broke their handler.")
        yield failures.add(broker.failures)
        bugs = counter("ottla_bugs_total", "Errors that Ottla's own arguments caused, and requests that broke Raft.")
        yield bugs.add(
            sum(each.bugs.total for each in broker.table.directories) + broker.quorum.driver.bugs.total
        )
        yield from network(broker.connections, self._listeners, *self._others)
        yield from self._idleness.families(loop_cpu_seconds(), broker.clock.monotonic())
        yield from self._partitions.families(broker)
        yield from groups(broker)
        yield from transactions(broker)
        yield from share(broker)
        active = broker.quorum.leader_id == broker.node_id
        yield from cluster(broker, active=active, listener=next(iter(self._listeners), None))
        yield from quorum(broker)
        yield from process(self._disk, self._start_ms)
