"""The cluster as its active controller sees it; the other nodes say nothing of it, so that sums are right."""

from collections.abc import Iterator

from ottla.broker.broker import Broker
from ottla.http.metrics.text import Family, counter, gauge

_PREFIX = "kafka_controller_kafkacontroller_"


def cluster(broker: Broker, *, active: bool, listener: str) -> Iterator[Family]:
    """Brokers, topics and partitions of the whole cluster."""
    yield gauge(_PREFIX + "activecontrollercount", "1 on the node that is the active controller.").add(
        int(active)
    )
    if not active:
        return
    image = broker.image
    fenced = sum(each.fenced for each in image.brokers.values())
    yield gauge(_PREFIX + "activebrokercount", "Brokers that serve.").add(len(image.brokers) - fenced)
    yield gauge(_PREFIX + "fencedbrokercount", "Brokers that are fenced.").add(fenced)
    yield gauge(_PREFIX + "globaltopiccount", "Topics.").add(len(image.topics.by_name))
    states = [state for topic in image.topics.by_name.values() for state in topic.partitions.values()]
    yield gauge(_PREFIX + "globalpartitioncount", "Partitions.").add(len(states))
    offline = sum(state.leader < 0 for state in states)
    yield gauge(_PREFIX + "offlinepartitionscount", "Partitions that nobody leads.").add(offline)
    imbalance = gauge(
        _PREFIX + "preferredreplicaimbalancecount", "Partitions not led by their first replica."
    )
    yield imbalance.add(sum(state.leader != state.replicas[0] for state in states))
    # Nobody counts them yet; dashboards ask for the name.
    unclean = counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Elections of a replica that was not in sync. They are not counted yet, so this is always 0.",
    )
    yield unclean.add(0)
    yield gauge("kafka_brokers", "Brokers that serve.").add(len(broker.alive))
    info = gauge("kafka_broker_info", "Where a broker is reached.")
    for node_id, host, port, _ in broker.endpoints(listener):
        info.add(1, id=node_id, address=f"{host}:{port}")
    yield info
