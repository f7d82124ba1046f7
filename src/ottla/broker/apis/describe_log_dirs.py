"""DescribeLogDirs (35): the log directories of this broker, and what lies in them.

Null asks for every partition, else only those named are shown. A directory that failed is named with its error and
nothing else. v4 brought the size of the file system and its free room, v5 whether new partitions are kept out
(KIP-1066). A future log, on its way in from another directory, is shown beside the log it will replace.
"""

from collections.abc import Collection

from ottla.broker.api import Api
from ottla.broker.broker import Broker
from ottla.broker.directories import is_cordoned
from ottla.channel.connection import Connection
from ottla.controller.names import CLUSTER_METADATA
from ottla.log.directory import LogDirectory
from ottla.log.log import Log
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

Result = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = Result.DescribeLogDirsTopic
Part = Topic.DescribeLogDirsPartition

Name = tuple[str, int]


def handle(
    request: DescribeLogDirsRequest, version: int, connection: Connection, broker: Broker
) -> DescribeLogDirsResponse:
    """Describe every directory."""
    wanted: set[Name] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    return DescribeLogDirsResponse(
        results=[_describe(directory, wanted, broker) for directory in broker.table.directories]
    )


def _describe(directory: LogDirectory, wanted: Collection[Name] | None, broker: Broker) -> Result:
    result = Result(log_dir=directory.path)
    try:
        if directory.offline:
            raise directory.offline
        result.total_bytes = directory.disk.total_bytes(directory.path)
        result.usable_bytes = directory.disk.free_bytes(directory.path)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    result.is_cordoned = is_cordoned(broker, directory)
    topics: dict[str, list[Part]] = {}
    for future, logs in ((False, directory.logs), (True, directory.futures)):
        for name, log in logs.items():
            if name[0] != CLUSTER_METADATA and (wanted is None or name in wanted):
                topics.setdefault(name[0], []).append(_part(name, log, broker, future=future))
    result.topics = [Topic(name=name, partitions=parts) for name, parts in topics.items()]
    return result


def _part(name: Name, log: Log, broker: Broker, *, future: bool) -> Part:
    partition = broker.table.find(name, by_id=False)
    if partition is None:
        lag = -1
    elif future:
        lag = partition.log.end_offset - log.end_offset
    else:
        lag = max(0, partition.high_watermark - log.end_offset)
    return Part(partition_index=name[1], partition_size=log.size_bytes, offset_lag=lag, is_future_key=future)


API = Api(DescribeLogDirsRequest, DescribeLogDirsResponse, handle)
