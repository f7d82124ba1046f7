"""A scenario as data: kinds of perils with their weights, how long they last, and the work that goes on meanwhile."""

from dataclasses import dataclass, field

from ottla.sim.cluster.fleet import NODES
from ottla.sim.cluster.perils import CONTROLLER, LEADER


@dataclass(frozen=True, slots=True)
class Scenario:
    """What may happen in a run. `perils` maps kinds to weights; `lasts_s` says how short and how long each may be."""

    name: str
    perils: dict[str, int]
    count: tuple[int, int] = (3, 7)
    lasts_s: tuple[float, float] = (0.2, 6.0)
    span_s: float = 14.0  # in which they strike
    victims: tuple[int, ...] = (*NODES, CONTROLLER, LEADER, LEADER)
    work: dict[str, int] = field(
        default_factory=lambda: {"produce": 100, "consume": 60, "copy": 60, "topics": 30}
    )  # how often, in a hundred runs
    properties: dict[str, str] = field(default_factory=dict)  # of the nodes, beside what all runs have
    replicas: int = 3  # of the topics that are worked on
    topic: dict[str, str] = field(default_factory=dict)  # their settings
