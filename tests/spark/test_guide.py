"""Every example of the guide runs, in the order of the page, in one session."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "spark.md"


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(300)
def test_every_example_runs(spark: "SparkSession", broker: Broker, tmp_path: Path) -> None:
    assert len(examples()) >= 2
    for number, example in enumerate(examples(), 1):
        code = example.replace("localhost:9092", broker.bootstrap)
        # A relative path is one of where Java was started.
        code = code.replace('"checkpoints/', f'"{tmp_path}/')
        # As a program: what it defines travels to the workers with it.
        exec(compile(code, f"{PAGE.name}, example {number}", "exec"), {"__name__": "__main__"})
    spark.conf.unset("spark.sql.session.timeZone")
