"""The producer and what goes with it."""

from ottla.client.producer.delivery import Delivery
from ottla.client.producer.interceptor import Outgoing, ProducerInterceptor
from ottla.client.producer.partitioner import Partitioner
from ottla.client.producer.producer import Producer
from ottla.client.producer.statistics import Statistics

__all__ = ["Producer", "Delivery", "Statistics", "Outgoing", "ProducerInterceptor", "Partitioner"]
