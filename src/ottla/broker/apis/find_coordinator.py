"""FindCoordinator (10): which broker looks after a group, a transactional id or a share partition.

v4 and up ask for several at once. The topic that holds the coordinators' state is made when it is first needed, and the
answer waits for it; Kafka sends the client away with COORDINATOR_NOT_AVAILABLE and lets it ask again.
"""

from ottla.broker.api import Api, Pending
from ottla.broker.broker import Broker
from ottla.broker.coordinators import partition_of
from ottla.broker.internal_topics import OFFSETS, SHARE_STATE, TRANSACTIONS, InternalTopic, make, partitions
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.uuid import uuid_bytes

Found = FindCoordinatorResponse.Coordinator

_TOPICS = {0: OFFSETS, 1: TRANSACTIONS, 2: SHARE_STATE}
_SHARE = 2
_MANY_SINCE = 4
_SHARE_SINCE = 6
_WORDS = {
    ErrorCode.INVALID_REQUEST: "This is not a key of a coordinator of that type.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
}


def handle(
    request: FindCoordinatorRequest, version: int, connection: Connection, broker: Broker
) -> FindCoordinatorResponse | Pending:
    """Answer from the image, once the topic is there."""
    topic = _TOPICS.get(request.key_type)
    if topic is None or (request.key_type == _SHARE and version < _SHARE_SINCE):
        words = _WORDS[ErrorCode.INVALID_REQUEST] if topic is None else None
        found = [_nowhere(key, ErrorCode.INVALID_REQUEST, words) for key in _keys(request, version)]
        return _respond(request, version, found)
    pending = Pending()

    def made(code: ErrorCode) -> None:
        found = [
            _find(key, topic, connection.listener, broker) if code is ErrorCode.NONE else _nowhere(key, code)
            for key in _keys(request, version)
        ]
        pending.resolve(_respond(request, version, found))

    make(broker, topic, made)
    return pending


def _keys(request: FindCoordinatorRequest, version: int) -> list[str]:
    return request.coordinator_keys if version >= _MANY_SINCE else [request.key]


def _find(key: str, topic: InternalTopic, listener: str, broker: Broker) -> Found:
    name = key
    if topic is SHARE_STATE:
        parsed = _share_key(key)
        if parsed is None:
            return _nowhere(key, ErrorCode.INVALID_REQUEST)
        name = parsed
    known = broker.image.topics.by_name.get(topic.name)
    state = None if known is None else known.partitions.get(partition_of(name, partitions(broker, topic)))
    for node_id, host, port, _ in broker.endpoints(listener):
        if state is not None and node_id == state.leader:
            return Found(key=key, node_id=node_id, host=host, port=port)
    return _nowhere(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _share_key(key: str) -> str | None:
    """Return a share partition's name, group:topic id:partition, or None when the key is none.

    The name of a group may have colons in it.
    """
    rest, _, index = key.rpartition(":")
    group, _, topic_id = rest.rpartition(":")
    try:
        if group.strip() and len(uuid_bytes(topic_id)) == 16 and index == index.strip():
            return f"{group}:{topic_id}:{int(index)}"
    except (ValueError, ProtocolError):
        pass
    return None


def _nowhere(key: str, code: ErrorCode, words: str | None = None) -> Found:
    # Kafka has no words for one key among several.
    return Found(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=words or "")


def _respond(request: FindCoordinatorRequest, version: int, found: list[Found]) -> FindCoordinatorResponse:
    if version >= _MANY_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    one = found[0]
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=_WORDS.get(ErrorCode(one.error_code)),
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


API = Api(
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    handle,
    long=in_slices(Cut("coordinator_keys", "coordinators")),
)
