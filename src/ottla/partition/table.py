"""The partitions of this node, by name and by id, kept in step with the metadata image.

P1  `apply` opens, closes and promotes; everything else is look-up, and look-ups are on the hot path: two plain dicts.
P2  A partition whose log was closed cleanly sleeps until somebody asks for it, so that a start does not read the data.
P3  A log that the image does not know is a stray: it is put aside under a name that says so, never deleted.
P4  A new log goes to the directory with the fewest, of those that are not cordoned (KIP-1066) if there are any.
P5  A log whose directory this node does not have (it was taken out of `log.dirs`, or formatted anew) is not made anew
    while this replica may be needed for what it held: the partition is offline, and no empty log can be elected. It is
    made, to be filled by its leader, once another replica leads and this one counts as out of sync; and where the topic
    allows unclean elections.
P6  What fails for one partition of a change is reported, and keeps no other from following it. Likewise for one that
    cannot be opened or made, whatever the reason: it is reported, stays as it was, and is tried again after the others.

    apply(created) --> asleep --wake()--> awake --apply(removed)--> gone        (parked replies fail)
"""

import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.log import Log
from ottla.log.names import STRAY_DIR, marked_dir
from ottla.metadata.config import ConfigType
from ottla.metadata.delta import Delta
from ottla.metadata.directory import is_reserved
from ottla.metadata.image import Image
from ottla.metadata.topics import NO_LEADER, PartitionState, Topic
from ottla.partition.inherited_settings import InheritedSettings
from ottla.partition.partition import Flusher, Partition
from ottla.partition.refusal import directory_offline, moved_away, unknown_partition, unknown_topic_id
from ottla.partition.removal import Removals
from ottla.partition.roles import Roles
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.uuid import ZERO_UUID, uuid_text

Name = tuple[str, int]
T = TypeVar("T")


class Sleeper(NamedTuple):
    """A partition nobody has asked for yet."""

    log: Log
    directory: LogDirectory
    topic_id: bytes
    leader_epoch: int


Effective = Callable[[Mapping[str, str]], Mapping[str, Any]]


class PartitionTable:
    """Every partition that has a replica here. `effective` turns a topic's overrides into all its typed settings."""

    def __init__(
        self,
        node_id: int,
        directories: list[LogDirectory],
        flusher: Flusher,
        effective: Effective,
        unique: Callable[[], bytes],
        roles: Roles | None = None,
    ) -> None:
        """Without `roles` every partition leads, as it does where there is one broker."""
        self.roles = roles
        self.node_id = node_id
        self.directories = directories
        self.partitions: dict[Name, Partition] = {}
        self.asleep: dict[Name, Sleeper] = {}
        self._ids: dict[tuple[bytes, int], Name] = {}
        self.awake_by_id: dict[tuple[bytes, int], Partition] = {}
        self._offline: set[Name] = set()
        # Partitions whose log could not be made for want of room; each use tries again.
        self._unmade: dict[Name, tuple[bytes, PartitionState, LogConfig]] = {}
        self._flusher = flusher
        self._effective = effective
        self._unique = unique
        self._image: Image | None = None
        self.inherited = InheritedSettings(lambda: effective({}), lambda: self._image, self._reconfigure)
        # Whether a directory takes no new partitions, and whom to tell what an operator should know.
        self.is_cordoned: Callable[[LogDirectory], bool] = lambda directory: False
        self.report: Callable[[str], None] = lambda text: None
        # Whether a bug ends the start, instead of being reported (P6).
        self.is_starting: Callable[[], bool] = lambda: False
        self._removals = Removals()
        self._missing: set[bytes] = set()
        # What was known to be committed before the start, by directory.
        self._checkpointed: dict[str, Mapping[Name, int]] = {}

    # Look-up

    def by_name(self, topic: str, index: int) -> Partition:
        """Return a partition by its topic's name, or raise UNKNOWN_TOPIC_OR_PARTITION."""
        partition = self.partitions.get((topic, index))
        return self._wake_or_refuse((topic, index), unknown_partition) if partition is None else partition

    def by_id(self, topic_id: bytes, index: int) -> Partition:
        """Return a partition by its topic's id, or raise UNKNOWN_TOPIC_ID."""
        partition = self.awake_by_id.get((topic_id, index))
        if partition is not None:
            return partition
        name = self._ids.get((topic_id, index))
        if name is None and self._image is not None:
            topic = self._image.topics.by_id.get(topic_id)
            if topic is not None and index in topic.partitions:
                raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if name is None:
            # A known topic without that partition is the older error: the id is right, the index is not.
            raise unknown_partition() if (topic_id, 0) in self._ids else unknown_topic_id()
        return self._wake_or_refuse(name, unknown_topic_id)

    def find(self, key: tuple[str | bytes, int], by_id: bool) -> Partition | None:
        """Return a partition by either key, or None."""
        topic: Any = key[0]
        try:
            return self.by_id(topic, key[1]) if by_id else self.by_name(topic, key[1])
        except BrokerError:
            return None

    def high_watermarks(self, directory: LogDirectory) -> dict[Name, int]:
        """Return the high watermark of every partition that is awake in a directory."""
        return {
            name: partition.high_watermark
            for name, partition in self.partitions.items()
            if directory.logs.get(name) is partition.log
        }

    def names(self) -> list[Name]:
        """Return the name of every partition, awake or not."""
        return [*self.partitions, *self.asleep]

    def __len__(self) -> int:
        return len(self.partitions) + len(self.asleep)

    def wake_some(self, count: int) -> bool:
        """Wake up to `count` sleepers, and make what could not be made; say whether to go on at once.

        One that cannot be woken stays asleep behind the others.
        """
        woken = 0
        for name in tuple(self.asleep)[:count]:
            woken += name in self.asleep and self._try_to_wake(name)
        for name in tuple(self._unmade)[:count]:
            self._make(name, *self._unmade[name])
        self._removals.try_again(count)
        return bool(woken and self.asleep)

    def _try_to_wake(self, name: Name) -> bool:
        try:
            self._wake(name)
        except BrokerError:
            if name in self.asleep:  # and not offline with its directory
                self.asleep[name] = self.asleep.pop(name)
            return False
        return True

    def logs(self) -> Iterable[Log]:
        """Return the logs of the partitions that are awake; the others have nothing to do."""
        return [partition.log for partition in self.partitions.values()]

    def _wake_or_refuse(self, name: Name, unknown: Callable[[], BrokerError]) -> Partition:
        if name in self._unmade:
            self._make(name, *self._unmade[name])
        if name in self.asleep:
            return self._wake(name)
        if name in self._offline or name in self._unmade:
            raise directory_offline()
        if self._image is not None and self._image.partition(*name) is not None:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # others have its replicas
        raise unknown()

    def _wake(self, name: Name) -> Partition:
        """Open a log, and take its role by the metadata. BrokerError leaves it asleep, even for a bug (P6).

        An error of the disk is its directory's to judge.
        """
        sleeper = self.asleep[name]
        directory = sleeper.directory
        image = self._image
        state = None if image is None else image.partition(*name)
        try:
            partition = self._opened(name)
            if image is not None and state is not None and len(state.replicas) > 1:
                # Followers have to fetch, and leaders to know how far they are.
                if directory.path not in self._checkpointed:
                    self._checkpointed[directory.path] = directory.read_high_watermarks()
                committed = self._checkpointed[directory.path].get(name, 0)
                log = partition.log
                partition.high_watermark = min(max(committed, log.start_offset), log.end_offset)
                self._take_role(partition, state, image)
        except Exception as error:
            if name in self.partitions:
                self._put_to_sleep(self.partitions[name], directory)
            if isinstance(error, BrokerError):
                raise  # which the log has told its directory of
            if not isinstance(error, OSError):
                if self.is_starting():
                    raise
                directory.bug(error)
                raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the log could not be opened: {error}") from error
            directory.judge(error)
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        return partition

    def _put_to_sleep(self, partition: Partition, directory: LogDirectory) -> None:
        """A replica could not take its role: it has none until it is woken, when it takes the one it has by then."""
        name = (partition.topic, partition.index)
        self._forget(name, partition.topic_id)
        self.asleep[name] = Sleeper(partition.log, directory, partition.topic_id, partition.leader_epoch)
        partition.fail(BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the replica could not take its role"))
        if self.roles is not None:
            self.roles.gone(partition)

    def _opened(self, name: Name) -> Partition:
        log, directory, topic_id, leader_epoch = self.asleep[name]
        if log.topic_id not in (topic_id, ZERO_UUID):
            # The directory is of an earlier topic of this name.
            config = log.config
            if directory.logs.get(name) is log:
                self._put_aside(directory, log)
            log = directory.create_log(*name, topic_id, config)
            self.asleep[name] = Sleeper(log, directory, topic_id, leader_epoch)
        partition = Partition(log, topic_id, leader_epoch, self._flusher)
        del self.asleep[name]  # only now: one that could not be woken is tried again
        self.partitions[name] = self.awake_by_id[topic_id, name[1]] = partition
        return partition

    # Change

    def apply(self, delta: Delta, image: Image) -> None:
        """Follow a committed change of the metadata."""
        self._image = image
        for topic in delta.removed_topics.values():
            for index in topic.partitions:
                self._guarded(topic, index, self._remove, topic, index)
        for change in delta.topics.values():
            topic = image.topics.by_id[change.id]
            config: LogConfig | None = None  # worked out once for all partitions that are new here
            for index, state in change.partitions.items():
                if self.node_id in state.replicas:
                    config = self._guarded(topic, index, self._put, topic, index, state, image, config)
                elif (topic.id, index) in self._ids:
                    self._guarded(topic, index, self._remove, topic, index, True)
        own = False
        for kind, name in delta.configs:
            if kind == ConfigType.TOPIC:
                self._configure(image.topics.by_name.get(name), image)
            own = own or (kind == ConfigType.BROKER and name in ("", str(self.node_id)))
        if own:
            self.inherited.may_have_changed()

    def _guarded(self, topic: Topic, index: int, work: Callable[..., T], *arguments: Any) -> T | None:
        """Do something for one partition (P6)."""
        try:
            return work(*arguments)
        except Exception as error:
            if self.is_starting():
                raise
            way = "".join(traceback.format_exception(error)).rstrip()
            self.report(f"{topic.name}-{index} could not follow the metadata, please report it: {way}")
            return None

    def put_strays_aside(self, image: Image) -> list[str]:
        """Rename the directories of logs that the image does not know, and return their new names."""
        strays = []
        for directory in self.directories:
            for (topic, index), log in tuple(directory.logs.items()):
                if image.partition(topic, index) is None:
                    strays.append(self._put_aside(directory, log))
        return strays

    def take_offline(self, directory: LogDirectory, error: BrokerError) -> None:
        """Refuse everything that lives in a failed directory."""
        for name, partition in tuple(self.partitions.items()):
            if directory.logs.get(name) is partition.log:
                self._forget(name, partition.log.topic_id)
                self._offline.add(name)
                partition.fail(error)
                if self.roles is not None:
                    self.roles.gone(partition)
        for name, sleeper in tuple(self.asleep.items()):
            if sleeper.directory is directory:
                self._forget(name, sleeper.topic_id)
                self._offline.add(name)

    def _config_of(self, topic: Topic, image: Image) -> LogConfig:
        return LogConfig.from_settings(self._effective(image.configs.of(ConfigType.TOPIC, topic.name)))

    def _reconfigure(self, topic: Topic, image: Image) -> None:
        self._guarded(topic, 0, self._configure, topic, image)

    def _configure(self, topic: Topic | None, image: Image) -> None:
        if topic is None:
            return
        config = self._config_of(topic, image)
        for index in topic.partitions:
            name = (topic.name, index)
            if name in self.partitions:
                partition = self.partitions[name]
                partition.log.config = config
                if partition.leadership is not None:
                    partition.leadership.min_isr = config.min_insync_replicas
            elif name in self.asleep:
                self.asleep[name].log.config = config

    def _put(
        self, topic: Topic, index: int, state: PartitionState, image: Image, config: LogConfig | None
    ) -> LogConfig | None:
        name = (topic.name, index)
        known = self.partitions.get(name)
        if known is not None and known.topic_id == topic.id:
            try:
                self._take_role(known, state, image)
            except Exception as error:
                if name in self.partitions:  # and not offline with its directory
                    directory = next(each for each in self.directories if each.logs.get(name) is known.log)
                    self._put_to_sleep(known, directory)
                    if isinstance(error, OSError):
                        directory.judge(error)
                if not isinstance(error, (OSError, BrokerError)):
                    raise  # it is reported (P6); the partition has no role until it is woken
            return config
        sleeper = self.asleep.get(name)
        if sleeper is not None and sleeper.topic_id == topic.id:
            self.asleep[name] = sleeper._replace(leader_epoch=state.leader_epoch)
        else:
            self._ids[topic.id, index] = name
            config = config or self._config_of(topic, image)
            self._make(name, topic.id, state, config)
        if len(state.replicas) > 1 and name in self.asleep:
            self._try_to_wake(name)  # what fails is tried again with the other sleepers
        return config

    def _take_role(self, partition: Partition, state: PartitionState, image: Image) -> None:
        if self.roles is None:
            partition.lead(state.leader_epoch)
        else:
            self.roles.assume(partition, state, image)

    def _make(self, name: Name, topic_id: bytes, state: PartitionState, config: LogConfig) -> None:
        """Open or create a log; what fails takes the directory offline. Without room, or for a bug, it stays unmade."""
        is_news = self._unmade.pop(name, None) is None
        self._offline.discard(name)
        try:
            opened = self._open(name, topic_id, state, config)
        except Exception as error:
            self._unmade[name] = (topic_id, state, config)
            if not isinstance(error, (OSError, BrokerError)) and (is_news or self.is_starting()):
                raise  # the first time, to be reported
            return  # a log that could not be opened has told its directory of it
        if opened is None:
            self._offline.add(name)
        else:
            self.asleep[name] = Sleeper(*opened, topic_id, state.leader_epoch)

    def _open(
        self, name: Name, topic_id: bytes, state: PartitionState, config: LogConfig
    ) -> tuple[Log, LogDirectory] | None:
        """Return the log that a directory holds for this partition, or make one where there is room."""
        self._removals.finish(name)
        online = [directory for directory in self.directories if directory.offline is None]
        homes = [directory for directory in online if name in directory.logs]
        if len(homes) > 1:
            # A move was cut off between its last two steps: whichever log went on is the longer one.
            try:
                homes.sort(key=lambda directory: directory.logs[name].end_offset, reverse=True)
            except BrokerError:
                if any(directory.offline is not None for directory in homes):
                    return None  # which one that is cannot be told
                raise
            for directory in homes[1:]:
                try:
                    self._put_aside(directory, directory.logs[name])
                except OSError as error:
                    directory.judge(error)
                    raise
        if homes:
            log = homes[0].logs[name]
            log.config = config
            return log, homes[0]
        assigned = state.directory_of(self.node_id)
        named = [
            each for each in self.directories if each.identity and each.identity.directory_id == assigned
        ]
        if not online or (named and named[0] not in online):
            return None
        if not named and not is_reserved(assigned) and self._may_be_needed(state, config):
            self._report_missing(assigned, name)
            return None
        home = named[0] if named else self._least_used(online)
        try:
            return home.create_log(*name, topic_id, config), home
        except OSError as error:
            home.judge(error)
            if home.offline is not None:
                return None
            raise

    def _may_be_needed(self, state: PartitionState, config: LogConfig) -> bool:
        """Whether what this replica held may be nowhere else, and must not be lost (P5)."""
        if config.unclean_leader_election_enable:
            return False
        return state.leader in (NO_LEADER, self.node_id) or self.node_id in state.isr

    def _report_missing(self, directory_id: bytes, name: Name) -> None:
        """Say once of each directory that it is missing."""
        if directory_id not in self._missing:
            self._missing.add(directory_id)
            self.report(
                f"no directory of log.dirs has the id {uuid_text(directory_id)}: partitions that lie there "
                f"stay offline, the first is {name[0]}-{name[1]}"
            )

    def _least_used(self, online: list[LogDirectory]) -> LogDirectory:
        open_to_all = [directory for directory in online if not self.is_cordoned(directory)]
        # Where all are cordoned, somebody has named this broker all the same. Kafka then takes the first, too.
        return min(open_to_all, key=lambda directory: len(directory.logs)) if open_to_all else online[0]

    def _remove(self, topic: Topic, index: int, is_moved: bool = False) -> None:
        """Let a replica go, with its topic or because others have the partition now; whoever waits hears which."""
        name = (topic.name, index)
        partition = self.partitions.get(name)
        self._forget(name, topic.id)
        self._ids.pop((topic.id, index), None)
        self._offline.discard(name)
        self._unmade.pop(name, None)
        if partition is not None:
            partition.fail(moved_away() if is_moved else unknown_partition())
            if self.roles is not None:
                self.roles.gone(partition)
        for directory in self.directories:
            log = directory.logs.get(name)
            if log is not None and directory.offline is None:
                self._removals.remove(directory, log, self.report)

    def _put_aside(self, directory: LogDirectory, log: Log) -> str:
        """Rename a log's directory so that it says it is a stray."""
        path = f"{directory.path}/{marked_dir(log.topic, log.partition, self._unique(), STRAY_DIR)}"
        log.rest()
        log.move(path)
        del directory.logs[log.topic, log.partition]
        return path

    def _forget(self, name: Name, topic_id: bytes) -> None:
        self.partitions.pop(name, None)
        self.asleep.pop(name, None)
        self.awake_by_id.pop((topic_id, name[1]), None)
