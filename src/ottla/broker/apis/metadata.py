"""Metadata (3): brokers, topics, partitions, leaders.

A null list (v1 and up; an empty one in v0) asks for all topics. A topic that is absent is made on the spot where
`auto.create.topics.enable` and the client allow it, and the answer waits for it, so that nobody has to ask twice. v12
and up look topics up by id as well.
"""

from collections.abc import Generator

from ottla.broker.api import Api, Handler, Pending
from ottla.broker.broker import Broker
from ottla.broker.slicing import Cut, in_slices
from ottla.channel.connection import Connection
from ottla.controller.view import RECORDS_MAX
from ottla.metadata.image import Image
from ottla.metadata.topics import PartitionState, Topic
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

Answer = MetadataResponse.MetadataResponseTopic
Part = Answer.MetadataResponsePartition
_in_slices = in_slices(Cut("topics", "topics", ("name,topic_id",)))
_NO_ID = bytes(16)
# Bit n stands for Kafka's AclOperation n; without an authorizer everybody may do everything.
TOPIC_OPERATIONS = 0b1101_1111_1000
CLUSTER_OPERATIONS = 0b1_1111_1010_0000
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def handle(
    request: MetadataRequest, version: int, connection: Connection, broker: Broker
) -> MetadataResponse | Pending:
    """Answer from the image; make absent topics first where that is allowed."""
    if request.topics is not None:
        if _is_refused(request, version):
            return _refuse(request)
        absent = _to_create(request, version, broker)
        if absent:
            return _create(absent, request, version, connection, broker)
    return answer(request, version, connection, broker, {})


def serve_long(
    handle: Handler, request: MetadataRequest, version: int, connection: Connection, broker: Broker
) -> Generator[None, None, Message | Pending | None]:
    """Answer for some topics at a time; where more would have to be made than one request may, make none."""
    if _is_refused(request, version):
        return _refuse(request)
    absent = _to_create(request, version, broker)
    if len(absent) * max(1, int(broker.settings["num.partitions"])) > RECORDS_MAX:
        request.allow_auto_topic_creation = False
    yield
    return (yield from _in_slices(handle, request, version, connection, broker))


def _is_refused(request: MetadataRequest, version: int) -> bool:
    """Topics are looked up by id from version 12 on."""
    return version < 12 and any(
        topic.name is None or topic.topic_id != _NO_ID for topic in request.topics or ()
    )


def _refuse(request: MetadataRequest) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            Answer(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


def _to_create(request: MetadataRequest, version: int, broker: Broker) -> list[str]:
    if (
        not (request.allow_auto_topic_creation and broker.settings["auto.create.topics.enable"])
        or not request.topics
    ):
        return []
    by_name = broker.image.topics.by_name
    names = dict.fromkeys(topic.name for topic in request.topics if topic.name is not None)
    return [name for name in names if name not in by_name]


def _create(
    names: list[str], request: MetadataRequest, version: int, connection: Connection, broker: Broker
) -> MetadataResponse | Pending:
    wish = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
            for name in names
        ]
    )
    pending = Pending()

    def done(outcome: CreateTopicsResponse | BrokerError) -> None:
        refused: dict[str, int] = {}
        if isinstance(outcome, BrokerError):
            refused = dict.fromkeys(names, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            for topic in outcome.topics:
                if topic.error_code in (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.POLICY_VIOLATION):
                    refused[topic.name] = topic.error_code
        pending.resolve(answer(request, version, connection, broker, refused))

    broker.ask_controller(
        wish, CreateTopicsResponse, lambda controller, now: controller.create_topics(wish, now), done
    )
    return pending


def answer(
    request: MetadataRequest, version: int, connection: Connection, broker: Broker, refused: dict[str, int]
) -> MetadataResponse:
    """Describe the cluster and the topics asked for, as the image has them now."""
    image = broker.image
    everything = request.topics is None or (version == 0 and not request.topics)
    described: list[Answer] = []
    if everything:
        described = [_describe(topic, image, broker) for topic in image.topics.by_name.values()]
    else:
        for asked in {(asked.name, asked.topic_id): asked for asked in request.topics or ()}.values():
            by_id = asked.name is None
            found = (
                image.topics.by_id.get(asked.topic_id)
                if by_id
                else image.topics.by_name.get(asked.name or "")
            )
            if found is not None:
                described.append(_describe(found, image, broker))
            elif by_id:
                described.append(
                    Answer(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)
                )
            else:
                name = asked.name or ""
                code = refused.get(name) or broker.absence(name)
                described.append(Answer(error_code=code, name=name))
    if request.include_topic_authorized_operations:
        for topic in described:
            if not topic.error_code:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    response = MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in broker.endpoints(connection.listener)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.controller_hint(),
        topics=described,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _describe(topic: Topic, image: Image, broker: Broker) -> Answer:
    return Answer(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(index, state, broker) for index, state in sorted(topic.partitions.items())],
    )


def _partition(index: int, state: PartitionState, broker: Broker) -> Part:
    alive = broker.alive
    # A client that lost its leader asks at once, and again soon if there is none; told the old one, it may wait for a
    # second.
    is_there = state.leader in alive and not broker.is_lost(state.leader)
    return Part(
        error_code=ErrorCode.NONE if is_there else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=state.leader if is_there else -1,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=[
            replica
            for replica, directory in zip(state.replicas, state.directories, strict=True)
            if replica not in alive or not broker.image.brokers[replica].has_online(directory)
        ],
    )


API = Api(MetadataRequest, MetadataResponse, handle, long=serve_long)
