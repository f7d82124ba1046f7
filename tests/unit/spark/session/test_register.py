"""The format is registered by one thread at a time: each changes what PySpark hands to Java, and puts it back."""

import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from ottla.spark import start


class Registry:
    """Goes through the environment as slowly as Java is told of it."""

    def __init__(self, environment):
        self._environment = environment
        self.seen = []

    def register(self, _):
        seen = []
        for name in self._environment:
            time.sleep(0.002)
            seen.append(name)
        self.seen.append(seen)


def test_threads_that_register_at_once_do_not_meet():
    environment = {"OWN": "1"}
    registry = Registry(environment)
    spark = SimpleNamespace(_sc=SimpleNamespace(environment=environment), dataSource=registry)
    failures = []

    def work():
        try:
            start.register(spark)
        except RuntimeError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    assert registry.seen == [["OWN", *start._SET_BY_STREAMS]] * 8
    assert environment == {"OWN": "1"}
