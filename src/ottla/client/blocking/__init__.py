"""The clients without asyncio: the same names, and every call waits for its result."""

from ottla.client.blocking.admin import Admin
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.delivery import Delivery
from ottla.client.blocking.producer import Producer
from ottla.client.blocking.share_consumer import ShareConsumer

__all__ = ["Admin", "Consumer", "Delivery", "Producer", "ShareConsumer"]
