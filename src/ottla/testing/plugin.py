"""What pytest finds when Ottla is installed: a broker for the whole run.

`ottla_broker` is started when the first test asks for it. Whoever needs another, with settings of its own or to be
killed, uses `ottla.testing.Broker`.
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.testing.broker import Broker


@pytest.fixture(scope="session")
def ottla_broker() -> "Iterator[Broker]":
    """A running broker; `ottla_broker.bootstrap` is its address."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker
