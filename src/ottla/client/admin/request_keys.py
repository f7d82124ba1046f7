"""Brings the keys of calls into the form that requests have."""

from collections.abc import Iterable, Mapping

from ottla.client.record import TopicPartition


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partitions of each topic."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def partitions_by_group(
    given: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
) -> dict[str, tuple[TopicPartition, ...] | None]:
    """Return the partitions asked for of each group, None for all."""
    if isinstance(given, Mapping):
        return {name: None if each is None else tuple(each) for name, each in given.items()}
    return dict.fromkeys(names_of(given))


def names_of(given: str | Iterable[str]) -> list[str]:
    """Return a list of names for one name or several."""
    return [given] if isinstance(given, str) else list(given)
