"""Which processes have a task, in which role; what a member has yet to give up, its process still has."""

from ottla.groups.streams.member import Member
from ottla.groups.streams.tasks import Partitions

_Task = tuple[str, int]


class Owners:
    """The processes of all tasks of a group, kept as members change."""

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: dict[_Task, str] = {}
        self._standby: dict[_Task, set[str]] = {}
        self._warmup: dict[_Task, set[str]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owners) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def is_active(self, subtopology: str, partition: int) -> bool:
        """Whether a task is active anywhere."""
        return (subtopology, partition) in self._active

    def is_spare(self, subtopology: str, partition: int, process_id: str) -> bool:
        """Whether a process has a task as a standby, or warms it up."""
        task = subtopology, partition
        return process_id in self._standby.get(task, ()) or process_id in self._warmup.get(task, ())

    def is_with(self, subtopology: str, partition: int, process_id: str) -> bool:
        """Whether a process has a task in any role."""
        return self._active.get((subtopology, partition)) == process_id or self.is_spare(
            subtopology, partition, process_id
        )

    def add(self, member: Member) -> None:
        """Take in what a member has."""
        for holding in (member.assigned, member.revoking):
            for each, dates in holding.active.items():
                for partition in dates:
                    self._active[each, partition] = member.process_id
            for table, tasks in ((self._standby, holding.standby), (self._warmup, holding.warmup)):
                for task in _listed(tasks):
                    table.setdefault(task, set()).add(member.process_id)

    def remove(self, member: Member) -> None:
        """Take out what a member has, but for what another process has got since."""
        for holding in (member.assigned, member.revoking):
            for each, dates in holding.active.items():
                for partition in dates:
                    if self._active.get((each, partition)) == member.process_id:
                        del self._active[each, partition]
            for table, tasks in ((self._standby, holding.standby), (self._warmup, holding.warmup)):
                for task in _listed(tasks):
                    processes = table.get(task, set())
                    processes.discard(member.process_id)
                    if not processes:
                        table.pop(task, None)


def _listed(tasks: Partitions) -> list[_Task]:
    return [(each, partition) for each, partitions in tasks.items() for partition in partitions]
