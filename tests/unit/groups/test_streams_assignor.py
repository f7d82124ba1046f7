"""The sticky assignor: an even spread, little moved, standbys elsewhere."""

from ottla.groups.streams.assignor import Runner, Work, assign
from ottla.groups.streams.tasks import Tasks


def work(standbys=0, stateful=(), **tasks):
    return Work(tasks, frozenset(stateful), standbys)


def members(targets=None, **processes):
    targets = targets or {}
    return {name: Runner(process, targets.get(name, Tasks())) for name, process in processes.items()}


def counts(found):
    return {name: sum(map(len, tasks.active.values())) for name, tasks in found.items()}


def pairs(tasks):
    return {(name, partition) for name, partitions in tasks.items() for partition in partitions}


def test_nobody_runs_nothing():
    assert assign({}, work(s=3)) == {}


def test_threads_get_equal_shares():
    found = assign(members(a="p", b="p", c="q"), work(s=5, t=4))
    assert counts(found) == {"a": 3, "b": 3, "c": 3}


def test_processes_with_more_threads_get_more():
    found = counts(assign(members(a="p", b="p", c="p", d="q"), work(s=4)))
    assert found == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_nothing_moves_without_need():
    first = assign(members(a="p", b="q"), work(s=4, t=4))
    assert assign(members(first, a="p", b="q"), work(s=4, t=4)) == first


def test_a_newcomer_takes_only_what_the_others_have_too_many_of():
    first = assign(members(a="p", b="q"), work(s=6))
    second = assign(members(first, a="p", b="q", c="r"), work(s=6))
    assert counts(second) == {"a": 2, "b": 2, "c": 2}
    for name in "ab":
        assert pairs(second[name].active) <= pairs(first[name].active)


def test_a_standby_takes_over_where_the_active_has_gone():
    before = {"c": Tasks(standby={"s": frozenset({0})})}
    found = assign(members(before, b="q", c="r", d="t"), work(standbys=1, stateful=["s"], s=1))
    assert found["c"].active == {"s": {0}}
    assert not found["c"].standby


def test_the_active_one_stays_a_standby_when_it_has_its_share():
    before = {"a": Tasks(active={"s": frozenset({0, 1, 2, 3})})}
    found = assign(members(before, a="p", b="q"), work(standbys=1, stateful=["s"], s=4))
    assert counts(found) == {"a": 2, "b": 2}
    assert pairs(found["a"].standby) == pairs(found["b"].active)


def test_standbys_are_with_other_processes():
    found = assign(members(a="p", b="p", c="q", d="r"), work(standbys=2, stateful=["s"], s=4, t=3))
    where = {"a": "p", "b": "p", "c": "q", "d": "r"}
    for task in [("s", number) for number in range(4)]:
        hosts = [
            where[name]
            for name, tasks in found.items()
            for role in (tasks.active, tasks.standby)
            if task in pairs(role)
        ]
        assert sorted(hosts) == ["p", "q", "r"]
    assert not any("t" in tasks.standby for tasks in found.values())


def test_too_few_processes_have_as_many_standbys_as_they_can():
    found = assign(members(a="p", b="p"), work(standbys=1, stateful=["s"], s=2))
    assert all(not tasks.standby for tasks in found.values())


def test_first_tasks_come_in_ranges():
    found = assign(members(a="p", b="q"), work(s=2, t=2))
    assert found["a"].active == {"s": {0}, "t": {0}}
    assert found["b"].active == {"s": {1}, "t": {1}}
