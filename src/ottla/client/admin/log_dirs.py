"""Log directories of brokers: what lies in them, and moving replicas from one to another."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.request_keys import by_topic
from ottla.client.admin.request_router import Destination, RequestRouter
from ottla.client.admin.response_errors import error_of
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError, Refused
from ottla.client.record import TopicPartition
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


class Replica(NamedTuple):
    """The replica of a partition on one broker."""

    topic: str
    partition: int
    broker: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class StoredReplica:
    """A replica in a directory. A future replica replaces the current one when it has caught up."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory. `error` says why the broker cannot use it. Sizes are None if the broker does not return them."""

    path: str
    replicas: Mapping[TopicPartition, StoredReplica]
    total_bytes: int | None = None
    usable_bytes: int | None = None
    is_cordoned: bool = False
    error: Refused | None = None


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """The directory of a replica, and the one it is moving to; None if there is none."""

    path: str | None = None
    offset_lag: int | None = None
    future_path: str | None = None
    future_offset_lag: int | None = None


@renamed_timeouts
class LogDirs:
    """Log directories, as `admin.log_dirs`. Every call raises Refused, TimedOut or, for several keys, SomeFailed."""

    def __init__(self, router: RequestRouter) -> None:
        self._router = router

    async def describe(
        self,
        brokers: Iterable[int] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> dict[int, dict[str, LogDir]]:
        """Return the log directories of brokers by path, with their replicas. Without brokers, those of all."""
        wanted = await self._router.brokers(timeout) if brokers is None else brokers
        kind = DescribeLogDirsRequest.DescribableLogDirTopic
        request = DescribeLogDirsRequest(
            topics=None
            if partitions is None
            else [kind(topic=topic, partitions=numbers) for topic, numbers in by_topic(partitions).items()]
        )

        async def ask(node: int | None, keys: list[int]) -> dict[int, dict[str, LogDir] | ClientError]:
            answer = await self._router.send(node, request, DescribeLogDirsResponse)
            found = {each.log_dir: _log_dir(each) for each in answer.results}
            return {keys[0]: error_of(answer, f"broker {node}") or found}

        return await self._router.request_each(wanted, self._router.at_broker, ask, timeout)

    async def find(
        self, replicas: Iterable[Replica], *, timeout: Duration | None = None
    ) -> dict[Replica, ReplicaPlace]:
        """Return the directories of replicas."""
        wanted = list(replicas)
        partitions = {TopicPartition(each.topic, each.partition) for each in wanted}
        described = await self.describe({each.broker for each in wanted}, partitions, timeout=timeout)
        return {each: _place(each, described[each.broker]) for each in wanted}

    async def move(self, directories: Mapping[Replica, str], *, timeout: Duration | None = None) -> None:
        """Move replicas to other directories of their broker. The call returns when the moves have begun."""
        kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir

        async def locate(keys: Collection[Replica]) -> dict[Replica, Destination]:
            destinations = await self._router.at_broker({key.broker for key in keys})
            return {key: destinations[key.broker] for key in keys}

        async def ask(node: int | None, keys: list[Replica]) -> dict[Replica, ClientError | None]:
            paths: dict[str, list[TopicPartition]] = {}
            for key in keys:
                paths.setdefault(directories[key], []).append(TopicPartition(key.topic, key.partition))
            request = AlterReplicaLogDirsRequest(
                dirs=[
                    kind(
                        path=path,
                        topics=[
                            kind.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                            for topic, numbers in by_topic(partitions).items()
                        ],
                    )
                    for path, partitions in paths.items()
                ]
            )
            answer = await self._router.send(node, request, AlterReplicaLogDirsResponse)
            outcomes: dict[Replica, ClientError | None] = {}
            for topic in answer.results:
                for each in topic.partitions:
                    key = Replica(topic.topic_name, each.partition_index, keys[0].broker)
                    outcomes[key] = error_of(each, str(key))
            return outcomes

        await self._router.request_each(directories, locate, ask, timeout)


def _log_dir(each: DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDir:
    return LogDir(
        each.log_dir,
        {
            TopicPartition(topic.name, part.partition_index): StoredReplica(
                part.partition_size, part.offset_lag, part.is_future_key
            )
            for topic in each.topics
            for part in topic.partitions
        },
        each.total_bytes if each.total_bytes >= 0 else None,
        each.usable_bytes if each.usable_bytes >= 0 else None,
        each.is_cordoned,
        error_of(each, each.log_dir),
    )


def _place(replica: Replica, dirs: Mapping[str, LogDir]) -> ReplicaPlace:
    key = TopicPartition(replica.topic, replica.partition)
    now = {path: each.replicas[key] for path, each in dirs.items() if key in each.replicas}
    place = ReplicaPlace()
    for path, stored in now.items():
        if stored.is_future:
            place = ReplicaPlace(place.path, place.offset_lag, path, stored.offset_lag)
        else:
            place = ReplicaPlace(path, stored.offset_lag, place.future_path, place.future_offset_lag)
    return place
