"""The page with metrics: the names that dashboards ask for, and numbers that are true."""

import re

import pytest

from ottla.broker.apis.create_topics import API as CREATE_TOPICS
from ottla.broker.dispatch import Dispatcher
from ottla.broker.metrics.network import Idleness
from ottla.broker.metrics.page import Page
from ottla.broker.metrics.requests import quantile_ms
from ottla.broker.metrics.topics import TopicTraffic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from tests.peers.jars import CHECKOUT

# What Strimzi's Kafka, KRaft and exporter dashboards query of a broker, the JVM's own names and groups aside, and
# Grafana's dashboard 7589 for kafka_exporter.
ASKED_FOR = [
    "kafka_brokers",
    "kafka_broker_info",
    "kafka_cluster_partition_atminisr",
    "kafka_cluster_partition_replicascount",
    "kafka_cluster_partition_underminisr",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_log_log_size",
    "kafka_network_requestmetrics_totaltimems",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_state",
    "kafka_server_raftmetrics_current_vote",
    "kafka_server_raftmetrics_high_watermark",
    "kafka_server_raftmetrics_log_end_offset",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_leader",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_under_replicated_partition",
    "kafka_topic_partitions",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_resident_memory_bytes",
]

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)')


@pytest.fixture
def page(station):
    dispatcher = Dispatcher((CREATE_TOPICS,), station.broker, station.reports.append)
    dispatcher._route(19, 7).took(0.003)
    return Page(station.broker, dispatcher, station.disk, ["PLAINTEXT"], "1.2.3")


def read(page):
    """The samples by name and labels; every line must be one."""
    samples = {}
    for line in b"".join(page()).decode().splitlines():
        if not line.startswith("#"):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert (name, labels) not in samples
            samples[name + (labels or "")] = float(value)
    return samples


def test_dashboards_find_the_names_they_ask_for(station, page):
    station.create("t")
    station.produce("t")
    names = {key.partition("{")[0] for key in read(page)}
    assert [name for name in ASKED_FOR if name not in names] == []


def test_a_family_stands_in_one_place_with_its_type(station, page):
    station.create("t", 2)
    station.produce("t", 1)
    types = [line.split()[2] for line in b"".join(page()).decode().splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))


def test_numbers_of_a_partition(station, page):
    station.create("t", 2)
    partition = station.produce("t", 1, count=5)
    station.table.by_name("t", 0)
    partition.log.raise_start_offset(2)
    samples = read(page)
    at = '{topic="t",partition="1"}'
    assert samples[f"kafka_topic_partition_current_offset{at}"] == 5
    assert samples[f"kafka_topic_partition_oldest_offset{at}"] == 2
    assert samples[f"kafka_log_log_size{at}"] == partition.log.size_bytes
    assert samples[f"kafka_cluster_partition_atminisr{at}"] == 1
    assert samples[f"kafka_cluster_partition_underminisr{at}"] == 0
    assert samples[f"kafka_topic_partition_leader{at}"] == 1
    assert samples['kafka_topic_partitions{topic="t"}'] == 2
    assert samples["kafka_server_replicamanager_leadercount"] == 2
    assert samples["kafka_controller_kafkacontroller_globalpartitioncount"] == 2
    assert samples["kafka_server_replicamanager_offlinereplicacount"] == 0


def test_numbers_of_the_cluster(station, page):
    samples = read(page)
    assert samples["kafka_brokers"] == 1
    assert samples['kafka_broker_info{id="1",address="localhost:9092"}'] == 1
    assert samples["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert samples["kafka_server_raftmetrics_log_end_offset"] == station.quorum.end_offset
    assert samples['kafka_server_raftmetrics_current_state{current_state="leader"}'] == 1
    assert samples["kafka_server_raftmetrics_current_vote"] == station.broker.node_id
    assert samples["kafka_server_raftmetrics_current_leader"] == station.broker.node_id
    assert (
        samples[
            'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT",networkProcessor="0"}'
        ]
        == 0
    )


def test_times_of_requests(page):
    samples = read(page)
    assert samples['kafka_network_requestmetrics_requests_total{request="CreateTopics",version="7"}'] == 1
    assert (
        2
        <= samples['kafka_network_requestmetrics_totaltimems{request="CreateTopics",quantile="0.99"}']
        <= 4.1
    )
    assert samples['ottla_request_duration_seconds_count{request="CreateTopics"}'] == 1
    assert samples['ottla_request_duration_seconds_sum{request="CreateTopics"}'] == 0.003
    below = samples['ottla_request_duration_seconds_bucket{request="CreateTopics",le="0.001024"}']
    above = samples['ottla_request_duration_seconds_bucket{request="CreateTopics",le="0.004096"}']
    assert (below, above) == (0, 1)


def test_quantiles_are_those_since_the_page_before(page):
    key = 'kafka_network_requestmetrics_totaltimems{request="CreateTopics",quantile="0.50"}'
    route = page._dispatcher.routes[19 << 16 | 7]
    for _ in range(100):
        route.took(0.003)
    first = read(page)[key]
    assert 2 <= first <= 4.1
    assert read(page)[key] == first  # nothing new
    for _ in range(10):
        route.took(1.0)
    assert read(page)[key] > 500


def test_quantiles_of_nothing():
    assert quantile_ms([0] * 28, 0.99) == 0
    assert quantile_ms([1] + [0] * 27, 0.5) < 0.001


def test_traffic_by_topic_and_over_all(station):
    station.create("t", 2)
    station.create("u")
    station.produce("t", 0, count=2)
    station.produce("t", 1, count=3)
    station.produce("u", count=4)
    traffic = TopicTraffic()
    samples = {
        family.name: dict(family.samples) for family in traffic.families(station.table.partitions.values())
    }
    messages = samples["kafka_server_brokertopicmetrics_messagesin_total"]
    assert messages == {"": 9, '{topic="t"}': 5, '{topic="u"}': 4}


def test_the_sum_over_all_topics_never_falls(station):
    topic = station.create("t")
    station.produce("t", count=5)
    traffic = TopicTraffic()
    list(traffic.families(station.table.partitions.values()))
    station.produce("t", count=2)
    answers = []
    request = DeleteTopicsRequest(topic_names=[topic.name])
    station.quorum.submit(lambda controller, now: controller.delete_topics(request, 5, now), answers.append)
    station.settle()
    family = next(iter(traffic.families(station.table.partitions.values())))
    assert family.samples == [("", 7)]


def test_the_loop_is_idle_in_the_time_it_does_not_use():
    idleness = Idleness(cpu_seconds=1.0, now=10.0)
    families = list(idleness.families(cpu_seconds=3.5, now=20.0))
    assert [family.samples for family in families] == [[("", 0.75)]] * 2
    assert next(idleness.families(cpu_seconds=30.0, now=21.0)).samples == [("", 0.0)]
    assert next(idleness.families(cpu_seconds=30.0, now=21.0)).samples == [("", 0.0)]


def test_strange_names_do_not_break_the_page(station, page):
    station.connections.open[type("Open", (), {"listener": 'A"B\n'})()] = None
    assert any('listener="A\\"B\\n"' in key for key in read(page))


def test_every_family_is_documented(page):
    text = (CHECKOUT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \| (\w+) \| [^|]* \| ([^|]+) \|$", text, re.MULTILINE))
    families = {(each.name, each.kind, each.help) for each in page.families() if each is not None}
    assert families == documented, "run: make docs"


def test_a_node_that_is_no_broker_has_a_page(station):
    page = Page(station.broker, Dispatcher((), station.broker, print), station.disk, [], "1.2.3")
    samples = read(page)
    assert samples['kafka_broker_info{id="1",address="localhost:9092"}'] == 1


def test_unclean_elections_are_counted(station, page):
    station.broker.unclean_elections = 3
    assert read(page)["kafka_controller_controllerstats_uncleanleaderelections_total"] == 3
