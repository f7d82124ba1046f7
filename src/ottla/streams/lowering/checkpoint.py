"""The shape of a topology beside the checkpoint that it wrote, so that another shape is refused in words.

Spark finds state by the place of an operator in a query. Who adds an operator with state, or removes one, or changes
what it keeps, would have it find the state of another, or fail with a stack trace.
"""

import json
from typing import Any

from pyspark.sql import SparkSession

from ottla.streams.errors import TopologyChanged
from ottla.streams.lowering.shape import difference

_FILE = "ottla-topology.json"


def kept_partitions(spark: SparkSession, checkpoint: str) -> int | None:
    """Return into how many partitions a checkpoint's state is divided; None where there is no checkpoint yet."""
    found = _Place(spark, checkpoint).read()
    return None if found is None else found.get("partitions")


def agree(spark: SparkSession, checkpoint: str, wanted: dict[str, Any]) -> None:
    """Write a topology's shape beside a new checkpoint; TopologyChanged where an old one was written by another."""
    place = _Place(spark, checkpoint)
    found = place.read()
    differs = None if found is None else difference(found, wanted)
    if differs is not None:
        raise TopologyChanged(
            f"the checkpoint {checkpoint} was written by another topology: {differs}",
            hint="undo the change; or begin anew with another checkpoint=, or another name of the app",
        )
    if found != wanted:
        # What is kept from now on may be more than what was.
        place.write(wanted)


class _Place:
    """The file beside a checkpoint, wherever Spark can write."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        jvm: Any = spark._jvm
        self._jvm: Any = jvm
        directory = jvm.org.apache.hadoop.fs.Path(checkpoint)
        self._files = directory.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        self._path = jvm.org.apache.hadoop.fs.Path(directory, _FILE)

    def read(self) -> dict[str, Any] | None:
        """Return what was written, or None."""
        if not self._files.exists(self._path):
            return None
        stream = self._files.open(self._path)
        try:
            found: dict[str, Any] = json.loads(
                bytes(self._jvm.org.apache.hadoop.io.IOUtils.readFullyToByteArray(stream))
            )
        finally:
            stream.close()
        return found

    def write(self, wanted: dict[str, Any]) -> None:
        """Write it."""
        stream = self._files.create(self._path, True)
        try:
            stream.write(bytearray(json.dumps(wanted, indent=1, sort_keys=True).encode()))
        finally:
            stream.close()
