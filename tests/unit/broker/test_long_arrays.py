"""Arrays that are decided at once have a bound, and filters are looked at once, not for each coordinator."""

from ottla.broker.apis import (
    alter_configs,
    controller_registration,
    create_topics,
    find_coordinator,
    incremental_alter_configs,
    list_groups,
    list_transactions,
    metadata,
    update_features,
)
from ottla.controller.configs import SETTINGS_MAX
from ottla.controller.features import UPDATES_MAX
from ottla.controller.registration import NAMED_MAX
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_configs import AlterConfigsRequest
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.update_features import UpdateFeaturesRequest


def test_a_resource_has_so_many_settings_in_a_request(station):
    station.create("t")
    for api, request in (
        (alter_configs.API, AlterConfigsRequest),
        (incremental_alter_configs.API, IncrementalAlterConfigsRequest),
    ):
        resource = request.AlterConfigsResource
        change = resource.AlterableConfig
        for count in (SETTINGS_MAX, SETTINGS_MAX + 1):
            configs = [change(name=f"n{number}", value="v") for number in range(count)]
            asked = request(resources=[resource(resource_type=2, resource_name="t", configs=configs)])
            [answer] = station.ask(api, asked).responses
            assert ("at most" in answer.error_message) == (count > SETTINGS_MAX)
            assert answer.error_code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)


def test_a_new_topic_has_so_many_settings(station):
    topic = CreateTopicsRequest.CreatableTopic
    configs = [topic.CreatableTopicConfig(name=f"n{number}", value="v") for number in range(SETTINGS_MAX + 1)]
    asked = CreateTopicsRequest(
        topics=[topic(name="t", num_partitions=1, replication_factor=1, configs=configs)]
    )
    [answer] = station.ask(create_topics.API, asked).topics
    assert answer.error_code == ErrorCode.INVALID_REQUEST and "at most" in answer.error_message


def test_a_request_updates_so_many_features(station):
    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(feature=f"f{number}", max_version_level=1, upgrade_type=1)
        for number in range(UPDATES_MAX + 1)
    ]
    answer = station.ask(update_features.API, UpdateFeaturesRequest(feature_updates=updates))
    assert answer.error_code == ErrorCode.INVALID_REQUEST and "at most" in answer.error_message


def test_a_registration_names_so_many_listeners(station):
    listener = ControllerRegistrationRequest.Listener
    listeners = [listener(name=f"L{number}", host="h", port=1) for number in range(NAMED_MAX + 1)]
    asked = ControllerRegistrationRequest(controller_id=7, listeners=listeners)
    before = station.broker.image
    answer = station.ask(controller_registration.API, asked)
    assert answer.error_code == ErrorCode.INVALID_REGISTRATION
    assert station.broker.image is before


def test_filters_are_looked_at_once(station):
    class Counting(str):
        looks = 0

        def lower(self):
            Counting.looks += 1
            return str.lower(self)

        def __hash__(self):
            return str.__hash__(self)

    station.ask(find_coordinator.API, FindCoordinatorRequest(coordinator_keys=["g"]))
    assert "__consumer_offsets" in station.broker.image.topics.by_name
    request = ListGroupsRequest(
        states_filter=[Counting("Empty")] * 100, types_filter=[Counting("classic")] * 100
    )
    list_groups.handle(request, 5, station.connection, station.broker)
    station.settle()
    assert Counting.looks == 200


def test_unknown_states_are_told_once_and_let_nobody_pass(station):
    asked = ListTransactionsRequest(state_filters=["Odd", "Ongoing", "Odd", "Queer"])
    found = list_transactions._states(asked.state_filters)
    assert found == (["Ongoing"], ["Odd", "Queer"])


def test_metadata_of_very_many_absent_topics_makes_none_of_them(station):
    topics = [MetadataRequest.MetadataRequestTopic(name=f"n{number}") for number in range(10_001)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
    steps = metadata.API.long(metadata.handle, request, 13, station.connection, station.broker)
    while True:
        try:
            next(steps)
            station.settle()
        except StopIteration as end:
            answer = end.value
            break
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(answer.topics) == 10_001 and not station.broker.image.topics.by_name
