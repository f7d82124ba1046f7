"""A log that has been created and not written to yet, which takes up memory but no disk.

Making a directory and its files is the dearest part of creating a topic with many partitions, and nothing is lost with
them: which partitions there are is the metadata log's to say. So they are made with the first batch, or by
`LogDirectory.make_some` when there is time, and the log is a plain `Log` from then on.
"""

from typing import Any

from ottla.log.appended import Appended
from ottla.log.identity import write_topic_id
from ottla.log.log import Log
from ottla.log.lookup import Pause
from ottla.wire.uuid import ZERO_UUID
from ottla.world.disk import Bytes


class NascentLog(Log):
    """An empty log whose files are still to be made."""

    __slots__ = ()

    is_nascent = True

    def make(self) -> None:
        """Make directory and files. A failure is a storage error, and leaves the log to be made another time."""
        try:
            # A log of the same name may have been here until just now.
            self._home.before_truncations([(self, 0)])
            self._disk.make_dirs(self.path)
            beside = []
            if self.topic_id != ZERO_UUID:
                beside.append(write_topic_id(self._disk, self.path, self.topic_id))
            self._make_files(beside)
        except OSError as error:
            raise self.storage_error(error) from error
        self.__class__ = Log  # type: ignore[assignment]

    def append(self, *batch: Any, **how: Any) -> Appended:
        """Make the files, then append."""
        self.make()
        return self.append(*batch, **how)

    def append_as_follower(self, records: Bytes) -> Appended:
        """Make the files, then append."""
        self.make()
        return self.append_as_follower(records)

    def roll(self, base_offset: int = 0) -> None:
        """Make the files, then roll, which may ask for another base offset."""
        self.make()
        self.roll(base_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Make the files, then begin elsewhere."""
        self.make()
        self.truncate_fully_and_start_at(offset)

    def move(self, path: str) -> None:
        """Make the files, then rename their directory."""
        self.make()
        self.move(path)

    def settle(self, *, closing: bool = False) -> None:
        """Have nothing to write: a leader's epoch matters once it has written something."""

    def delete(self) -> None:
        """Have nothing to remove."""

    def candidate(self, timestamp: int, from_offset: int = 0, pause: Pause | None = None) -> None:
        """Find nothing, and ask no file how old it is."""

    def newest_candidate(self) -> None:
        """Find nothing."""
