"""Spark on Ottla and on Apache Kafka: a session that starts by itself, and the format `ottla` to read and to write.

    from ottla.spark import session

    spark = session()
    spark.read.format("ottla").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders").load()

Names are imported when first used; without PySpark there is one clear error.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.spark.installed import require_pyspark

if TYPE_CHECKING:
    from ottla.spark.failure import SparkFailure, translated
    from ottla.spark.sink.each_batch import each_batch, write_batch
    from ottla.spark.start import register, session

_PLACES = {
    "SparkFailure": "failure",
    "each_batch": "sink.each_batch",
    "register": "start",
    "session": "start",
    "translated": "failure",
    "write_batch": "sink.each_batch",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_pyspark(__name__)
    return getattr(import_module(f"{__name__}.{place}"), name)


__all__ = ["SparkFailure", "each_batch", "register", "session", "translated", "write_batch"]
