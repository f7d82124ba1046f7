"""A plan on a session of Spark's: everything is put together here, and a query comes out."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.record import Record
from ottla.spark import register, session, translated
from ottla.streams.lowering.checkpoint import agree, kept_partitions
from ottla.streams.lowering.context import Context
from ottla.streams.lowering.execution import Execution
from ottla.streams.lowering.query import Handler, Trigger, start_by_batch, start_direct, stop
from ottla.streams.lowering.shape import shape
from ottla.streams.lowering.shipping import ship
from ottla.streams.lowering.silence import silence
from ottla.streams.lowering.topics import ClusterTopics, GivenTopics
from ottla.streams.plan.old_values import wants_old
from ottla.streams.plan.process import Process
from ottla.streams.plan.topology import Plan
from ottla.streams.settings import AppSettings

# What a topology means must not depend on how somebody has set up Spark.
_MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.adaptive.enabled": "false",
}
_PARTITIONS = "spark.sql.shuffle.partitions"


def own_session(settings: AppSettings) -> SparkSession:
    """Return a session of this app's own, on the one Spark of the process."""
    whole = session(settings.name, settings.master, **settings.spark)
    # A copy: what it is set to is nobody else's business.
    mine = SparkSession(whole.sparkContext, whole._jsparkSession.cloneSession())
    for name, value in _MEANING.items():
        mine.conf.set(name, value)
    return register(mine)


def deploy(
    settings: AppSettings,
    plan: Plan,
    *,
    show: Callable[[str], None],
    collect: Callable[[list[Record]], None] | None = None,
    available_now: bool = False,
) -> StreamingQuery:
    """Start the query of an app."""
    ship(plan)
    spark = own_session(settings)
    checkpoint = _absolute(settings.checkpoint)
    partitions = (
        settings.partitions or kept_partitions(spark, checkpoint) or int(spark.conf.get(_PARTITIONS) or 1)
    )
    spark.conf.set(_PARTITIONS, str(partitions))
    context = Context(
        spark=spark,
        app=settings.name,
        read=ClusterTopics(spark, settings.source_options).read,
        partitions=partitions,
        updates=settings.updates,
        bootstrap_servers=settings.bootstrap_servers,
        client_settings=settings.client,
        dead_letters=settings.dead_letters,
        wants_old=wants_old(plan),
        native=settings.native,
    )
    execution = Execution(plan, context)
    trigger = Trigger(settings.every or _natural(plan), available_now)
    with translated():
        agree(spark, checkpoint, shape(execution.flow.remembered, execution.flow.order, partitions, context))
        if execution.is_direct and collect is None:
            return start_direct(execution, settings.name, checkpoint, trigger, settings.sink_options)
        handler = Handler(execution, _writer(settings), show, collect)
        return start_by_batch(execution, settings.name, checkpoint, trigger, handler)


def _natural(plan: Plan) -> str:
    """How often micro-batches begin unless told. With timers by the wall Spark would run them without a pause."""
    makers = [each.processor for each in plan.nodes if isinstance(each, Process)]
    return "1 second" if any(getattr(make(), "wall_clock", False) for make in makers) else "0 seconds"


def _writer(settings: AppSettings) -> Callable[[DataFrame, int], None]:
    from ottla.spark import write_batch

    options = settings.sink_options

    def write(rows: DataFrame, number: int) -> None:
        write_batch(rows, number, **options)

    return write


def _absolute(checkpoint: str) -> str:
    """An address as it is; a directory of this machine from its root."""
    return checkpoint if "://" in checkpoint else Path(checkpoint).absolute().as_uri()


class Trial:
    """A plan on given records, round by round."""

    def __init__(self, settings: AppSettings, plan: Plan, directory: Path) -> None:
        ship(plan)
        self._spark = own_session(settings)
        self._spark.conf.set(_PARTITIONS, "1")
        self._settings = settings
        self._plan = plan
        self._checkpoint = (directory / "checkpoint").as_uri()
        self._topics = GivenTopics(self._spark, directory / "topics")
        self._given: dict[str, list[Record]] = {}

    def round(self, given: Mapping[str, Sequence[Record]], batches: int) -> list[Record]:
        """Run on some records more, and return what comes out of them."""
        for topic, records in given.items():
            self._given.setdefault(topic, []).extend(records)
        self._topics.give(self._plan.sources, given, batches)
        context = Context(
            spark=self._spark,
            app=self._settings.name,
            read=self._topics.read,
            partitions=1,
            updates=self._settings.updates,
            given=self._given,
            dead_letters=self._settings.dead_letters,
            wants_old=wants_old(self._plan),
            native=self._settings.native,
        )
        execution = Execution(self._plan, context)
        found: list[Record] = []
        handler = Handler(execution, None, _say_nothing, found.extend)
        with translated(), silence(self._settings.name):
            query = start_by_batch(
                execution, self._settings.name, self._checkpoint, Trigger(available_now=True), handler
            )
            try:
                query.awaitTermination()
            finally:
                stop(query)
        return found


def _say_nothing(text: str) -> None:
    pass
