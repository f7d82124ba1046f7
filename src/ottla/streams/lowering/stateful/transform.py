"""The chain of stages in Spark: each shuffles all parcels by operator partition and runs its operator on its own.

All in append mode and without Spark's watermarks, so that operators follow one another in one query, and the
exactly-once sink takes what comes out.
"""

from pyspark.sql import DataFrame

from ottla.streams.lowering.context import Context
from ottla.streams.lowering.stateful.host import Frame, Host
from ottla.streams.lowering.stateful.operator import Operator
from ottla.streams.lowering.stateful.parcels import PARCELS


def transformed(parcels: DataFrame, operator: Operator, frame: Frame, context: Context) -> DataFrame:
    """Return the parcels behind an operator."""
    # A query with timers by the wall asks for one micro-batch after another, and a test would never end.
    is_woken = operator.wall_clock and context.given is None
    return parcels.groupBy("label").transformWithState(
        Host(operator, frame), PARCELS, "append", "ProcessingTime" if is_woken else "None"
    )
