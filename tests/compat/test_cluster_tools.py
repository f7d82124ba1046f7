"""Apache Kafka's own tools on a cluster of three nodes, as an operator runs them.

What they print is what they print on Apache Kafka: with COMPAT_SERVER=kafka the same tests run on three nodes of it.
"""

import itertools
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.chosen import CHOSEN
from tests.peers.cluster import Cluster
from tests.peers.deadline import eventually
from tests.peers.server import HOST, free_ports
from tests.peers.toolbox import Toolbox

pytestmark = [pytest.mark.usefixtures("apache_kafka"), pytest.mark.long]

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RECORD_BYTES = 1000
RECORDS = (
    3000  # a partition; a follower takes a megabyte at once, and waits for the next when there is a throttle
)
SLOW = 20_000  # bytes a second
_serial = itertools.count(1)


class Operator:
    """Who runs the tools."""

    def __init__(self, cluster: Cluster, box: Toolbox, directory: Path) -> None:
        self.cluster, self.box, self.directory = cluster, box, directory

    def tool(self, name: str, *arguments: str, check: bool = True) -> str:
        return self.box.tool(name, "--bootstrap-server", self.cluster.bootstrap, *arguments, check=check)

    def at_controllers(self, name: str, *arguments: str, check: bool = True) -> str:
        where = ",".join(f"{HOST}:{node.controller_port}" for node in self.cluster.nodes.values())
        return self.box.tool(name, "--bootstrap-controller", where, *arguments, check=check)

    def create(self, assignment: str, **settings: str) -> str:
        """A topic whose replicas are where they are told to be."""
        topic = f"topic-{next(_serial)}"
        configs = [["--config", f"{key.replace('_', '.')}={value}"] for key, value in settings.items()]
        placed = ["--create", "--topic", topic, "--replica-assignment", assignment]
        self.tool("TopicCommand", *placed, *itertools.chain(*configs))
        self.cluster.wait_in_sync(topic, len(assignment.split(",")[0].split(":")))
        return topic

    def fill(self, topic: str, partitions: int) -> None:
        counts = ["--num-records", str(partitions * RECORDS), "--record-size", str(RECORD_BYTES)]
        where = ["--bootstrap-server", self.cluster.bootstrap, "--topic", topic]
        self.box.tool("ProducerPerformance", *where, *counts, "--throughput", "-1")

    def plan(self, topic: str, *replicas: list[int]) -> Path:
        """A file that says where partitions shall be."""
        places = [
            {"topic": topic, "partition": number, "replicas": each} for number, each in enumerate(replicas)
        ]
        path = self.directory / f"{topic}-{next(_serial)}.json"
        path.write_text(json.dumps({"version": 1, "partitions": places}))
        return path

    def reassign(self, *arguments: object) -> str:
        return self.tool("reassign.ReassignPartitionsCommand", *map(str, arguments))

    def partitions(self, topic: str) -> dict[int, dict[str, str]]:
        """Leader, Replicas and Isr of each partition, as kafka-topics prints them."""
        printed = self.tool("TopicCommand", "--describe", "--topic", topic)
        found = {}
        for line in printed.splitlines():
            if line.startswith("\t"):
                facts = dict(re.findall(r"([A-Za-z ]+): ([\d,]*|none)(?:\t|$)", line.strip()))
                found[int(facts["Partition"])] = facts
        return found

    def bytes_out(self, id: int, topic: str) -> float:
        """How much of a topic a follower has given to consumers, where it tells."""
        if CHOSEN != "ottla":
            return 0
        where = self.cluster.nodes[id].settings["ottla.metrics.listener"]
        with urllib.request.urlopen(f"http://{where}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        found = [line for line in lines if "bytesout_total" in line and f'"{topic}"' in line]
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def throttles(self, topic: str) -> str:
        brokers = self.tool("kafka.admin.ConfigCommand", "--describe", "--entity-type", "brokers")
        of_topic = ["--describe", "--entity-type", "topics", "--entity-name", topic]
        return brokers + self.tool("kafka.admin.ConfigCommand", *of_topic)


@pytest.fixture(scope="module")
def box(request: pytest.FixtureRequest) -> Iterator[Toolbox]:
    from tests.compat.absence import need_kafka

    need_kafka()
    with Toolbox() as made:
        yield made


@pytest.fixture(scope="module")
def operator(box: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    cluster = Cluster(
        tmp_path_factory.mktemp("cluster"), {"replica.selector.class": SELECTOR}, product=CHOSEN
    )
    for id, node in cluster.nodes.items():
        node.settings |= {"broker.rack": f"r{id}", "ottla.metrics.listener": f"{HOST}:{free_ports(1)[0]}"}
    try:
        cluster.start()
        yield Operator(cluster, box, tmp_path_factory.mktemp("plans"))
    finally:
        for node in cluster.nodes.values():
            node.kill()


def test_metadata_quorum(operator: Operator) -> None:
    nodes = operator.cluster.nodes
    for ask in (operator.tool, operator.at_controllers):
        status = ask("MetadataQuorumCommand", "describe", "--status")
        assert f"ClusterId:              {nodes[1].cluster_id}\n" in status
        leader = re.search(r"LeaderId:\s+([123])\n", status)
        assert leader
        assert re.search(r"LeaderEpoch:\s+[1-9]\d*\nHighWatermark:\s+[1-9]\d*\n", status)
        assert re.search(r"MaxFollowerLag:\s+\d+\nMaxFollowerLagTimeMs:\s+-?\d+\n", status)
        voters = ", ".join(
            f'{{"id": {id}, "endpoints": ["CONTROLLER://{HOST}:{node.controller_port}"]}}'
            for id, node in nodes.items()
        )
        assert f"CurrentVoters:          [{voters}]\nCurrentObservers:       []" in status
        replicas = ask("MetadataQuorumCommand", "describe", "--replication")
        rows = [line.split() for line in replicas.splitlines()[1:]]
        assert sorted(row[0] for row in rows) == ["1", "2", "3"]
        roles = {row[0]: row[-1] for row in rows}
        assert roles.pop(leader[1]) == "Leader"
        assert set(roles.values()) == {"Follower"}
        assert len(rows[0]) == 7


def test_reassignments_with_a_throttle(operator: Operator) -> None:
    topic = operator.create("1:2,2:3,3:1")
    operator.fill(topic, 3)
    wish = operator.directory / "topics.json"
    wish.write_text(json.dumps({"topics": [{"topic": topic}], "version": 1}))
    generated = operator.reassign(
        "--generate", "--topics-to-move-json-file", wish, "--broker-list", "1,2,3"
    ).splitlines()
    current = json.loads(generated[1])["partitions"]
    assert [each["replicas"] for each in current] == [[1, 2], [2, 3], [3, 1]]
    data = {id: str(node.log_dir) for id, node in operator.cluster.nodes.items()}
    assert current[0]["log_dirs"] == [data[1], data[2]]
    assert len(json.loads(generated[-1])["partitions"]) == 3

    plan = operator.plan(topic, [3, 2], [1, 3], [2, 1])
    told = operator.reassign("--execute", "--reassignment-json-file", plan, "--throttle", SLOW)
    assert f"The inter-broker throttle limit was set to {SLOW} B/s" in told
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1,{topic}-2" in told
    assert operator.reassign("--list").splitlines() == [
        "Current partition reassignments:",
        f"{topic}-0: replicas: 3,2,1. adding: 3. removing: 1.",
        f"{topic}-1: replicas: 1,3,2. adding: 1. removing: 2.",
        f"{topic}-2: replicas: 2,1,3. adding: 2. removing: 3.",
    ]
    verified = operator.reassign("--verify", "--reassignment-json-file", plan, "--preserve-throttles")
    assert f"Reassignment of partition {topic}-2 is still in progress." in verified
    throttles = operator.throttles(topic)
    for side in ("leader", "follower"):
        assert throttles.count(f"  {side}.replication.throttled.rate={SLOW} ") == 3
    assert "follower.replication.throttled.replicas=0:3,1:1,2:2 " in throttles
    assert "leader.replication.throttled.replicas=0:1,0:2,1:2,1:3,2:1,2:3 " in throttles
    assert operator.partitions(topic)[0] == {
        "Partition": "0",
        "Leader": "1",
        "Replicas": "3,2,1",
        "Isr": "1,2",
        "Adding Replicas": "3",
        "Removing Replicas": "1",
        "Elr": "",
    }

    operator.reassign("--execute", "--additional", "--reassignment-json-file", plan, "--throttle", 50_000_000)

    def is_done() -> bool:
        said = operator.reassign("--verify", "--reassignment-json-file", plan)
        return said.count("is completed.") == 3

    eventually(is_done, seconds_max=60)
    assert "No partition reassignments found." in operator.reassign("--list")
    assert "throttled" not in operator.throttles(topic)
    moved = operator.partitions(topic)
    assert [each["Replicas"] for _, each in sorted(moved.items())] == ["3,2", "1,3", "2,1"]
    for name in ("1:0", "2:1", "3:2"):
        broker, _, partition = name.partition(":")
        gone = operator.cluster.nodes[int(broker)].log_dir / f"{topic}-{partition}"
        eventually(lambda gone=gone: not gone.exists(), seconds_max=90)  # type: ignore[misc]


def test_a_reassignment_is_cancelled(operator: Operator) -> None:
    topic = operator.create("1:2")
    operator.fill(topic, 1)
    plan = operator.plan(topic, [3, 2])
    operator.reassign("--execute", "--reassignment-json-file", plan, "--throttle", SLOW)
    told = operator.reassign("--cancel", "--reassignment-json-file", plan)
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in told
    found = operator.partitions(topic)[0]
    assert found["Isr"] == "1,2"
    assert sorted(found["Replicas"].split(",")) == ["1", "2"]
    assert "throttled" not in operator.throttles(topic)
    again = operator.reassign("--cancel", "--reassignment-json-file", plan)
    assert "None of the specified partition reassignments are active." in again
    verified = operator.reassign("--verify", "--reassignment-json-file", plan)
    assert f"There is no active reassignment of partition {topic}-0, but replica set is" in verified
    unknown = operator.tool(
        "reassign.ReassignPartitionsCommand",
        "--execute",
        "--reassignment-json-file",
        str(operator.plan(topic, [1, 9])),
        check=False,
    )
    assert "Error: Unknown broker id 9" in unknown


def test_leader_elections(operator: Operator) -> None:
    def elect(kind: str, topic: str, check: bool = True) -> str:
        wish = ["--election-type", kind, "--topic", topic, "--partition", "0"]
        return operator.tool("LeaderElectionCommand", *wish, check=check)

    topic = operator.create("3:2", min_insync_replicas="1")
    other = operator.create("1:2")
    assert f"Valid replica already elected for partitions {topic}-0" in elect("preferred", topic)
    assert f"Valid replica already elected for partitions {topic}-0" in elect("unclean", topic)
    assert "UnknownTopicOrPartitionException: No such topic as none" in elect("preferred", "none", False)
    nodes = operator.cluster.nodes
    nodes[3].stop()
    eventually(lambda: operator.partitions(topic)[0]["Isr"] == "2")
    assert "PreferredLeaderNotAvailableException: The preferred leader was not available." in elect(
        "preferred", topic, False
    )
    nodes[3].start()
    eventually(lambda: operator.partitions(topic)[0]["Isr"] == "2,3", seconds_max=30)
    eventually(
        lambda: "Successfully completed leader election (PREFERRED)" in elect("preferred", topic, False)
    )
    assert operator.partitions(topic)[0]["Leader"] == "3"

    # The last in sync goes as well, and the one that is there has less than it had.
    nodes[3].stop()
    eventually(lambda: operator.partitions(topic)[0]["Isr"] == "2")
    nodes[2].stop()
    nodes[3].start()
    operator.cluster.wait_whole()
    eventually(lambda: operator.partitions(topic)[0]["Leader"] == "none", seconds_max=30)
    unavailable = operator.tool("TopicCommand", "--describe", "--unavailable-partitions")
    assert f"Topic: {topic}\tPartition: 0\tLeader: none" in unavailable
    eventually(
        lambda: (
            f"Successfully completed leader election (UNCLEAN) for partitions {topic}-0"
            in elect("unclean", topic, False)
        )
    )
    eventually(lambda: operator.partitions(topic)[0]["Isr"] == "3")
    nodes[2].start()
    operator.cluster.wait_whole()
    # Nothing was written meanwhile, and nobody stays behind for that.
    for name in (topic, other):
        operator.cluster.wait_in_sync(name, 2)
    under = ["--describe", "--under-replicated-partitions"]
    eventually(lambda: operator.tool("TopicCommand", *under).strip() == "", seconds_max=30)


def test_features(operator: Operator) -> None:
    def change(*arguments: str) -> str:
        return operator.tool("FeatureCommand", *arguments, check=False)

    def finalized(printed: str) -> dict[str, str]:
        return dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", printed))

    expected = {
        "eligible.leader.replicas.version": "1",
        "group.version": "1",
        "kraft.version": "0",
        "metadata.version": "4.3-IV0",
        "share.version": "1",
        "streams.version": "1",
        "transaction.version": "2",
    }
    for ask in (operator.tool, operator.at_controllers):
        assert finalized(ask("FeatureCommand", "describe")) == expected
    assert "share.version was downgraded to 0." in change("downgrade", "--feature", "share.version=0")
    assert "share.version can be upgraded to 1." in change(
        "upgrade", "--feature", "share.version=1", "--dry-run"
    )
    assert "share.version was upgraded to 1." in change("upgrade", "--feature", "share.version=1")
    assert "only supports versions 0-1" in change("upgrade", "--feature", "share.version=9")
    assert "Refusing to perform the requested downgrade" in change(
        "downgrade", "--feature", "metadata.version=25"
    )
    assert "group.version was disabled." in change("disable", "--feature", "group.version")
    assert "Could not disable metadata.version." in change("disable", "--feature", "metadata.version")
    assert "does not support this feature" in change("upgrade", "--feature", "nonsense=1")
    assert "group.version was upgraded to 1." in change("upgrade", "--feature", "group.version=1")


def test_a_static_quorum_becomes_dynamic(operator: Operator) -> None:
    refused = operator.tool(
        "MetadataQuorumCommand",
        *("remove-controller", "--controller-id", "3", "--controller-directory-id", "AAAAAAAAAAAAAAAAAAAAAA"),
        check=False,
    )
    assert "InvalidRequestException" in refused
    # A voter that has just started tells its directory a moment later.
    eventually(
        lambda: (
            "kraft.version was upgraded to 1."
            in operator.tool("FeatureCommand", "upgrade", "--release-version", "4.3", check=False)
        ),
        seconds_max=30,
    )
    for ask in (operator.tool, operator.at_controllers):
        eventually(
            lambda ask=ask: (  # type: ignore[misc]
                re.search(r"kraft.version\s.*FinalizedVersionLevel: 1", ask("FeatureCommand", "describe"))
            )
        )
    lowered = operator.tool("FeatureCommand", "downgrade", "--feature", "kraft.version=0", check=False)
    assert "Can't downgrade the version of this feature." in lowered
    rows = directories(operator)
    assert len(set(rows.values()) - {"AAAAAAAAAAAAAAAAAAAAAA"}) == 3
    last = max(operator.cluster.nodes)
    gone = ["remove-controller", "--controller-id", str(last), "--controller-directory-id", rows[str(last)]]
    assert f"KRaft controller {last} with directory id {rows[str(last)]}" in operator.tool(
        "MetadataQuorumCommand", *gone
    )
    eventually(lambda: len(voters(operator)) == 2)
    assert f'CurrentObservers:       [{{"id": {last},' in operator.tool(
        "MetadataQuorumCommand", "describe", "--status"
    )
    node = operator.cluster.nodes[last]
    added = operator.tool(
        "MetadataQuorumCommand", "--command-config", str(node.properties_path), "add-controller"
    )
    assert f"Added controller {last} with directory id {rows[str(last)]}" in added
    eventually(lambda: len(voters(operator)) == 3)
    # What they agreed on outlives them.
    for node in operator.cluster.nodes.values():
        node.stop()
        node.start()
        operator.cluster.wait_whole()
    assert directories(operator) == rows


def voters(operator: Operator) -> list[int]:
    """Who votes, as the tool prints it."""
    status = operator.tool("MetadataQuorumCommand", "describe", "--status")
    found = re.search(r"CurrentVoters:\s+(\[.*\])", status)
    assert found
    return [each["id"] for each in json.loads(found[1])]


def directories(operator: Operator) -> dict[str, str]:
    """The directory of each voter."""
    printed = operator.tool("MetadataQuorumCommand", "describe", "--replication")
    return {line.split()[0]: line.split()[1] for line in printed.splitlines()[1:]}


def test_cluster(operator: Operator) -> None:
    nodes, where = operator.cluster.nodes, ["--bootstrap-server", operator.cluster.bootstrap]
    controllers = ",".join(f"{HOST}:{node.controller_port}" for node in nodes.values())

    def ask(*arguments: str, check: bool = True) -> str:
        return operator.box.tool("ClusterTool", *arguments, check=check)

    for place in (where, ["--bootstrap-controller", controllers]):
        assert f"Cluster ID: {nodes[1].cluster_id}" in ask("cluster-id", *place)
    listed = ask("list-endpoints", *where, "--include-fenced-brokers").splitlines()[1:]
    assert [line.split() for line in listed] == [
        [str(id), HOST, str(node.port), f"r{id}", "unfenced", "broker"] for id, node in nodes.items()
    ]
    listed = ask("list-endpoints", "--bootstrap-controller", controllers).splitlines()[1:]
    assert [line.split() for line in listed] == [
        [str(id), HOST, str(node.controller_port), "null", "controller"] for id, node in nodes.items()
    ]
    assert "Broker ID 77 is not currently registered" in ask("unregister", "--id", "77", *where, check=False)
    nodes[3].stop()

    def is_fenced() -> bool:
        printed = ask("list-endpoints", *where, "--include-fenced-brokers")
        return re.search(r"^3\s.*\sfenced\s", printed, re.MULTILINE) is not None

    eventually(is_fenced, seconds_max=30)
    assert not re.search(r"^3\s", ask("list-endpoints", *where), re.MULTILINE)
    assert "Broker 3 is no longer registered." in ask("unregister", "--id", "3", *where)
    eventually(
        lambda: (
            not re.search(r"^3\s", ask("list-endpoints", *where, "--include-fenced-brokers"), re.MULTILINE)
        )
    )
    nodes[3].start()
    operator.cluster.wait_whole()


def test_broker_api_versions(operator: Operator) -> None:
    printed = operator.tool("BrokerApiVersionsCommand")
    for id, node in operator.cluster.nodes.items():
        assert f"{HOST}:{node.port} (id: {id} rack: r{id} isFenced: false) -> (" in printed
    for line in ("Fetch(1): 4 to 18", "ElectLeaders(43): 0 to 2", "AlterPartitionReassignments(45): 0 to 1"):
        assert printed.count(line) == 3


def test_the_java_consumer_reads_from_the_replica_in_its_rack(operator: Operator) -> None:
    topic = operator.create("1:2:3")
    operator.fill(topic, 1)
    counts = ["--topic", topic, "--max-messages", str(RECORDS), "--timeout-ms", "30000", "--from-beginning"]
    for id in (1, 3):
        before = operator.bytes_out(3, topic)
        near = ["--command-property", f"client.rack=r{id}"]
        printed = operator.tool("consumer.ConsoleConsumer", *counts, *near)
        assert f"Processed a total of {RECORDS} messages" in printed
        if CHOSEN == "ottla":
            assert operator.bytes_out(3, topic) - before >= (id == 3) * (RECORDS * RECORD_BYTES - (1 << 20))
            assert (operator.bytes_out(3, topic) > before) == (id == 3)


def test_the_java_share_consumer_and_its_tool(operator: Operator) -> None:
    """Three partitions on three leaders, their state on whichever brokers it falls to."""
    topic = operator.create("1:2:3,2:3:1,3:1:2")
    operator.fill(topic, 3)
    begin = ["--alter", "--add-config", "share.auto.offset.reset=earliest"]
    operator.tool("kafka.admin.ConfigCommand", "--entity-type", "groups", "--entity-name", topic, *begin)
    counts = ["--topic", topic, "--group", topic, "--max-messages", str(3 * RECORDS), "--timeout-ms", "30000"]
    printed = operator.tool("consumer.ConsoleShareConsumer", *counts)
    assert f"Processed a total of {3 * RECORDS} messages" in printed
    described = operator.tool("consumer.group.ShareGroupCommand", "--describe", "--offsets", "--group", topic)
    rows = [line.split() for line in described.splitlines() if line.startswith(topic)]
    assert len(rows) == 3
    assert all(int(row[3]) > 0 for row in rows), described
    assert {row[4] for row in rows} == {"0"}, described


def test_the_metadata_log_is_read_by_kafkas_tool(operator: Operator) -> None:
    """Last, since it wants all that was done before, and all nodes to have it."""
    nodes = operator.cluster.nodes.values()
    for node in nodes:
        node.stop()
    seen = []
    for node in nodes:
        folder = node.log_dir / "__cluster_metadata-0"
        files = ",".join(map(str, sorted(folder.glob("*.log"))))
        printed = operator.box.tool("DumpLogSegments", "--cluster-metadata-decoder", "--files", files)
        assert "isvalid: false" not in printed
        seen.append([json.loads(each) for each in re.findall(r"payload: (\{.*\})", printed)])
        assert "KRaftVersion" in printed and "KRaftVoters" in printed and "LeaderChange" in printed
    shortest = min(map(len, seen))
    assert seen[0][:shortest] == seen[1][:shortest] == seen[2][:shortest]
    kinds = {each["type"] for each in seen[0]}
    assert kinds >= {
        "REGISTER_BROKER_RECORD",
        "REGISTER_CONTROLLER_RECORD",
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "PARTITION_CHANGE_RECORD",
        "CONFIG_RECORD",
        "FEATURE_LEVEL_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "UNREGISTER_BROKER_RECORD",
    }
