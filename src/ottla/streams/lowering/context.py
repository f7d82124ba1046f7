"""What the lowering of an operator may know besides the operator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ottla.client.record import Record
from ottla.streams.plan.node import Node
from ottla.streams.plan.sources import Source


@dataclass(frozen=True, slots=True)
class Context:
    """Where and how a topology runs.

    `read` gives the raw records of a source: a streaming DataFrame with the columns of the source `ottla`.
    `given` is set in a test alone: all records of each topic, as bytes.
    `partitions` is into how many parts the state of each operator is divided; `updates` says whether a table shows
    every change ("all"), or one a key and micro-batch ("last"). `dead_letters` is the topic of records that cannot be
    read. `wants_old` are the operators of whose changes somebody asks what was there before (None: all). With `native`
    the one count there is is left to Spark's own aggregation.
    """

    spark: SparkSession
    app: str
    read: Callable[[Source], DataFrame]
    partitions: int
    updates: str = "all"
    bootstrap_servers: str = ""
    client_settings: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Sequence[Record]] | None = None
    dead_letters: str | None = None
    wants_old: frozenset[Node] | None = None
    native: bool = False
