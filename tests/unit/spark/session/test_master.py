"""Where Spark may run, and how many tasks at once."""

import pytest

from ottla.spark.failure import SparkFailure
from ottla.spark.master import parse

LOCAL = {"local": 1, "local[3]": 3, "local[*]": 16, "local[2,4]": 2, "local[*, 2]": 16}
CLUSTERS = [
    "spark://10.0.0.1:7077",
    "spark://a:7077,b:7077",
    "yarn",
    "k8s://https://10.0.0.1:6443",
    "local-cluster[2,1,1024]",
]


@pytest.mark.parametrize(("url", "cores"), LOCAL.items())
def test_local(url: str, cores: int) -> None:
    assert parse(url).is_local
    assert parse(url).cores(16, {"spark.cores.max": "99"}) == cores


@pytest.mark.parametrize("url", CLUSTERS)
def test_a_cluster(url: str) -> None:
    master = parse(url)
    assert not master.is_local
    assert master.cores(16, {}) is None
    assert master.cores(16, {"spark.cores.max": "6"}) == 6
    assert master.cores(16, {"spark.executor.instances": "3"}) == 3
    assert master.cores(16, {"spark.executor.instances": "3", "spark.executor.cores": "4"}) == 12


@pytest.mark.parametrize(
    "url", ["", "locl[2]", "local[]", "local[x]", "spark://host", "mesos://host:5050", "http://a:1"]
)
def test_no_such_master(url: str) -> None:
    with pytest.raises(SparkFailure, match="no such master") as caught:
        parse(url)
    assert "local[*]" in caught.value.hint


def test_connect_makes_its_own_sessions() -> None:
    with pytest.raises(SparkFailure) as caught:
        parse("sc://host:15002")
    assert "register()" in caught.value.hint


def test_addresses() -> None:
    assert parse("spark://a:7077,[::1]:7078").addresses == [("a", 7077), ("::1", 7078)]
    assert parse("yarn").addresses == []
