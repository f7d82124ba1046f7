"""Any run of decisions folds to an image that its own records, framed and unframed, fold to again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.metadata.content import records_of
from ottla.metadata.fold import Fold
from ottla.metadata.frame import decode, encode
from ottla.metadata.image import Image
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.unit.controller.stage import Stage, wish

BROKERS = (1, 2, 3)
NAMES = ("a", "b.c", "b_c", "d")
broker = st.sampled_from(BROKERS)
name = st.sampled_from(NAMES)
replicas = st.lists(broker, min_size=1, max_size=3, unique=True)

actions = st.one_of(
    st.tuples(st.just("create"), name, st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.just("assign"), name, replicas),
    st.tuples(st.just("delete"), name),
    st.tuples(st.just("grow"), name, st.integers(1, 6)),
    st.tuples(st.just("configure"), name, st.sampled_from(["1", "2", None])),
    st.tuples(st.just("fence"), broker),
    st.tuples(st.just("unfence"), broker),
    st.tuples(st.just("restart"), broker, st.booleans()),
    st.tuples(st.just("move"), name, replicas),
    st.tuples(st.just("elect"), st.integers(0, 1)),
)


def act(stage: Stage, action: tuple[object, ...]) -> None:
    """Do one thing to the cluster."""
    match action:
        case ("create", str(topic), int(partitions), int(factor)):
            stage.create(wish(topic, partitions, factor))
        case ("assign", str(topic), list(brokers)):
            stage.create(wish(topic, assignments={0: brokers}))
        case ("delete", str(topic)):
            delete = DeleteTopicsRequest(topic_names=[topic])
            stage.do(lambda controller, now: controller.delete_topics(delete, 5, now))
        case ("grow", str(topic), int(count)):
            kind = CreatePartitionsRequest.CreatePartitionsTopic
            grow = CreatePartitionsRequest(topics=[kind(name=topic, count=count, assignments=None)])
            stage.do(lambda controller, now: controller.create_partitions(grow, now))
        case ("configure", str(topic), value):
            resource = IncrementalAlterConfigsRequest.AlterConfigsResource
            change = resource.AlterableConfig(
                name="min.insync.replicas", config_operation=0 if value else 1, value=value
            )
            alter = IncrementalAlterConfigsRequest(
                resources=[resource(resource_type=2, resource_name=topic, configs=[change])]
            )
            stage.do(lambda controller, now: controller.incremental_alter_configs(alter, now))
        case ("fence", int(node)):
            stage.heartbeat(node, want_fence=True)
        case ("unfence", int(node)):
            stage.heartbeat(node)
        case ("restart", int(node), bool(clean)):
            stage.now += 60_000
            old = stage.image.brokers[node]
            # Its connection closed when it stopped, so its id is free to be registered again.
            stage.do(lambda controller, now: controller.broker_disconnected(node, old.epoch, now))
            incarnation = (old.incarnation_id[1] + 1) % 256
            stage.register(node, incarnation=incarnation, previous_epoch=old.epoch if clean else -1)
        case ("move", str(topic), list(brokers)):
            kind_ = AlterPartitionReassignmentsRequest.ReassignableTopic
            part = kind_.ReassignablePartition(partition_index=0, replicas=brokers)
            move = AlterPartitionReassignmentsRequest(topics=[kind_(name=topic, partitions=[part])])
            stage.do(lambda controller, now: controller.alter_partition_reassignments(move, now))
        case ("elect", int(kind__)):
            elect = ElectLeadersRequest(election_type=kind__, topic_partitions=None)
            stage.do(lambda controller, now: controller.elect_leaders(elect, now))


def check(image: Image) -> None:
    """What must hold in every state."""
    for topic in image.topics.by_id.values():
        assert image.topics.by_name[topic.name] is topic
        assert list(topic.partitions) == list(range(len(topic.partitions)))
        for state in topic.partitions.values():
            assert set(state.isr) <= set(state.replicas)
            assert not set(state.isr) & set(state.elr)
            assert len(state.directories) == len(state.replicas)
            assert state.leader == -1 or state.leader in state.isr
            if state.leader >= 0 and image.brokers[state.leader].fenced:
                # Only a sole replica may lead while fenced: nobody else could.
                assert state.replicas == (state.leader,)
    names = [topic.name.replace(".", "_") for topic in image.topics.by_id.values()]
    assert len(names) == len(set(names))


@settings(max_examples=150, deadline=None)
@given(st.lists(actions, max_size=25))
def test_every_image_survives_its_own_records(run: list[tuple[object, ...]]) -> None:
    stage = Stage(*BROKERS)
    log = []
    for action in run:
        act(stage, action)
        log += stage.records
        check(stage.image)
    image = stage.image
    copy = Fold()
    for offset, record in enumerate(records_of(image)):
        copy.apply(offset, decode(encode(record, image.features.metadata_version)))
    copy.settle()
    assert copy.image == image


@settings(max_examples=80, deadline=None)
@given(st.lists(actions, max_size=20))
def test_settling_now_and_then_changes_nothing(run: list[tuple[object, ...]]) -> None:
    stage = Stage(*BROKERS)
    start = stage.image
    at_once = Fold(start)
    for action in run:
        act(stage, action)
        for record in stage.records:
            at_once.apply(at_once.end_offset, record)
    at_once.settle()
    assert at_once.image == stage.image
