"""Several nodes of one cluster, each a process, broker and controller in one; of Apache Kafka or of Ottla."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.peers.connection import Connection
from tests.peers.deadline import eventually
from tests.peers.kafka import KafkaServer
from tests.peers.ottla import OttlaServer
from tests.peers.server import HOST, Server, random_uuid

METADATA_VERSION = 12


class OttlaMember(OttlaServer):
    """One node of a static quorum."""

    def format_command(self) -> list[str]:
        return [each for each in super().format_command() if each != "--standalone"]


class KafkaMember(KafkaServer):
    """One node of a static quorum."""

    def format_command(self) -> list[str]:
        return [each for each in super().format_command() if each != "--standalone"]


MEMBERS: dict[str, type[Server]] = {"ottla": OttlaMember, "kafka": KafkaMember}


class Cluster:
    """Nodes 1 to `count`; topics have three replicas, of which two have to be in sync, unless told otherwise."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        count: int = 3,
        product: str = "ottla",
    ) -> None:
        cluster_id = random_uuid()
        self.nodes: dict[int, Server] = {}
        for number in range(1, count + 1):
            node = MEMBERS[product](directory / f"node-{number}")
            node.cluster_id = cluster_id
            self.nodes[number] = node
        voters = ",".join(f"{id}@{HOST}:{node.controller_port}" for id, node in self.nodes.items())
        for id, node in self.nodes.items():
            node.settings |= {
                "node.id": str(id),
                "controller.quorum.voters": voters,
                "controller.quorum.bootstrap.servers": "",
                "default.replication.factor": str(min(3, count)),
                "min.insync.replicas": str(min(2, count)),
                "offsets.topic.replication.factor": str(min(3, count)),
                "offsets.topic.num.partitions": "5",
                "transaction.state.log.replication.factor": str(min(3, count)),
                "transaction.state.log.num.partitions": "5",
                "transaction.state.log.min.isr": str(min(2, count)),
                **(settings or {}),
            }

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values())

    def start(self) -> None:
        """Start all, and wait until every broker is in the metadata of every other."""
        for node in self.nodes.values():
            node.start(wait=False)
        for node in self.nodes.values():
            node.wait_ready()
        self.wait_whole()

    def stop(self) -> None:
        for node in self.nodes.values():
            node.stop()

    def metadata(self, id: int, *topics: str) -> MetadataResponse:
        """What a node says of the cluster, and of these topics."""
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        with Connection(self.nodes[id].port) as line:
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
            return line.ask(request, MetadataResponse, METADATA_VERSION)

    def wait_whole(self, seconds_max: float = 60) -> None:
        """Wait until every node that runs knows all that run."""
        running = {id for id, node in self.nodes.items() if node.process is not None}
        eventually(
            lambda: all(
                running <= {broker.node_id for broker in self.metadata(id).brokers} for id in running
            ),
            seconds_max=seconds_max,
        )

    def leaders(self, topic: str) -> dict[int, int]:
        """Who leads each partition, as some running node knows."""
        some = next(id for id, node in self.nodes.items() if node.process is not None)
        found = self.metadata(some, topic).topics[0]
        return {each.partition_index: each.leader_id for each in found.partitions}

    def controller(self) -> int:
        """Who leads the metadata quorum, as some running node knows."""
        wanted = DescribeQuorumRequest.TopicData
        request = DescribeQuorumRequest(
            topics=[
                wanted(topic_name="__cluster_metadata", partitions=[wanted.PartitionData(partition_index=0)])
            ]
        )
        with Connection(self._some().port) as line:
            answer = line.ask(request, DescribeQuorumResponse, 0)
        return answer.topics[0].partitions[0].leader_id if answer.topics else -1

    def _some(self) -> Server:
        return next(node for node in self.nodes.values() if node.process is not None)

    def wait_in_sync(self, topic: str, count: int, seconds_max: float = 60) -> None:
        """Wait until each partition has so many replicas in sync."""
        some = next(id for id, node in self.nodes.items() if node.process is not None)

        def are_in_sync() -> bool:
            found = self.metadata(some, topic).topics[0]
            return bool(found.partitions) and all(len(each.isr_nodes) >= count for each in found.partitions)

        eventually(are_in_sync, seconds_max=seconds_max)


@contextmanager
def running(
    directory: Path, settings: Mapping[str, str] | None = None, *, count: int = 3, product: str = "ottla"
) -> Iterator[Cluster]:
    """A cluster that is stopped in the end, whatever happens."""
    cluster = Cluster(directory, settings, count=count, product=product)
    try:
        cluster.start()
        yield cluster
    finally:
        for node in cluster.nodes.values():
            node.kill()
