"""Every setting of Kafka's clients as data, and `resolve`, which makes typed values of what a program gives."""

from ottla.client.settings.resolve import ClientSettings, resolve

__all__ = ["ClientSettings", "resolve"]
