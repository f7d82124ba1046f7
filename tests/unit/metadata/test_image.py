"""Image, delta and fold: every record kind does what Kafka says, and a snapshot loses nothing."""

import pytest

from ottla.metadata.config import ConfigType
from ottla.metadata.content import records_of
from ottla.metadata.delta import APPLY, Delta
from ottla.metadata.directory import MIGRATING, UNASSIGNED
from ottla.metadata.error import MetadataError
from ottla.metadata.fold import Fold
from ottla.metadata.frame import RECORDS
from ottla.metadata.image import EMPTY, Image
from ottla.metadata.topics import RECOVERED, RECOVERING
from ottla.wire.message import Message
from ottla.wire.records import metadata as kafka

A, B = bytes([1] * 16), bytes([2] * 16)
DIR = bytes([9] * 16)


def fold(*records: Message, image: Image = EMPTY) -> Image:
    folding = Fold(image)
    for offset, record in enumerate(records, image.offset + 1):
        folding.apply(offset, record)
    folding.settle()
    return folding.image


def topic(name: str, topic_id: bytes, partitions: int = 1) -> list[Message]:
    return [
        kafka.TopicRecord(name=name, topic_id=topic_id),
        *(partition(topic_id, index) for index in range(partitions)),
    ]


def partition(topic_id: bytes, index: int) -> kafka.PartitionRecord:
    return kafka.PartitionRecord(
        topic_id=topic_id,
        partition_id=index,
        replicas=[1, 2],
        isr=[1, 2],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[DIR, UNASSIGNED],
    )


def broker(epoch: int = 7) -> kafka.RegisterBrokerRecord:
    endpoint = kafka.RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)
    feature = kafka.RegisterBrokerRecord.BrokerFeature(name="metadata.version", min_supported_version=7)
    return kafka.RegisterBrokerRecord(
        broker_id=1,
        broker_epoch=epoch,
        incarnation_id=A,
        end_points=[endpoint],
        features=[feature],
        log_dirs=[DIR],
        rack="r",
    )


EVERYTHING: list[Message] = [
    kafka.FeatureLevelRecord(name="metadata.version", feature_level=30),
    kafka.FeatureLevelRecord(name="group.version", feature_level=1),
    broker(),
    kafka.RegisterControllerRecord(controller_id=1, incarnation_id=B),
    *topic("one", A, 3),
    *topic("two.x", B),
    kafka.PartitionChangeRecord(topic_id=A, partition_id=1, isr=[2], leader=2, eligible_leader_replicas=[1]),
    kafka.ConfigRecord(resource_type=2, resource_name="one", name="cleanup.policy", value="compact"),
    kafka.ConfigRecord(resource_type=4, resource_name="", name="log.cleaner.threads", value="2"),
    kafka.ClientQuotaRecord(
        entity=[
            kafka.ClientQuotaRecord.EntityData(entity_type="user", entity_name="bob"),
            kafka.ClientQuotaRecord.EntityData(entity_type="client-id", entity_name=None),
        ],
        key="producer_byte_rate",
        value=1024.0,
    ),
    kafka.ProducerIdsRecord(broker_id=1, broker_epoch=7, next_producer_id=1000),
    kafka.AccessControlEntryRecord(
        id=A, resource_type=2, resource_name="one", principal="User:bob", host="*"
    ),
    kafka.UserScramCredentialRecord(
        name="bob", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    ),
    kafka.DelegationTokenRecord(owner="User:bob", token_id="t", renewers=["User:amy"]),
    kafka.NoOpRecord(),
    kafka.ZkMigrationStateRecord(zk_migration_state=3),
]


def test_an_image_survives_its_own_records() -> None:
    image = fold(*EVERYTHING)
    assert fold(*records_of(image)) == image
    assert type(next(records_of(image))) is kafka.FeatureLevelRecord


def test_every_kind_of_record_is_known() -> None:
    in_fold = {kafka.BeginTransactionRecord, kafka.EndTransactionRecord, kafka.AbortTransactionRecord}
    assert set(RECORDS) == set(APPLY) | in_fold
    assert len(RECORDS) == 26


def test_topics_are_found_by_name_and_by_id() -> None:
    image = fold(*EVERYTHING)
    assert image.topics.by_name["one"] is image.topics.by_id[A]
    assert list(image.topics.by_name["one"].partitions) == [0, 1, 2]
    state = image.partition("one", 0)
    assert state is not None
    assert (state.leader, state.replicas, state.isr, state.directories) == (
        1,
        (1, 2),
        (1, 2),
        (DIR, UNASSIGNED),
    )
    assert image.partition("one", 3) is None


def test_a_partition_change_raises_epochs() -> None:
    image = fold(*EVERYTHING)
    state = image.partition("one", 1)
    assert state is not None
    assert (state.leader, state.leader_epoch, state.partition_epoch, state.isr, state.elr) == (
        2,
        1,
        1,
        (2,),
        (1,),
    )
    after = fold(kafka.PartitionChangeRecord(topic_id=A, partition_id=1, isr=[2, 1]), image=image).partition(
        "one", 1
    )
    assert after is not None
    assert (after.leader_epoch, after.partition_epoch) == (1, 2)


def test_naming_the_same_leader_raises_the_leader_epoch() -> None:
    after = fold(*topic("one", A), kafka.PartitionChangeRecord(topic_id=A, partition_id=0, leader=1))
    state = after.partition("one", 0)
    assert state is not None
    assert state.leader_epoch == 1


def test_partitions_of_old_versions_have_migrating_directories() -> None:
    record = partition(A, 0)
    record.directories = []
    state = fold(kafka.TopicRecord(name="one", topic_id=A), record).partition("one", 0)
    assert state is not None
    assert state.directories == (MIGRATING, MIGRATING)


def test_removing_a_topic_removes_its_configs_and_nothing_else() -> None:
    image = fold(*EVERYTHING)
    after = fold(kafka.RemoveTopicRecord(topic_id=A), image=image)
    assert set(after.topics.by_name) == {"two.x"}
    assert set(after.topics.by_id) == {B}
    assert after.configs.of(ConfigType.TOPIC, "one") == {}
    assert after.configs.of(ConfigType.BROKER, "") == {"log.cleaner.threads": "2"}


def test_a_topic_may_come_back_under_its_name_in_one_delta() -> None:
    image = fold(*EVERYTHING)
    fresh = bytes([3] * 16)
    delta = Delta(image)
    for record in (kafka.RemoveTopicRecord(topic_id=A), *topic("one", fresh)):
        delta.apply(record)
    after = delta.image()
    assert after.topics.by_name["one"].id == fresh
    assert A not in after.topics.by_id
    assert list(delta.removed_topics) == [A]
    assert delta.topics[fresh].created
    assert after.configs.of(ConfigType.TOPIC, "one") == {}


def test_a_topic_made_and_removed_in_one_delta_leaves_no_trace() -> None:
    delta = Delta(EMPTY)
    for record in (*topic("one", A), kafka.RemoveTopicRecord(topic_id=A), *topic("one", B)):
        delta.apply(record)
    assert set(delta.image().topics.by_id) == {B}
    assert not delta.removed_topics


def test_a_delta_counts_unclean_elections() -> None:
    delta = Delta(fold(*EVERYTHING))
    change = kafka.PartitionChangeRecord
    delta.apply(change(topic_id=A, partition_id=2, leader=2))
    delta.apply(change(topic_id=A, partition_id=1, isr=[3], leader=3, leader_recovery_state=RECOVERING))
    # What changes while it is recovering is no election, nor is its end.
    delta.apply(change(topic_id=A, partition_id=1, isr=[3, 1]))
    delta.apply(change(topic_id=A, partition_id=1, leader_recovery_state=RECOVERED))
    assert delta.unclean_elections == 1


def test_a_delta_names_only_what_changed() -> None:
    image = fold(*EVERYTHING)
    delta = Delta(image)
    assert delta.empty
    delta.apply(kafka.PartitionChangeRecord(topic_id=A, partition_id=2, leader=2))
    after = delta.image()
    change = delta.topics[A]
    assert not change.created
    assert list(change.partitions) == [2]
    assert change.before is not None
    assert change.before.partitions[2] != change.partition(2)
    # Everything that did not change is the same object in both images.
    assert after.topics.by_name["two.x"] is image.topics.by_name["two.x"]
    assert after.topics.by_name["one"].partitions[0] is image.topics.by_name["one"].partitions[0]
    assert after.configs is image.configs
    assert after.brokers is image.brokers


def test_a_null_value_removes_a_config() -> None:
    image = fold(*EVERYTHING)
    after = fold(
        kafka.ConfigRecord(resource_type=2, resource_name="one", name="cleanup.policy", value=None),
        image=image,
    )
    assert after.configs.of(ConfigType.TOPIC, "one") == {}
    assert (ConfigType.TOPIC, "one") not in dict(after.configs.items())
    assert after.configs.of_kind(ConfigType.BROKER) is image.configs.of_kind(ConfigType.BROKER)


def test_features_at_zero_are_off_and_kraft_version_is_no_feature_record() -> None:
    image = fold(
        *EVERYTHING,
        kafka.FeatureLevelRecord(name="group.version", feature_level=0),
        kafka.FeatureLevelRecord(name="kraft.version", feature_level=1),
    )
    assert image.features.all() == {"metadata.version": 30}


@pytest.mark.parametrize("level", [6, 31])
def test_an_unknown_metadata_version_stops_the_replay(level: int) -> None:
    with pytest.raises(MetadataError, match=f"metadata.version {level}"):
        fold(kafka.FeatureLevelRecord(name="metadata.version", feature_level=level))


def test_brokers_are_fenced_unfenced_changed_and_unregistered() -> None:
    image = fold(broker())
    assert image.brokers[1].fenced
    image = fold(kafka.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1), image=image)
    assert image.brokers[1].active
    change = kafka.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1)
    image = fold(change, image=image)
    assert not image.brokers[1].active
    image = fold(kafka.FenceBrokerRecord(id=1, epoch=7), image=image)
    assert image.brokers[1].fenced
    image = fold(kafka.UnfenceBrokerRecord(id=1, epoch=7), image=image)
    assert not image.brokers[1].fenced
    change = kafka.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=7, log_dirs=[A, B], cordoned_log_dirs=[B]
    )
    image = fold(change, image=image)
    assert (image.brokers[1].directories, image.brokers[1].cordoned) == ((A, B), (B,))
    image = fold(kafka.UnregisterBrokerRecord(broker_id=1, broker_epoch=7), image=image)
    assert not image.brokers


@pytest.mark.parametrize(
    "record",
    [
        kafka.PartitionRecord(topic_id=B, partition_id=0),
        kafka.PartitionChangeRecord(topic_id=B, partition_id=0),
        kafka.PartitionChangeRecord(topic_id=A, partition_id=9),
        kafka.RemoveTopicRecord(topic_id=B),
        kafka.TopicRecord(name="one", topic_id=B),
        kafka.ClearElrRecord(topic_name="absent"),
        kafka.FenceBrokerRecord(id=1, epoch=8),
        kafka.UnfenceBrokerRecord(id=2, epoch=7),
        kafka.UnregisterBrokerRecord(broker_id=1, broker_epoch=3),
        kafka.EndTransactionRecord(),
        kafka.AbortTransactionRecord(),
    ],
)
def test_a_record_that_contradicts_the_state_stops_the_replay(record: Message) -> None:
    image = fold(*topic("one", A), broker())
    with pytest.raises(MetadataError):
        fold(record, image=image)


def test_eligible_leaders_are_cleared_for_one_topic_or_for_all() -> None:
    elr = [
        kafka.PartitionChangeRecord(topic_id=each, partition_id=0, isr=[1], eligible_leader_replicas=[2])
        for each in (A, B)
    ]
    image = fold(*topic("one", A), *topic("two", B), *elr)
    after = fold(kafka.ClearElrRecord(topic_name="one"), image=image)
    assert after.topics.by_id[A].partitions[0].elr == ()
    assert after.topics.by_id[B].partitions[0].elr == (2,)
    after = fold(kafka.ClearElrRecord(topic_name=""), image=image)
    assert after.topics.by_id[B].partitions[0].elr == ()


def test_credentials_entries_tokens_and_quotas_can_be_removed() -> None:
    image = fold(*EVERYTHING)
    after = fold(
        kafka.RemoveAccessControlEntryRecord(id=A),
        kafka.RemoveUserScramCredentialRecord(name="bob", mechanism=1),
        kafka.RemoveDelegationTokenRecord(token_id="t"),
        kafka.ClientQuotaRecord(
            entity=[
                kafka.ClientQuotaRecord.EntityData(entity_type="client-id", entity_name=None),
                kafka.ClientQuotaRecord.EntityData(entity_type="user", entity_name="bob"),
            ],
            key="producer_byte_rate",
            remove=True,
        ),
        image=image,
    )
    assert not after.acls
    assert not after.scram
    assert not after.tokens
    assert not after.quotas
    assert image.scram[1, "bob"].iterations == 4096


def test_a_transaction_settles_as_a_whole_and_an_aborted_one_not_at_all() -> None:
    folding = Fold()
    folding.apply(0, kafka.TopicRecord(name="before", topic_id=B))
    folding.apply(1, kafka.BeginTransactionRecord(name="t"))
    folding.apply(2, kafka.TopicRecord(name="one", topic_id=A))
    folding.advance(3, 1, 5)
    assert [set(change.image.topics.by_name) for change in folding.settle()] == [{"before"}]
    assert folding.settle() == []
    folding.apply(3, kafka.AbortTransactionRecord())
    folding.settle()
    assert set(folding.image.topics.by_name) == {"before"}
    folding.apply(4, kafka.BeginTransactionRecord())
    folding.apply(5, kafka.TopicRecord(name="one", topic_id=A))
    folding.apply(6, kafka.EndTransactionRecord())
    folding.settle()
    assert set(folding.image.topics.by_name) == {"before", "one"}
    with pytest.raises(MetadataError, match="none began"):
        folding.apply(7, kafka.EndTransactionRecord())


def test_images_know_where_they_stand() -> None:
    folding = Fold()
    folding.apply(4, kafka.NoOpRecord())
    folding.advance(5, 3, 1000)
    (change,) = folding.settle()
    assert change.delta.empty
    assert (change.image.offset, change.image.epoch, change.image.timestamp_ms) == (4, 3, 1000)
    assert folding.end_offset == 5
    assert folding.settle() == []
