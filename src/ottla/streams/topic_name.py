"""Names of topics, checked when they are said and not when a broker refuses them."""

from ottla.controller.names import invalid_name
from ottla.streams.errors import TopologyError


def check_topic(name: str, what: str) -> None:
    """Refuse what can be no name of a topic."""
    reason = invalid_name(name)
    if reason is not None:
        raise TopologyError(
            f"{what}: {reason}", hint="letters, digits, dots, dashes and underscores make a name"
        )
