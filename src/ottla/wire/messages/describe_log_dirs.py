"""The DescribeLogDirs API, key 35."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int16, Int32, Int64, String


class DescribeLogDirsRequest(Message, api=35, versions="1-5", flexible="2+"):
    """Ask how the log directories of a broker are filled."""

    class DescribableLogDirTopic(Struct):
        topic: String
        partitions: list[Int32]

    topics: list[DescribableLogDirTopic] | None


class DescribeLogDirsResponse(Message, api=35, versions="1-5", flexible="2+"):
    """Each log directory with the replicas in it and their sizes."""

    class DescribeLogDirsResult(Struct):
        class DescribeLogDirsTopic(Struct):
            class DescribeLogDirsPartition(Struct):
                partition_index: Int32
                partition_size: Int64
                offset_lag: Int64
                is_future_key: Bool

            name: String
            partitions: list[DescribeLogDirsPartition]

        error_code: Int16
        log_dir: String
        topics: list[DescribeLogDirsTopic]
        total_bytes: Int64 = since(4, default=-1, ignorable=True)
        usable_bytes: Int64 = since(4, default=-1, ignorable=True)
        is_cordoned: Bool = since(5, ignorable=True)

    throttle_time_ms: Int32
    error_code: Int16 = since(3, ignorable=True)
    results: list[DescribeLogDirsResult]
