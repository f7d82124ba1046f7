"""Reads errors from responses: a struct with an error code stands for an error."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ottla.client.errors import ClientError, Refused, refused
from ottla.client.record import TopicPartition

V = TypeVar("V")


def error_of(answer: Any, about: str) -> Refused | None:
    """Return the error of a struct, or None."""
    code = getattr(answer, "error_code", 0)
    return refused(code, getattr(answer, "error_message", None), about=about) if code else None


def by_partition(
    topics: Iterable[Any], read: Callable[[Any], V], *, of: str = ""
) -> dict[TopicPartition, V | ClientError]:
    """Return the result of `read` or the error for each partition. `of` completes the partition in error messages."""
    outcomes: dict[TopicPartition, V | ClientError] = {}
    for topic in topics:
        name = getattr(topic, "name", None) or topic.topic_name
        for each in topic.partitions:
            key = TopicPartition(name, each.partition_index)
            outcomes[key] = error_of(each, f"{key}{of}") or read(each)
    return outcomes


def nothing(each: Any) -> None:
    """Return None, where there is no result besides the absence of an error."""


def without_none(
    outcomes: Mapping[TopicPartition, V | ClientError | None],
) -> dict[TopicPartition, V] | ClientError:
    """Return the outcomes that are not None, or the first error."""
    there: dict[TopicPartition, V] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, ClientError):
            return outcome
        if outcome is not None:
            there[key] = outcome
    return there
