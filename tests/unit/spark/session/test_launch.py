"""A start of Java that is interrupted leaves none behind."""

import subprocess
from typing import Any

import pytest
from pyspark import SparkContext

from ottla.spark import launch
from ottla.world.children import children


def test_an_interrupted_start_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def interrupted(conf: Any, popen_kwargs: Any) -> None:
        started.append(subprocess.Popen(["sleep", "100"], **popen_kwargs))
        assert started[0].pid in children()
        raise KeyboardInterrupt

    other = subprocess.Popen(["sleep", "100"])
    try:
        monkeypatch.setattr(launch, "launch_gateway", interrupted)
        monkeypatch.setattr(SparkContext, "_gateway", None)
        with pytest.raises(KeyboardInterrupt):
            launch._gateway({}, None)
        assert started[0].wait(10) < 0
        assert other.poll() is None, "it is none of ours"
    finally:
        other.kill()
        other.wait()
