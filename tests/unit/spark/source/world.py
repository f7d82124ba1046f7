"""A broker in memory, and what of the source lives on it."""

import asyncio
from types import SimpleNamespace

from ottla.client.admin.request_router import RequestRouter
from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.record import TopicPartition
from ottla.spark.source.feed import Feed
from ottla.spark.source.options import parse
from ottla.spark.source.reading import rows_of
from ottla.spark.source.survey import Surveyor
from ottla.spark.source.table import Table
from ottla.wire.messages.fetch import FetchResponse
from tests.unit.client.consumer.broker import QUICK, MiniBroker

GIVEN = {"kafka.bootstrap.servers": "one:9092", "subscribe": "t", "fetchOffset.retryIntervalMs": "1"}
GIVEN |= {f"kafka.{name}": str(value) for name, value in QUICK.items() if name != "fetch.max.wait.ms"}


class SourceBroker(MiniBroker):
    """Answers fetches without a session, too."""

    async def _Fetch(self, request, code):
        if request.session_epoch != -1 or not request.topics:
            return await super()._Fetch(request, code)
        if code:
            return FetchResponse(error_code=code)
        [asked] = request.topics
        name = next((name for name, id in self.ids.items() if id == asked.topic_id), "?")
        wanted = {TopicPartition(name, part.partition): part for part in asked.partitions}
        kind = FetchResponse.FetchableTopicResponse
        parts = list(self._data(wanted, request.isolation_level).values())
        return FetchResponse(responses=[kind(topic_id=asked.topic_id, partitions=parts)])


def options(**more):
    return parse(GIVEN | {name.replace("__", "."): str(value) for name, value in more.items()})


def play(test, given=None, **partitions):
    """Run a test with a broker, a connection to it, and the options."""

    async def run():
        mini = SourceBroker(**(partitions or {"t": 1}))
        chosen = given or options()
        cluster = Cluster(chosen.settings, ClientConnections(chosen.settings, mini))
        await cluster.open()
        desk = RequestRouter(cluster, {**chosen.settings, "retries": 10})
        connection = SimpleNamespace(
            cluster=cluster, links=cluster.connections, desk=desk, settings=chosen.settings
        )
        try:
            async with asyncio.timeout(20):
                await test(mini, connection, chosen)
        finally:
            await cluster.close()

    asyncio.run(run())


async def drain(connection, chosen, task):
    """The rows of a task, as lists of offset and value; raises what the feed does."""
    feed = Feed(connection, chosen, task)
    feed.start()
    table = Table(("offset", "value"))
    rows = []
    while (portion := await asyncio.to_thread(feed.portions.get)) is not None:
        if isinstance(portion, Exception):
            raise portion
        for batch in rows_of(portion, table, task.end):
            rows += [(row["offset"], row["value"]) for row in batch.to_pylist()]
        feed.took()
    return rows


def surveyor(connection, chosen):
    return Surveyor(chosen, connection)
