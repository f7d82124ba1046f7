"""Questions on their way: to the right broker, in one request, and again when it was the wrong moment."""

import asyncio

import pytest

from ottla.client.admin.groups import Groups
from ottla.client.admin.log_dirs import LogDirs
from ottla.client.admin.offsets import Offsets, OffsetSpec
from ottla.client.admin.request_router import RequestRouter
from ottla.client.admin.tokens import Principal, Tokens
from ottla.client.admin.topics import Topics
from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections
from ottla.client.errors import Malformed, Refused, SomeFailed, Unsupported
from ottla.client.record import TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenResponse
from ottla.wire.messages.delete_groups import DeleteGroupsResponse
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenResponse
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsResponse
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorResponse
from ottla.wire.messages.list_offsets import ListOffsetsResponse
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenResponse
from ottla.world.entropy import SeededEntropy
from tests.unit.client.brokers import SETTINGS, Brokers, broker, topic

HOSTS = {1: "one", 2: "two"}


def play(test, **settings):
    """Play a test at a desk before two brokers."""

    async def main():
        brokers = Brokers()
        brokers.metadata = MetadataResponse(
            cluster_id="c",
            controller_id=1,
            brokers=[broker(number, host) for number, host in HOSTS.items()],
            topics=[topic("t", (1, 0), (2, 0), (-1, 0))],
        )
        chosen = {**SETTINGS, "retries": 100, "request.timeout.ms": 100, **settings}
        cluster = Cluster(chosen, ClientConnections(chosen, brokers, SeededEntropy(1)))
        await cluster.open()
        brokers.asked.clear()
        await test(brokers, RequestRouter(cluster, chosen))
        await cluster.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def coordinators(places):
    """Answers who coordinates what."""

    def find(request):
        kind = FindCoordinatorResponse.Coordinator
        return FindCoordinatorResponse(
            coordinators=[
                kind(key=key, node_id=places[key], host=HOSTS[places[key]], port=9092)
                for key in request.coordinator_keys
            ]
        )

    return find


def deleted(request, codes=None):
    kind = DeleteGroupsResponse.DeletableGroupResult
    return DeleteGroupsResponse(
        results=[kind(group_id=name, error_code=(codes or {}).get(name, 0)) for name in request.groups_names]
    )


def sent(brokers, name):
    return [(address, request) for address, api, _, request in brokers.asked if api == name]


def test_each_coordinator_is_sent_one_request():
    async def test(brokers, router):
        brokers.handlers["FindCoordinator"] = coordinators({"a": 1, "b": 2, "c": 1})
        brokers.handlers["DeleteGroups"] = deleted
        await Groups(router).delete(["a", "b", "c"])
        assert len(sent(brokers, "FindCoordinator")) == 1
        asked = {address: request.groups_names for address, request in sent(brokers, "DeleteGroups")}
        assert asked == {"one:9092": ["a", "c"], "two:9092": ["b"]}

    play(test)


def test_only_what_failed_for_the_moment_is_asked_again_and_of_the_new_coordinator():
    async def test(brokers, router):
        places = {"a": 1, "b": 1, "c": 1}
        brokers.handlers["FindCoordinator"] = coordinators(places)

        def first(request):
            places["b"] = 2
            return deleted(request, {"b": ErrorCode.NOT_COORDINATOR, "c": ErrorCode.NON_EMPTY_GROUP})

        brokers.handlers["one:9092", "DeleteGroups"] = first
        brokers.handlers["two:9092", "DeleteGroups"] = deleted
        with pytest.raises(SomeFailed) as caught:
            await Groups(router).delete(["a", "b", "c"])
        assert caught.value.errors.keys() == {"c"}
        assert caught.value.results == {"a": None, "b": None}
        asked = [(address, request.groups_names) for address, request in sent(brokers, "DeleteGroups")]
        assert asked == [("one:9092", ["a", "b", "c"]), ("two:9092", ["b"])]

    play(test)


def test_a_coordinator_that_is_not_there_yet_is_looked_for_again():
    async def test(brokers, router):
        missing = iter([ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE])

        def find(request):
            kind = FindCoordinatorResponse.Coordinator
            found = kind(key="a", node_id=1, host="one", port=9092, error_code=next(missing))
            return FindCoordinatorResponse(coordinators=[found])

        brokers.handlers["FindCoordinator"] = find
        brokers.handlers["DeleteGroups"] = deleted
        await Groups(router).delete("a")
        assert len(sent(brokers, "FindCoordinator")) == 2

    play(test)


def test_time_is_up_with_the_last_refusal():
    async def test(brokers, router):
        brokers.handlers["FindCoordinator"] = coordinators({"a": 1})
        brokers.handlers["DeleteGroups"] = lambda request: deleted(
            request, {"a": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        )
        with pytest.raises(Refused) as caught:
            await Groups(router).delete("a", timeout=0.05)
        assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert len(sent(brokers, "DeleteGroups")) > 1

    play(test)


def test_tries_are_counted():
    async def test(brokers, router):
        brokers.handlers["FindCoordinator"] = coordinators({"a": 1})
        brokers.handlers["DeleteGroups"] = lambda request: deleted(request, {"a": ErrorCode.NOT_COORDINATOR})
        with pytest.raises(Refused):
            await Groups(router).delete("a")
        assert len(sent(brokers, "DeleteGroups")) == 3

    play(test, retries=2)


def test_what_a_broker_passes_over_is_an_error():
    async def test(brokers, router):
        brokers.handlers["FindCoordinator"] = coordinators({"a": 1})
        brokers.handlers["DeleteGroups"] = lambda request: DeleteGroupsResponse()
        with pytest.raises(Malformed):
            await Groups(router).delete("a")

    play(test)


def offsets_at(end):
    def answer(request):
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        return ListOffsetsResponse(
            topics=[
                kind(
                    name=each.name,
                    partitions=[
                        kind.ListOffsetsPartitionResponse(partition_index=part.partition_index, offset=end)
                        for part in each.partitions
                    ],
                )
                for each in request.topics
            ]
        )

    return answer


def test_leaders_are_asked_and_those_without_one_waited_for():
    async def test(brokers, router):
        keys = [TopicPartition("t", number) for number in range(3)]
        brokers.handlers["one:9092", "ListOffsets"] = offsets_at(11)

        def elected(request):
            brokers.metadata.topics = [topic("t", (1, 0), (2, 0), (1, 1))]
            return offsets_at(22)(request)

        brokers.handlers["two:9092", "ListOffsets"] = elected
        found = await Offsets(router).list(dict.fromkeys(keys, OffsetSpec.LATEST))
        assert [found[key].offset for key in keys] == [11, 22, 11]
        asked = [
            (address, [part.partition_index for part in request.topics[0].partitions])
            for address, request in sent(brokers, "ListOffsets")
        ]
        assert sorted(asked[:2]) == [("one:9092", [0]), ("two:9092", [1])]
        assert asked[2] == ("one:9092", [2])

    play(test)


def test_a_partition_that_nobody_knows_fails_alone():
    async def test(brokers, router):
        brokers.handlers["ListOffsets"] = offsets_at(5)
        there, missing = TopicPartition("t", 0), TopicPartition("t", 7)
        with pytest.raises(SomeFailed) as caught:
            await Offsets(router).list(dict.fromkeys([there, missing], OffsetSpec.LATEST), timeout=0.03)
        assert caught.value.results[there].offset == 5
        assert caught.value.errors[missing].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    play(test)


def test_every_broker_is_asked_for_its_own():
    async def test(brokers, router):
        for number, host in HOSTS.items():
            answer = DescribeLogDirsResponse(
                results=[DescribeLogDirsResponse.DescribeLogDirsResult(log_dir=f"/data/{number}")]
            )
            brokers.handlers[f"{host}:9092", "DescribeLogDirs"] = lambda _, answer=answer: answer
        found = await LogDirs(router).describe()
        assert {number: list(dirs) for number, dirs in found.items()} == {1: ["/data/1"], 2: ["/data/2"]}
        assert list(await LogDirs(router).describe([2])) == [2]
        with pytest.raises(Refused, match="no such broker"):
            await LogDirs(router).describe([3])

    play(test)


def test_topics_are_described_in_the_older_way_where_there_is_no_newer():
    async def test(brokers, router):
        for host in HOSTS.values():
            brokers.limits[f"{host}:9092"] = {"DescribeTopicPartitions": -1}
        brokers.hang_up()
        await asyncio.sleep(0.01)
        described = (await Topics(router).describe("t"))["t"]
        assert [each.leader for each in described.partitions] == [1, 2, -1]
        assert described.partitions[0].eligible_leaders is None

    play(test)


def test_what_is_not_served_is_said_at_once():
    async def test(brokers, router):
        for host in HOSTS.values():
            brokers.limits[f"{host}:9092"] = {"DescribeDelegationToken": -1}
        brokers.hang_up()
        await asyncio.sleep(0.01)
        with pytest.raises(Unsupported):
            await Tokens(router).describe()

    play(test)


def test_tokens():
    """Apache Kafka gives tokens only to those who use SASL, which comes later; so here is what it would say."""
    ann, bob = Principal("User", "ann"), Principal("User", "bob")

    async def test(brokers, router):
        said = {
            "principal_type": "User",
            "principal_name": "ann",
            "token_requester_principal_type": "User",
            "token_requester_principal_name": "bob",
            "token_id": "id",
            "hmac": b"secret",
        }
        brokers.handlers["CreateDelegationToken"] = lambda _: CreateDelegationTokenResponse(
            **said, issue_timestamp_ms=1, expiry_timestamp_ms=2, max_timestamp_ms=3
        )
        kind = DescribeDelegationTokenResponse.DescribedDelegationToken
        brokers.handlers["DescribeDelegationToken"] = lambda _: DescribeDelegationTokenResponse(
            tokens=[
                kind(
                    **said,
                    issue_timestamp=1,
                    expiry_timestamp=2,
                    max_timestamp=3,
                    renewers=[
                        kind.DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")
                    ],
                )
            ]
        )
        brokers.handlers["RenewDelegationToken"] = lambda request: RenewDelegationTokenResponse(
            expiry_timestamp_ms=request.renew_period_ms
        )
        brokers.handlers["ExpireDelegationToken"] = lambda request: ExpireDelegationTokenResponse(
            expiry_timestamp_ms=request.expiry_time_period_ms
        )
        tokens = Tokens(router)
        made = await tokens.create(owner=ann, renewers=[bob], lifetime_max=0.009)
        [(_, request)] = sent(brokers, "CreateDelegationToken")
        assert (request.owner_principal_name, request.max_lifetime_ms) == ("ann", 9)
        assert request.renewers[0].principal_name == "bob"
        assert (made.owner, made.requester, made.renewers) == (ann, bob, (bob,))
        assert (made.issued_ms, made.expires_ms, made.expires_ms_max) == (1, 2, 3)
        assert "secret" not in repr(made)
        assert await tokens.describe([ann]) == (made,)
        assert await tokens.renew(made.hmac, period=0.005) == 5
        assert await tokens.expire(made.hmac) == -1

    play(test)
