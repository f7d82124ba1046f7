"""What is answered, read from the shape that responses have: a struct with an error code stands for an error."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ottla.client.errors import ClientError, Refused, refused
from ottla.client.record import TopicPartition

V = TypeVar("V")


def failure(answer: Any, about: str) -> Refused | None:
    """Return the error that a struct stands for, if it stands for one."""
    code = getattr(answer, "error_code", 0)
    return refused(code, getattr(answer, "error_message", None), about=about) if code else None


def by_partition(
    topics: Iterable[Any], read: Callable[[Any], V], *, of: str = ""
) -> dict[TopicPartition, V | ClientError]:
    """Return what is said of each partition, as `read` reads it, or the error; `of` says whose partition it is."""
    outcomes: dict[TopicPartition, V | ClientError] = {}
    for topic in topics:
        name = getattr(topic, "name", None) or topic.topic_name
        for each in topic.partitions:
            key = TopicPartition(name, each.partition_index)
            outcomes[key] = failure(each, f"{key}{of}") or read(each)
    return outcomes


def nothing(each: Any) -> None:
    """Read nothing: that there was no error is all there is to say."""


def present(
    outcomes: Mapping[TopicPartition, V | ClientError | None],
) -> dict[TopicPartition, V] | ClientError:
    """Return what there is, without those that have nothing; or the first error, when there is one."""
    there: dict[TopicPartition, V] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, ClientError):
            return outcome
        if outcome is not None:
            there[key] = outcome
    return there
