"""The result of a benchmark: what an earlier run has measured stays where it can be compared."""

import json

import pytest

from bench.report import Result

MACHINE = {"cores": "2"}
SIZES = {"megabytes": 5}


def result(command, figures, machine=MACHINE, sizes=SIZES):
    found = Result(command, dict(machine), dict(sizes))
    for product in ("ottla", "kafka"):
        found.add(product, figures)
    return found


def put(path, found):
    path.write_text(json.dumps(found.document()))
    return path


def test_figures_of_other_scenarios_stay(tmp_path):
    path = put(tmp_path / "broker.json", result("one", {"requests.per_s": 1.0, "start.first_ack_s": 2.0}))
    second = result("two", {"start.first_ack_s": 3.0})
    second.keep(path)
    assert second.rounds["kafka"] == {"requests.per_s": [1.0], "start.first_ack_s": [3.0]}
    assert second.page().startswith("# Ottla beside Apache Kafka\n\nMade by `one` and `two` on: cores 2.")
    third = result("three", {"start.first_ack_s": 4.0})
    third.keep(put(path, second))
    assert third.made == {"requests.per_s": "one"}


def test_figures_of_the_other_product_stay(tmp_path):
    path = put(tmp_path / "broker.json", result("one", {"start.first_ack_s": 2.0}))
    alone = Result("two", dict(MACHINE), dict(SIZES))
    alone.add("ottla", {"start.first_ack_s": 1.0})
    alone.keep(path)
    assert alone.medians() == {"ottla": {"start.first_ack_s": 1.0}, "kafka": {"start.first_ack_s": 2.0}}


@pytest.mark.parametrize("other", [{"machine": {"cores": "4"}}, {"sizes": {"megabytes": 6}}])
def test_figures_of_another_machine_or_size_do_not(tmp_path, other):
    path = put(tmp_path / "broker.json", result("one", {"requests.per_s": 1.0}, **other))
    second = result("two", {"start.first_ack_s": 3.0})
    second.keep(path)
    assert second.rounds["ottla"] == {"start.first_ack_s": [3.0]}
    second.keep(tmp_path / "none.json")
