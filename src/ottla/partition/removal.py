"""Logs that are to go, with those whose directory could not be renamed yet.

W1  A log is out of service at once, whatever the disk says. What is left of it on disk goes in a later try.
W2  No log takes the place of one that is still to go: its files would be read as the new one's.
"""

from collections.abc import Callable

from ottla.log.directory import LogDirectory
from ottla.log.log import Log
from ottla.wire.errors import BrokerError

Name = tuple[str, int]


class Removals:
    """The logs of one node that are to go."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: dict[Name, list[tuple[LogDirectory, Log]]] = {}

    def __len__(self) -> int:
        return len(self._left)

    def remove(self, directory: LogDirectory, log: Log, report: Callable[[str], None]) -> None:
        """Take a log out of service. Where its files cannot go yet, `report` is told, and it is tried again."""
        error = _delete(directory, log)
        if error is not None:
            name = (log.topic, log.partition)
            self._left.setdefault(name, []).append((directory, log))
            report(f"{log.path} could not be deleted, which is tried again: {error}")

    def finish(self, name: Name) -> None:
        """Remove what is left of the logs of a name, or raise why it cannot be done."""
        left = self._left.get(name, [])
        while left:
            directory, log = left[0]
            # Another start sees by its topic id that a log of a directory that failed is of no use.
            error = None if directory.offline is not None else _delete(directory, log)
            if error is not None:
                raise error
            del left[0]
        self._left.pop(name, None)

    def try_again(self, count: int) -> None:
        """Try some of those that are left."""
        for name in tuple(self._left)[:count]:
            try:
                self.finish(name)
            except Exception as error:  # noqa: BLE001  # whatever it is, the others have their turn
                if not isinstance(error, (OSError, BrokerError)):
                    self._left[name][0][0].bug(error)
                self._left[name] = self._left.pop(name)  # behind the others


def _delete(directory: LogDirectory, log: Log) -> OSError | BrokerError | None:
    try:
        directory.delete_log(log)
    except BrokerError as error:
        return error  # which the log has told its directory of
    except OSError as error:
        directory.judge(error)
        return error
    return None
