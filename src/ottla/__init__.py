"""Ottla: an event streaming platform that speaks Kafka."""

__version__ = "0.1.0"
