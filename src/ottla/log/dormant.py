"""A log that is nothing but a name yet, because nobody has asked for it since a clean stop.

The first attribute that only an open log has opens it and makes it a plain `Log`, whose attributes then cost nothing
extra. So a start with thousands of partitions pays for the ones in use. A log that cannot be opened stays a name, and
whoever touched it is told so in Kafka's words.
"""

import contextlib
from typing import Any

from ottla.log.config import LogConfig
from ottla.log.files import LogFiles
from ottla.log.home import Home
from ottla.log.identity import read_topic_id
from ottla.log.log import Log
from ottla.wire.uuid import ZERO_UUID
from ottla.world.disk import Disk

# What only an open log has.
_OPENED = (
    *("_active", "_bases", "_epochs", "_producers", "_segments", "_snapshots", "_sync", "_tail"),
    *("end_offset", "recovery_point", "start_offset"),
)


class DormantLog(Log):
    """A log to be opened when it is first asked for something."""

    __slots__ = ()

    is_dormant = True

    def __init__(
        self,
        home: Home,
        disk: Disk,
        path: str,
        topic: str,
        partition: int,
        config: LogConfig,
        checkpoints: tuple[int, int],
    ) -> None:
        super().__init__(home, disk, path, topic, partition, config)
        self._checkpoints = (*checkpoints, True)

    @property
    def is_sync_due(self) -> bool:
        """Not after a clean stop; and asking does not wake the log."""
        return False

    def __getattr__(self, name: str) -> Any:
        if name not in LogFiles.__slots__:
            raise AttributeError(name)
        start_offset, recovery_point, clean = self._checkpoints
        try:
            topic_id = read_topic_id(self._disk, self.path) or ZERO_UUID
            self.open(clean=clean, start_offset=start_offset, recovery_point=recovery_point)
        except OSError as error:
            for opened in _OPENED:  # or the next to ask would be given what was not opened to the end
                with contextlib.suppress(AttributeError):
                    delattr(self, opened)
            self._checkpoints = start_offset, recovery_point, False  # files were mended, maybe, and not synced
            raise self.storage_error(error) from error
        self.topic_id = topic_id
        self.__class__ = Log  # type: ignore[assignment]
        return getattr(self, name)
