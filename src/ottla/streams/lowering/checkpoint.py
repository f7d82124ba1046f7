"""The shape of a topology beside the checkpoint that it wrote, so that another shape is refused in words.

Spark finds state by the place of an operator in a query. Who adds an operator with state, or removes one, or changes
what it keeps, would have it find the state of another, or fail with a stack trace.
"""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from pyspark.sql import SparkSession

from ottla.streams.errors import TopologyChanged
from ottla.streams.lowering.context import Context
from ottla.streams.plan.node import Node
from ottla.streams.plan.sources import Source, TableSource
from ottla.streams.plan.tables import ToTable

_FILE = "ottla-topology.json"


def shape(nodes: Sequence[Node], partitions: int, context: Context) -> dict[str, Any]:
    """Return what of a topology a checkpoint depends on."""
    operators = [_described(each, context) for each in nodes]
    return {"version": 1, "partitions": partitions, "operators": operators}


def _described(node: Node, context: Context) -> dict[str, Any]:
    found = {"name": node.name, "kind": node.kind}
    if isinstance(node, TableSource | ToTable):
        keeps = context.wants_old is None or node in context.wants_old
        found["state"] = "last values" if keeps else "none"
    elif node.stateful and context.native:
        found["state"] = "native"
    if node.stateful:
        found |= {"key": node.key.ddl(), "value": node.value.ddl()}
    if isinstance(node, Source):
        found["reads"] = node.pattern or ",".join(node.topics)
    window = getattr(node, "window", None)
    if window is not None:
        spans = [
            f"{each.name}={getattr(window, each.name)}"
            for each in fields(window)
            if each.name.endswith("_ms")
        ]
        found["window"] = f"{type(window).__name__}({', '.join(spans)})"
    return found


def kept_partitions(spark: SparkSession, checkpoint: str) -> int | None:
    """Return into how many partitions a checkpoint's state is divided; None where there is no checkpoint yet."""
    found = _Place(spark, checkpoint).read()
    return None if found is None else found.get("partitions")


def agree(spark: SparkSession, checkpoint: str, wanted: dict[str, Any]) -> None:
    """Write a topology's shape beside a new checkpoint; TopologyChanged where an old one was written by another."""
    place = _Place(spark, checkpoint)
    found = place.read()
    if found is None:
        place.write(wanted)
    else:
        _compare(found, wanted, checkpoint)


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


def _compare(found: dict[str, Any], wanted: dict[str, Any], checkpoint: str) -> None:
    if found == wanted:
        return
    raise TopologyChanged(
        f"the checkpoint {checkpoint} was written by another topology: {difference(found, wanted)}",
        hint="undo the change; or begin anew with another checkpoint=, or another name of the app",
    )


def difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Say the first thing in which two shapes differ."""
    if found.get("version") != wanted["version"]:
        return "it has a form that this version does not know"
    if found["partitions"] != wanted["partitions"]:
        return f"its state is in {found['partitions']} partitions, not {wanted['partitions']}"
    was = {each["name"]: each for each in found["operators"]}
    now = {each["name"]: each for each in wanted["operators"]}
    for name in was.keys() - now.keys():
        return f"{name} ({was[name]['kind']}) is gone"
    for name in now.keys() - was.keys():
        return f"{name} ({now[name]['kind']}) is new"
    for name, each in now.items():
        for field in sorted(each.keys() | was[name].keys()):
            if each.get(field) != was[name].get(field):
                return f"{name} has another {field}: {was[name].get(field)} then, {each.get(field)} now"
    return "its operators stand in another order"
