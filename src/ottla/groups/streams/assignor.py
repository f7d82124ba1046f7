"""The sticky assignor: who shall run which task, with as little moved as an even spread allows.

A1  Every task has one active runner; standbys are with other processes than that, and than each other.
A2  A task stays where it was active, or else goes where it was a standby, as long as that member's fair share is not
    used up; the rest goes to the process with the least to do for each of its members.
A3  Nobody is assigned tasks to warm up.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.groups.streams.tasks import Partitions, Tasks

Task = tuple[str, int]
# What Kafka calls it.
NAME = "sticky"


class Runner(NamedTuple):
    """A member, as the assignor sees it: its process, and what it should run so far."""

    process_id: str
    target: Tasks


class Work(NamedTuple):
    """What there is to run: how many tasks each subtopology has, which of them keep state, and how many standbys."""

    tasks: Mapping[str, int]
    stateful: frozenset[str]
    standbys: int


def assign(members: Mapping[str, Runner], work: Work) -> dict[str, Tasks]:
    """Return what each member shall run."""
    if not members:
        return {}
    plan = _Plan(members, work)
    plan.place_active()
    if work.standbys > 0:
        plan.place_standbys()
    return {
        member_id: Tasks(_table(seat.active), _table(seat.standby)) for member_id, seat in plan.seats.items()
    }


class _Process:
    """A process: its members, and all that they run."""

    __slots__ = ("order", "seats", "tasks", "total")

    def __init__(self, order: int) -> None:
        self.order = order
        self.seats: list[_Seat] = []
        self.tasks: set[Task] = set()
        self.total = 0

    @property
    def load(self) -> float:
        return self.total / len(self.seats)

    @property
    def least(self) -> "_Seat":
        return min(self.seats, key=lambda seat: seat.count)


class _Seat:
    """A member with what it shall run."""

    __slots__ = ("active", "process", "standby")

    def __init__(self, process: _Process) -> None:
        self.process = process
        self.active: set[Task] = set()
        self.standby: set[Task] = set()

    @property
    def count(self) -> int:
        return len(self.active) + len(self.standby)


class _Quota:
    """A fair share, which is counted anew whenever a member has all of it."""

    __slots__ = ("_members", "_tasks", "share")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.share = self._fair()

    def reached(self, count: int) -> None:
        """Take note of how much a member now has."""
        if count == self.share:
            self._members -= 1
            self._tasks -= count
            self.share = self._fair()

    def _fair(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _Queue:
    """Processes by their load."""

    __slots__ = ("_heap",)

    def __init__(self, processes: Iterable[_Process]) -> None:
        self._heap = [(each.load, each.order, each) for each in processes]
        heapq.heapify(self._heap)

    def take(self, without: Task | None = None) -> _Process | None:
        """Take out the process with the least load that does not have a task."""
        passed = []
        found = None
        while self._heap and found is None:
            entry = heapq.heappop(self._heap)
            if without is not None and without in entry[2].tasks:
                passed.append(entry)
            else:
                found = entry[2]
        for entry in passed:
            heapq.heappush(self._heap, entry)
        return found

    def put(self, process: _Process) -> None:
        heapq.heappush(self._heap, (process.load, process.order, process))


class _Plan:
    """The assignment as it grows."""

    def __init__(self, members: Mapping[str, Runner], work: Work) -> None:
        self._work = work
        self._processes: dict[str, _Process] = {}
        self.seats: dict[str, _Seat] = {}
        self._was_active: dict[Task, _Seat] = {}
        self._was_standby: dict[Task, list[_Seat]] = {}
        for member_id, runner in members.items():
            process = self._processes.setdefault(runner.process_id, _Process(len(self._processes)))
            seat = self.seats[member_id] = _Seat(process)
            process.seats.append(seat)
            for task in _listed(runner.target.active):
                self._was_active[task] = seat
            for task in _listed(runner.target.standby):
                self._was_standby.setdefault(task, []).append(seat)
        active = sum(work.tasks.values())
        standby = work.standbys * sum(work.tasks[each] for each in work.stateful)
        self._active_quota = _Quota(active, len(members))
        self._quota = _Quota(active + standby, len(members))

    def place_active(self) -> None:
        # By partition first, for so they were paired when they were assigned.
        tasks = sorted(self._tasks(self._work.tasks), key=lambda task: (task[1], task[0]))
        tasks = [task for task in tasks if not self._keep_active(self._was_active.get(task), task)]
        tasks = [task for task in tasks if not self._keep_active(self._least_loaded(task), task)]
        queue = _Queue(self._processes.values())
        for task in sorted(tasks):
            process = queue.take()
            assert process is not None, "there is a member, so there is a process"
            self._add(process.least, task, active=True)
            queue.put(process)

    def place_standbys(self) -> None:
        tasks = sorted(self._tasks(self._work.stateful), key=lambda task: (task[1], task[0]), reverse=True)
        rest = []
        for task in tasks:
            for copy in range(self._work.standbys):
                if not self._keep_standby(task):
                    rest.append((task, self._work.standbys - copy))
                    break
        queue = _Queue(self._processes.values())
        for task, copies in sorted(rest, reverse=True):
            for _ in range(copies):
                process = queue.take(without=task)
                if process is None:
                    # Too few processes for so many standbys.
                    break
                self._add(process.least, task, active=False)
                queue.put(process)

    def _keep_active(self, seat: _Seat | None, task: Task) -> bool:
        if seat is None or seat.count >= self._active_quota.share:
            return False
        self._add(seat, task, active=True)
        return True

    def _keep_standby(self, task: Task) -> bool:
        for seat in (self._was_active.get(task), self._least_loaded(task)):
            if seat is not None and task not in seat.process.tasks and seat.count < self._quota.share:
                self._add(seat, task, active=False)
                return True
        return False

    def _least_loaded(self, task: Task) -> _Seat | None:
        """Return the former standby that has the least to do, unless the first of them has the task already."""
        seats = self._was_standby.get(task)
        if not seats or task in seats[0].process.tasks:
            return None
        found = seats[0]
        for seat in seats[1:]:
            if (
                seat.process.load < found.process.load
                and seat.count < found.count
                and task not in seat.process.tasks
            ):
                found = seat
        return found

    def _add(self, seat: _Seat, task: Task, *, active: bool) -> None:
        (seat.active if active else seat.standby).add(task)
        seat.process.tasks.add(task)
        seat.process.total += 1
        if active:
            self._active_quota.reached(seat.count)
        self._quota.reached(seat.count)

    def _tasks(self, subtopologies: Iterable[str]) -> list[Task]:
        return [(each, partition) for each in subtopologies for partition in range(self._work.tasks[each])]


def _listed(tasks: Partitions) -> Iterable[Task]:
    return ((each, partition) for each, partitions in tasks.items() for partition in partitions)


def _table(tasks: Iterable[Task]) -> Partitions:
    found: dict[str, set[int]] = {}
    for subtopology, partition in tasks:
        found.setdefault(subtopology, set()).add(partition)
    return {each: frozenset(partitions) for each, partitions in found.items()}
