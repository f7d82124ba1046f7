"""LeaveGroup (13): give up seats in a classic group; v3 brought several at once."""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import BrokerError
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


def handle(request: LeaveGroupRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Hand the request to the group's coordinator."""

    def finish(outcome: LeaveGroupResponse | BrokerError) -> LeaveGroupResponse:
        return LeaveGroupResponse(error_code=outcome.code) if isinstance(outcome, BrokerError) else outcome

    return broker.coordination.group(
        request.group_id, lambda groups, now: groups.leave(request, version, now), finish
    )


API = Api(LeaveGroupRequest, LeaveGroupResponse, handle, long=in_slices(Cut("members", "members")))
