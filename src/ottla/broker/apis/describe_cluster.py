"""DescribeCluster (60): the brokers, the cluster's id, and whom to send admin requests to.

v1 may ask for the controllers instead, which only a controller's listener answers (KIP-919). v2 may ask for fenced
brokers as well (KIP-1073).
"""

from ottla.broker.api import Api
from ottla.broker.apis.metadata import CLUSTER_OPERATIONS
from ottla.broker.broker import Broker
from ottla.channel.connection import Connection
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

Node = DescribeClusterResponse.DescribeClusterBroker
BROKERS, CONTROLLERS = 1, 2


def handle(
    request: DescribeClusterRequest, version: int, connection: Connection, broker: Broker
) -> DescribeClusterResponse:
    """Describe the brokers that can be reached on the listener of this connection."""
    if request.endpoint_type != BROKERS:
        return _refused(request.endpoint_type, version, "BROKER", "CONTROLLER")
    nodes = []
    for node_id, registered in sorted(broker.image.brokers.items()):
        endpoint = registered.listeners.get(connection.listener)
        if endpoint is not None and (request.include_fenced_brokers or not registered.fenced):
            nodes.append(
                Node(
                    broker_id=node_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=registered.rack,
                    is_fenced=registered.fenced,
                )
            )
    return _described(request, broker, nodes, broker.controller_hint())


def handle_at_controller(
    request: DescribeClusterRequest, version: int, connection: Connection, broker: Broker
) -> DescribeClusterResponse:
    """Describe the controllers that can be reached on the listener of this connection."""
    if request.endpoint_type != CONTROLLERS:
        return _refused(request.endpoint_type, version, "CONTROLLER", "BROKER")
    nodes = []
    for node_id, registered in sorted(broker.image.controllers.items()):
        endpoint = registered.listeners.get(connection.listener)
        if endpoint is not None:
            nodes.append(Node(broker_id=node_id, host=endpoint.host, port=endpoint.port))
    response = _described(request, broker, nodes, broker.quorum.leader_id)
    response.endpoint_type = CONTROLLERS
    return response


def _described(
    request: DescribeClusterRequest, broker: Broker, nodes: list[Node], controller_id: int
) -> DescribeClusterResponse:
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        # A node that the client was not told of would only confuse it.
        controller_id=controller_id if any(node.broker_id == controller_id for node in nodes) else -1,
        brokers=nodes,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _refused(endpoint_type: int, version: int, here: str, elsewhere: str) -> DescribeClusterResponse:
    if endpoint_type in (BROKERS, CONTROLLERS):
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            f"The request was sent to an endpoint of type {here}, but we wanted an endpoint of type {elsewhere}"
        )
    else:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    if version == 0:
        code = ErrorCode.INVALID_REQUEST
    return DescribeClusterResponse(error_code=code, error_message=message)


API = Api(DescribeClusterRequest, DescribeClusterResponse, handle)
CONTROLLER_API = Api(DescribeClusterRequest, DescribeClusterResponse, handle_at_controller)
