"""The DescribeCluster API, key 60."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Bool, Int8, Int16, Int32, NullableString, String


class DescribeClusterRequest(Message, api=60, versions="0-2", flexible="0+"):
    """Ask for the brokers or the controllers of the cluster."""

    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = since(1, default=1)
    include_fenced_brokers: Bool = since(2)


class DescribeClusterResponse(Message, api=60, versions="0-2", flexible="0+"):
    """The cluster's id, controller and nodes."""

    class DescribeClusterBroker(Struct):
        broker_id: Int32
        host: String
        port: Int32
        rack: NullableString = None
        is_fenced: Bool = since(2)

    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
    endpoint_type: Int8 = since(1, default=1)
    cluster_id: String
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: Int32 = -(2**31)
