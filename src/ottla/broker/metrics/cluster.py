"""The cluster as its active controller sees it; the other nodes say nothing of it, so that sums are right."""

from collections.abc import Iterator

from ottla.broker.broker import Broker
from ottla.http.metrics.text import Family, counter, gauge

_PREFIX = "kafka_controller_kafkacontroller_"


def cluster(broker: Broker, *, active: bool, listener: str | None) -> Iterator[Family]:
    """Brokers, topics and partitions of the whole cluster. Addresses are those of a listener, or of each broker's
    first where that is None, as on a node that is no broker.
    """
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
    unclean = counter(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Elections of a replica that was not in sync, since this node began to follow the metadata.",
    )
    yield unclean.add(broker.unclean_elections)
    yield gauge("kafka_brokers", "Brokers that serve.").add(len(broker.alive))
    info = gauge("kafka_broker_info", "Where a broker is reached.")
    for node_id, host, port in _places(broker, listener):
        info.add(1, id=node_id, address=f"{host}:{port}")
    yield info


def _places(broker: Broker, listener: str | None) -> Iterator[tuple[int, str, int]]:
    if listener is not None:
        yield from ((node_id, host, port) for node_id, host, port, _ in broker.endpoints(listener))
        return
    for node_id in sorted(broker.alive):
        endpoint = next(iter(broker.image.brokers[node_id].listeners.values()), None)
        if endpoint is not None:
            yield node_id, endpoint.host, endpoint.port
