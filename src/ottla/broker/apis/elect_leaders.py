"""ElectLeaders (43): give leadership back to the preferred replica, or to any replica where that is allowed.

Null asks for every partition; only those that changed or could not are answered then. v0 knows preferred elections
alone; v1 brought unclean ones (KIP-460).
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.forwarding import forward
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

Topic = ElectLeadersResponse.ReplicaElectionResult
Part = Topic.PartitionResult


def handle(request: ElectLeadersRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Ask the controller; what it refuses as a whole, every partition is told."""

    def finish(outcome: ElectLeadersResponse | BrokerError) -> ElectLeadersResponse:
        response = _refused(request, outcome) if isinstance(outcome, BrokerError) else outcome
        if version == 0:
            response.error_code = ErrorCode.NONE  # v0 has no place for it
        return response

    return forward(
        broker, lambda controller, now: controller.elect_leaders(request, now), finish, request.timeout_ms
    )


def _refused(request: ElectLeadersRequest, error: BrokerError) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=error.code,
        replica_election_results=[
            Topic(
                topic=topic.topic,
                partition_result=[
                    Part(partition_id=index, error_code=error.code, error_message=error.message)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


API = Api(
    ElectLeadersRequest,
    ElectLeadersResponse,
    handle,
    long=in_slices(Cut("topic_partitions.partitions", "replica_election_results.partition_result")),
)
