"""Connections, and how much of its time the loop has left."""

from collections.abc import Iterable, Iterator
from itertools import chain

from ottla.channel.connections import Connections
from ottla.http.metrics.text import Family, counter, gauge

_SOCKETS = "kafka_server_socket_server_metrics_"


def network(connections: Connections, listeners: Iterable[str], *others: Connections) -> Iterator[Family]:
    """Connections by listener; one loop serves them all, so there is one network processor."""
    counts = dict.fromkeys(listeners, 0)
    every = (connections, *others)
    for connection in chain.from_iterable(each.open for each in every):
        counts[connection.listener] = counts.get(connection.listener, 0) + 1
    family = gauge(_SOCKETS + "connection_count", "Open connections.")
    for listener, count in counts.items():
        family.add(count, listener=listener, networkProcessor=0)
    yield family
    yield counter(_SOCKETS + "connection_creation_total", "Connections accepted.").add(
        sum(each.accepted for each in every)
    )
    yield counter("ottla_connections_refused_total", "Connections closed at once because of a limit.").add(
        sum(each.refused for each in every)
    )
    answers, requests = connections.answers, connections.requests
    yield gauge("ottla_answer_bytes", "Bytes of answers that clients have not taken.").add(answers.total)
    yield gauge("ottla_answer_bytes_max", "The limit of those bytes: ottla.answer.bytes.max.").add(
        answers.bytes_max
    )
    yield gauge("ottla_request_bytes", "Bytes of requests that arrived in part.").add(requests.total)
    waiting = gauge("ottla_connections_waiting", "Connections that wait for room.")
    yield waiting.add(answers.waiting, of="answers").add(requests.waiting, of="requests")
    closed = counter(
        "ottla_connections_still_total", "Connections closed that stood still while others waited."
    )
    yield closed.add(answers.aborted, of="answers").add(requests.aborted, of="requests")


class Idleness:
    """The share of time that the loop did nothing, between one page and the next."""

    def __init__(self, cpu_seconds: float, now: float) -> None:
        self._cpu_seconds = cpu_seconds
        self._at = now
        self._idle = 1.0

    def families(self, cpu_seconds: float, now: float) -> Iterator[Family]:
        """Idleness under the names of the two thread pools whose work one loop does here."""
        passed = now - self._at
        if passed > 0:
            self._idle = min(1.0, max(0.0, 1 - (cpu_seconds - self._cpu_seconds) / passed))
            self._cpu_seconds, self._at = cpu_seconds, now
        help = "Share of time that the loop was idle."
        yield gauge("kafka_network_socketserver_networkprocessoravgidle_percent", help).add(self._idle)
        yield gauge("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", help).add(
            self._idle
        )
