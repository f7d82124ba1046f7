"""The assignors by the name under which members ask for them, and `group.consumer.assignors` lists them."""

from collections.abc import Iterable, Mapping

from ottla.groups.assignors.range import assign_ranges
from ottla.groups.assignors.spec import Assignor
from ottla.groups.assignors.uniform import assign_uniformly

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}

_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def offered(listed: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the assignors that a setting lists, by name or by Kafka's class; the first is the default."""
    names = (_CLASSES.get(each, each) for each in listed)
    return tuple(name for name in names if name in ASSIGNORS) or tuple(ASSIGNORS)
