"""The rules, one a file. Each takes the book and yields what breaks it."""

from collections.abc import Callable, Iterator

from ottla.sim.history.anomalies.aborted_read import aborted_read
from ottla.sim.history.anomalies.circular_flow import circular_flow
from ottla.sim.history.anomalies.duplicate import duplicate
from ottla.sim.history.anomalies.inconsistent_offsets import inconsistent_offsets
from ottla.sim.history.anomalies.lost_write import lost_write
from ottla.sim.history.anomalies.phantom import phantom
from ottla.sim.history.anomalies.poll_order import poll_order
from ottla.sim.history.anomalies.precommitted_read import precommitted_read
from ottla.sim.history.anomalies.send_order import send_order
from ottla.sim.history.anomalies.unseen import unseen
from ottla.sim.history.anomaly import Anomaly
from ottla.sim.history.book import Book

Rule = Callable[[Book], Iterator[Anomaly]]

RULES: tuple[Rule, ...] = (
    phantom,
    inconsistent_offsets,
    duplicate,
    lost_write,
    unseen,
    aborted_read,
    precommitted_read,
    poll_order,
    send_order,
    circular_flow,
)
