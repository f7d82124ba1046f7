"""The process behind `SparkDriver`: makes a session, then runs what it is told, until its input ends.

Each line in is JSON, and each line out. Nothing else may be on the way out, so whatever Spark or Java print goes to
standard error.
"""

import importlib
import json
import operator
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(kind: str, result: object) -> None:
        answers.write(json.dumps([kind, result]) + "\n")
        answers.flush()

    master, settings, ottla = json.loads(sys.stdin.readline())
    try:
        spark = _session(master, settings, ottla)
    except Exception:  # noqa: BLE001 - whoever asked is told
        answer("error", traceback.format_exc())
        return
    answer("result", None)
    for line in sys.stdin:
        module, name, arguments = json.loads(line)
        try:
            function = operator.attrgetter(name)(importlib.import_module(module))
            answer("result", function(spark, *arguments))
        except Exception:  # noqa: BLE001
            answer("error", traceback.format_exc())
    spark.stop()


def _session(master: str, settings: dict[str, str], ottla: bool) -> "SparkSession":
    if ottla:
        from ottla.spark import session

        made: Any = session("driver", master, **settings)
        return made
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("driver")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
