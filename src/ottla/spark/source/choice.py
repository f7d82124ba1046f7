"""Which partitions are to be read: all of some topics, all of those whose names match, or some one by one.

A pattern is searched for in a topic's name, as Spark does it, and need not match the whole of it; topics that brokers
keep for themselves are passed over.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from ottla.client.record import TopicPartition
from ottla.spark.source.refusal import OptionError


@dataclass(frozen=True, slots=True)
class Subscribed:
    """All partitions of these topics."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """All partitions of the topics with this in their names."""

    pattern: str

    def match(self, topic: str) -> bool:
        """Whether a topic is among them."""
        return re.search(self.pattern, topic) is not None


@dataclass(frozen=True, slots=True)
class Assigned:
    """These partitions."""

    partitions: tuple[TopicPartition, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """Their topics."""
        return tuple(dict.fromkeys(each.topic for each in self.partitions))


Choice: TypeAlias = Subscribed | Matching | Assigned

_EXAMPLE = '{"orders": [0, 1], "clicks": [0]}'


def subscribed(text: str) -> Subscribed:
    """Read the option `subscribe`: names with commas between them."""
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise OptionError(
            f"option subscribe names no topic: {text!r}", hint="name one, or several with commas"
        )
    return Subscribed(topics)


def matching(text: str) -> Matching:
    """Read the option `subscribePattern`: a regular expression."""
    if not text.strip():
        raise OptionError("option subscribePattern is empty", hint="give a pattern such as orders-.*")
    try:
        re.compile(text.strip())
    except re.error as error:
        raise OptionError(
            f"option subscribePattern is no regular expression: {text!r}: {error}",
            hint="give a pattern such as orders-.*, and a backslash before letters that stand for themselves",
        ) from None
    return Matching(text.strip())


def assigned(text: str) -> Assigned:
    """Read the option `assign`: JSON that maps topics to lists of partitions."""
    try:
        given: Any = json.loads(text)
        partitions = [TopicPartition(topic, number) for topic, numbers in given.items() for number in numbers]
    except (ValueError, AttributeError, TypeError):
        partitions = []
    if not partitions or any(type(each.partition) is not int or each.partition < 0 for each in partitions):
        raise OptionError(f"option assign names no partitions: {text!r}", hint=f"write it as {_EXAMPLE}")
    return Assigned(tuple(dict.fromkeys(partitions)))
