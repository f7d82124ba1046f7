"""Spark says of every query that fails that it has; of one whose failure is raised here, that is once too often.

A filter of log4j's keeps back that one line, of queries of that one name, for as long as somebody waits for it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext

_SAYING = "org.apache.spark.sql.execution.streaming"


@contextmanager
def silence(name: str) -> Iterator[None]:
    """Inside, Spark does not say that the query of this name has failed: the program is told."""
    context = SparkContext._active_spark_context
    if context is None:
        yield
        return
    logs: Any = context._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    drop, keep = logs.core.Filter.Result.DENY, logs.core.Filter.Result.NEUTRAL
    words = rf"Query {re.escape(name)} \[id.*\] terminated with error"
    held = logs.core.filter.RegexFilter.createFilter(words, None, False, drop, keep)
    logger = logs.core.LoggerContext.getContext(False).getConfiguration().getLoggerConfig(_SAYING)
    logger.addFilter(held)
    try:
        yield
    finally:
        if SparkContext._active_spark_context is context:
            logger.removeFilter(held)
