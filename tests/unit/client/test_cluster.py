"""What is known of the cluster: news replaces what is old, and late answers do not undo it."""

import asyncio

import pytest

from ottla.client.cluster import Cluster
from ottla.client.connections import ClientConnections, Node
from ottla.client.errors import ClientError, NoBroker, Refused, TimedOut
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.find_coordinator import FindCoordinatorResponse
from ottla.wire.messages.metadata import MetadataResponse
from ottla.world.entropy import SeededEntropy
from tests.unit.client.brokers import SETTINGS, SILENCE, Brokers, broker, topic


def run(test, **settings):
    async def play():
        brokers = Brokers()
        brokers.metadata.brokers = [broker(1, "one"), broker(2, "two")]
        merged = {**SETTINGS, **settings}
        cluster = Cluster(merged, ClientConnections(merged, brokers, SeededEntropy(1)))
        try:
            await test(brokers, cluster)
        finally:
            await cluster.close()
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(play())


def test_one_address_that_answers_is_enough():
    async def test(brokers, cluster):
        brokers.down.add("one:9092")
        await cluster.open()
        assert {node.id for node in cluster.connections.nodes} == {1, 2}
        assert (cluster.id, cluster.controller) == ("c", 1)

    run(test)


def test_when_nobody_answers_the_error_says_who_was_tried_and_what_to_check():
    async def test(brokers, cluster):
        brokers.down |= {"one:9092", "two:9092"}
        with pytest.raises(NoBroker, match=r"(?s)one:9092, two:9092.*hint: check bootstrap.servers"):
            await cluster.open(30)

    run(test)


def test_a_topic_is_waited_for_until_it_has_leaders():
    async def test(brokers, cluster):
        await cluster.open()
        answers = [
            topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            topic("t", error=ErrorCode.LEADER_NOT_AVAILABLE),
            topic("t", (1, 0), (2, 0)),
        ]

        def metadata(request):
            assert [each.name for each in request.topics] == ["t"]
            return MetadataResponse(brokers=brokers.metadata.brokers, topics=[answers.pop(0)])

        brokers.handlers["Metadata"] = metadata
        found = await cluster.topic("t")
        assert sorted(found.leaders) == [0, 1]
        assert await cluster.topic("t") is found, "known ones cost no request"
        assert cluster.leader("t", 1).node == 2
        assert cluster.name_of(b"i" * 16) == "t"

    run(test)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(ErrorCode.TOPIC_AUTHORIZATION_FAILED, Refused), (ErrorCode.INVALID_TOPIC_EXCEPTION, Refused)],
)
def test_a_topic_that_cannot_be_had_is_told_at_once(code, kind):
    async def test(brokers, cluster):
        await cluster.open()
        brokers.metadata.topics = [topic("t", error=code)]
        with pytest.raises(kind) as caught:
            await cluster.topic("t")
        assert caught.value.code is code

    run(test)


def test_a_topic_that_does_not_come_into_being_is_told_in_the_end():
    async def test(brokers, cluster):
        await cluster.open()
        brokers.metadata.topics = [topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        with pytest.raises(Refused, match="create the topic"):
            await cluster.topic("t", 30)
        brokers.down |= {"one:9092", "two:9092"}
        brokers.hang_up()
        with pytest.raises(TimedOut):
            await cluster.topic("u", 30)

    run(test)


def test_only_a_higher_epoch_replaces_a_leader():
    async def test(brokers, cluster):
        await cluster.open()
        brokers.metadata.topics = [topic("t", (1, 5))]
        await cluster.topic("t")
        assert cluster.learn_leader("t", 0, 2, 6, [])
        assert not cluster.learn_leader("t", 0, 1, 6, []), "no news"
        assert not cluster.learn_leader("t", 0, 3, 7, []), "nobody knows where 3 is"
        await cluster.refresh()
        assert cluster.leader("t", 0)[:2] == (2, 6), "the metadata answer was late"
        assert cluster.learn_leader("t", 0, 3, 7, [Node(3, "three", 9092)])
        assert cluster.node(3).host == "three"

    run(test)


def test_a_leader_that_others_have_seen_replaced_is_not_asked():
    async def test(brokers, cluster):
        await cluster.open()
        brokers.metadata.topics = [topic("t", (1, 5))]
        await cluster.topic("t")
        cluster.supersede_leader("t", 0, 5)
        cluster.supersede_leader("u", 0, 9)
        assert cluster.leader("t", 0)[:2] == (1, 5)
        cluster.supersede_leader("t", 0, 6)
        await cluster.refresh()
        assert cluster.leader("t", 0) is None, "whoever says that it leads in epoch 5 does not know better"
        assert cluster.learn_leader("t", 0, 2, 6, [])
        cluster.supersede_leader("t", 0, 8)
        brokers.metadata.topics = [topic("t", (1, 8))]
        await cluster.refresh()
        assert cluster.leader("t", 0)[:2] == (1, 8)

    run(test)


def test_a_topic_made_anew_under_its_name_starts_over():
    async def test(brokers, cluster):
        await cluster.open()
        brokers.metadata.topics = [topic("t", (1, 5), (1, 5))]
        await cluster.topic("t")
        brokers.metadata.topics = [topic("t", (2, 0), id=b"j" * 16)]
        await cluster.refresh()
        assert cluster.leader("t", 0)[:2] == (2, 0)
        assert cluster.leader("t", 1) is None
        assert (cluster.name_of(b"i" * 16), cluster.name_of(b"j" * 16)) == (None, "t")

    run(test)


def test_many_who_ask_share_one_request():
    async def test(brokers, cluster):
        await cluster.open()
        brokers.metadata.topics = [topic("t", (1, 0))]
        before = len(brokers.names())
        cluster.request_refresh()
        cluster.request_refresh()
        await asyncio.gather(*(cluster.topic("t") for _ in range(20)))
        assert len(brokers.names()) - before <= 2

    run(test)


def test_another_broker_is_asked_when_one_is_gone():
    async def test(brokers, cluster):
        await cluster.open()
        brokers.metadata.topics = [topic("t", (1, 0))]
        await cluster.topic("t")
        gone = next(iter(brokers.open)).address
        brokers.down.add(gone)
        brokers.hang_up()
        await cluster.refresh()
        assert brokers.asked[-1][0] != gone

    run(test)


def test_nothing_is_asked_after_the_end():
    async def test(brokers, cluster):
        await cluster.open()
        await cluster.close()
        cluster.request_refresh()

    run(test)


def test_listeners_hear_of_news():
    async def test(brokers, cluster):
        heard = []
        cluster.add_listener(lambda: heard.append(cluster.version))
        await cluster.open()
        await cluster.refresh()
        assert heard == [1, 2]

    run(test)


def test_who_does_not_listen_any_more_hears_nothing():
    async def test(brokers, cluster):
        heard = []
        cluster.add_listener(heard.clear)
        listener = lambda: heard.append(cluster.version)  # noqa: E731
        cluster.add_listener(listener)
        await cluster.open()
        cluster.remove_listener(listener)
        cluster.remove_listener(heard.clear)
        await cluster.refresh()
        assert heard == [1]

    run(test)


def test_the_coordinator_is_found_in_both_forms():
    async def test(brokers, cluster):
        await cluster.open()
        part = FindCoordinatorResponse.Coordinator

        def find(request):
            if request.coordinator_keys:
                return FindCoordinatorResponse(coordinators=[part(key="g", node_id=2, host="two", port=9092)])
            return FindCoordinatorResponse(node_id=1, host="one", port=9092)

        brokers.handlers["FindCoordinator"] = find
        assert await cluster.coordinator(0, "g") == 2
        brokers.hang_up()
        await asyncio.sleep(0)
        brokers.limits = {each: {"FindCoordinator": 3} for each in ("one:9092", "two:9092")}
        assert await cluster.coordinator(0, "g") == 1
        brokers.handlers["FindCoordinator"] = lambda _: FindCoordinatorResponse(error_code=15)
        with pytest.raises(Refused) as caught:
            await cluster.coordinator(0, "g")
        assert caught.value.retriable

    run(test)


@pytest.mark.parametrize(
    "address", ["localhost", "localhost:", ":9092", "localhost:port", "localhost:70000", ""]
)
def test_an_address_that_is_none_is_refused_with_what_to_write(address):
    settings = {**SETTINGS, "bootstrap.servers": (address,)}
    with pytest.raises(ClientError, match="hint: write host:port"):
        Cluster(settings, ClientConnections(settings, Brokers(), SeededEntropy(1)))


def test_hosts_are_called_by_their_full_names_if_so_wished():
    async def test(brokers, cluster):
        await cluster.open()
        assert brokers.asked[0][0] in {f"{name}.example:9092" for name in ("one", "two", "one2", "two2")}

    run(test, **{"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"})


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
def test_when_nobody_is_left_it_begins_again_where_it_began(strategy):
    async def test(brokers, cluster):
        brokers.metadata.brokers = [broker(1, "three")]
        await cluster.open()
        brokers.down.add("three:9092")
        brokers.metadata.brokers = [broker(1, "four")]
        brokers.hang_up()
        for _ in range(200):
            if [node.host for node in cluster.connections.nodes] == ["four"]:
                break
            await asyncio.sleep(0.01)
        assert (cluster.connections.nodes[0].host == "four") is (strategy == "rebootstrap")

    run(
        test,
        **{
            "metadata.max.age.ms": 10,
            "metadata.recovery.strategy": strategy,
            "metadata.recovery.rebootstrap.trigger.ms": 20,
        },
    )


def test_a_broker_that_hangs_holds_up_nobody_who_can_ask_another(monkeypatch):
    monkeypatch.setattr("ottla.client.hedged_request.SILENCE_SECONDS", 0.01)

    async def test(brokers, cluster):
        for seed in range(20):  # whichever is asked first
            brokers.handlers[("one:9092", "ApiVersions")] = lambda request: SILENCE
            async with asyncio.timeout(5):
                await cluster.open()
                await cluster.refresh()
            await cluster.close()
            cluster = Cluster(merged, ClientConnections(merged, brokers, SeededEntropy(seed)))
        await cluster.close()

    merged = {**SETTINGS, "request.timeout.ms": 60_000, "socket.connection.setup.timeout.ms": 60_000}
    run(test, **{"request.timeout.ms": 60_000})
