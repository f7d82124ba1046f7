"""Every setting of Kafka's clients as data, and `resolve`, which makes typed values of what a program gives."""

from ottla.client.settings.resolve import Settings, resolve

__all__ = ["Settings", "resolve"]
