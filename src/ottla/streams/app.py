"""An app: a topology, and the ways to run it.

app = App("word-count", "localhost:9092")
words = app.stream("lines").flat_map_values(lambda line: line.lower().split())
words.group_by(lambda word: word).count().to("counts")
app.start()
"""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.client.record import Record
from ottla.streams.computing import Computing
from ottla.streams.describe import described
from ottla.streams.errors import TopologyError
from ottla.streams.functions import function
from ottla.streams.plan.function import Function
from ottla.streams.plan.sources import GlobalTableSource, Source, StreamSource, TableSource
from ottla.streams.plan.topology import Plan, Topology
from ottla.streams.settings import app_settings
from ottla.streams.stream import Stream
from ottla.streams.table import GlobalTable, Table
from ottla.streams.topic_name import check_topic
from ottla.streams.types.serde import Serde, serde
from ottla.streams.types.type import Instant, Integer
from ottla.streams.types.walk import as_key

if TYPE_CHECKING:
    from ottla.streams.running import Running


class App:
    """A topology with a name. Its consumer group and its checkpoint have the same name.

    `settings` are those of ottla.streams.settings.AppSettings, and those of Kafka's clients with underscores for dots.
    """

    def __init__(
        self, name: str, bootstrap_servers: str | Sequence[str] | None = None, **settings: Any
    ) -> None:
        self.settings = app_settings(name, bootstrap_servers, settings)
        self._topology = Topology()
        self._read: dict[tuple[Any, ...], Source] = {}

    @property
    def name(self) -> str:
        """The name of the app."""
        return self.settings.name

    def stream(
        self,
        topic: str | Sequence[str] | None = None,
        *,
        key: Any = str,
        value: Any = str,
        pattern: str | None = None,
        timestamp: Any = None,
        starting: str | None = None,
        name: str | None = None,
    ) -> Stream:
        """Return the records of a topic, of several topics, or of all topics whose names match a pattern.

        `key` and `value` are types or serdes. `timestamp` is a function that returns the time of a record, in
        milliseconds or as a datetime.
        """
        source = self._source(StreamSource, topic, key, value, pattern, timestamp, starting, name)
        return Stream(self._topology, source)

    def table(
        self,
        topic: str,
        *,
        key: Any = str,
        value: Any = str,
        timestamp: Any = None,
        name: str | None = None,
    ) -> Table:
        """Return a topic as a table: the latest value of each key. A null value deletes; a null key is ignored."""
        return Table(
            self._topology, self._source(TableSource, topic, key, value, None, timestamp, "earliest", name)
        )

    def global_table(
        self, topic: str, *, key: Any = str, value: Any = str, name: str | None = None
    ) -> GlobalTable:
        """Return a topic as a table that is complete in every task, to be joined by any key."""
        return GlobalTable(
            self._topology, self._source(GlobalTableSource, topic, key, value, None, None, "earliest", name)
        )

    def _source(
        self,
        make: type[Source],
        topic: str | Sequence[str] | None,
        key: Any,
        value: Any,
        pattern: str | None,
        timestamp: Any,
        starting: str | None,
        name: str | None,
    ) -> Source:
        topics = (topic,) if isinstance(topic, str) else tuple(topic or ())
        if bool(topics) is (pattern is not None):
            raise TopologyError("a source reads topics, or those of a pattern")
        for each in topics:
            check_topic(each, "a source")
        starting = starting or self.settings.starting
        if starting not in ("earliest", "latest"):
            raise TopologyError(f"starting is {starting!r}", hint="it is earliest or latest")
        keys, values = serde(key), serde(value)
        keys = Serde(as_key(keys.type), keys.format)
        same = (make, topics, pattern, keys, values, timestamp, starting)
        if name is None and same in self._read:
            return self._read[same]
        node = make(
            name=self._topology.name(make.kind, name),
            topics=topics,
            pattern=pattern,
            key=keys.type,
            value=values.type,
            key_serde=keys,
            value_serde=values,
            timestamp=_timestamp(timestamp, keys, values),
            starting=starting,
        )
        self._read[same] = node
        return self._topology.add(node)

    def plan(self) -> Plan:
        """Return the current topology."""
        return self._topology.plan()

    def describe(self) -> None:
        """Print the operators of the topology and who computes each, and a picture of it in Mermaid's language."""
        plan, settings = self.plan(), self.settings
        computing = Computing(plan, has_dead_letters=settings.dead_letters is not None, native=settings.native)
        sys.stdout.write(described(self.name, plan, computing))

    def run(self, *, count: int | None = None, timeout: float | None = None) -> list[Record]:
        """Run until there are `count` results, or none for `timeout` seconds, and return them.

        Without both, run until all records that exist now are processed. A micro-batch is never divided, so there can
        be more than `count`. Results are written to their topics; those without a sink are only returned.
        """
        from ottla.streams.running import run

        return run(self.settings, self._whole(), count, timeout)

    def start(self, *, block: bool = True) -> "Running":
        """Run until Ctrl-C, SIGTERM or a failure, and show the progress in a line on stderr.

        With block=False return at once a Running, which can be waited for and stopped.
        """
        from ottla.streams.running import start

        plan = self._whole()
        if not plan.sinks:
            raise TopologyError(
                "nothing comes of this topology", hint="end it with to(…), for_each(…) or print()"
            )
        return start(self.settings, plan, block=block)

    def test(
        self, given: Mapping[str, Sequence[Any]], *, batches: int = 1, on: str = "python"
    ) -> dict[str, list[Record]]:
        """Run the topology on given records and return what it writes, by topic. No broker is needed.

        A record is a Record, a pair of key and value, a triple with a timestamp, or a value. A record without a
        timestamp is a millisecond later than the one before. `batches` is the number of micro-batches. Results that
        are written to a topic of the topology are read from it. Without a sink, the results are returned under the
        names of the last operators.

        With on="python" the plan runs in this process, record by record. With on="spark" it runs as `start` runs it.
        """
        from ottla.streams.trial import trial

        return trial(self.settings, self._whole(), given, batches, on)

    def _whole(self) -> Plan:
        plan = self.plan()
        if not plan.nodes:
            raise TopologyError("there is nothing to run", hint="begin with app.stream(…) or app.table(…)")
        return plan


def _timestamp(given: Any, keys: Serde, values: Serde) -> Function | None:
    if given is None:
        return None
    offered = {"key": keys.type, "value": values.type}
    found = function(given, offered, "timestamp", _result(given, offered))
    if not isinstance(found.result, Instant | Integer):
        raise TopologyError(f"timestamp: the function at {found.place} returns {found.result}, no time")
    return found


def _result(given: Any, offered: dict[str, Any]) -> Any:
    """What a function of times returns: where nothing says so, a number or a datetime, which is seen when it has."""
    try:
        return function(given, offered, "timestamp").result
    except TopologyError:
        return Integer()
