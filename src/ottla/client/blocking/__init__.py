"""The clients without asyncio: the same code behind calls that wait."""

from ottla.client.blocking.admin import Admin
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Delivery, Producer

__all__ = ["Admin", "Consumer", "Delivery", "Producer"]
