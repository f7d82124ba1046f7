"""A real broker for one's own tests: `with Broker() as broker:`, or the pytest fixture `ottla_broker`."""

from ottla.testing.broker import Broker, BrokerFailed

__all__ = ["Broker", "BrokerFailed"]
