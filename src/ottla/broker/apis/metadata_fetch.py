"""Fetch (1), on the listener of a controller: followers read the metadata log, and say by that how far they are.

Replicas of the quorum speak v12 and later, which tell who leads, and where logs branched. Whoever asks at an earlier
version is answered without.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.quorum_door import ask_quorum
from ottla.channel.connection import Connection
from ottla.wire.message import Message
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

_LEADER_SINCE = 12


def handle(request: FetchRequest, version: int, connection: Connection, broker: Broker) -> Pending:
    """Hand a fetch to Raft."""
    if version >= _LEADER_SINCE:
        return ask_quorum(request, version, connection, broker)

    def leave_out(answer: Message) -> None:
        assert isinstance(answer, FetchResponse)
        for topic in answer.responses:
            for partition in topic.partitions:
                partition.current_leader = None
                partition.diverging_epoch = None
                partition.snapshot_id = None

    return ask_quorum(request, version, connection, broker, leave_out)


API = Api(FetchRequest, FetchResponse, handle)
