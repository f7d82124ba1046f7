"""Topics that are read side by side, and so must have equally many partitions.

The topics between subtopologies follow those from outside; among themselves they follow those that say how many
partitions they have, or else the widest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ottla.groups.streams.flaw import Flaw
from ottla.groups.streams.statuses import StatusCode
from ottla.groups.streams.topology import Subtopology
from ottla.wire.errors import BrokerError, ErrorCode


def level(
    subtopologies: Sequence[Subtopology], decided: dict[str, int], count_of: Callable[[str], int]
) -> None:
    """Decide on the partitions of the topics between subtopologies that are read beside others."""
    between = [topic for each in subtopologies for topic in each.repartition_source_topics]
    known = {topic.name for topic in between}
    fixed = {topic.name for topic in between if topic.partitions != 0}
    for names in [sorted(each) for subtopology in subtopologies for each in _groups(subtopology)]:
        inner = {name: count_of(name) for name in names if name in known}
        outer = {name: count_of(name) for name in names if name not in known}
        if not names:
            continue
        if outer:
            count = _same(outer, outer)
        elif fixed:
            # Whichever subtopology they are of: all that say how many partitions they have must agree.
            count = _same({name: count_of(name) for name in fixed}, inner)
        else:
            count = max(inner.values())
        for name, found in inner.items():
            if name in fixed and found != count:
                message = (
                    f"Number of partitions [{found}] of repartition topic [{name}] doesn't match number of "
                    f"partitions [{count}] of the source topic."
                )
                raise Flaw(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, message)
            decided[name] = count


def _same(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        message = f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        raise Flaw(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, message)
    return next(iter(counts.values()))


def _groups(subtopology: Subtopology) -> Iterable[set[str]]:
    repartition = [topic.name for topic in subtopology.repartition_source_topics]
    for group in subtopology.copartition_groups:
        yield {
            *_picked(subtopology.source_topics, group.source_topics),
            *_picked(repartition, group.repartition_source_topics),
        }


def _picked(names: Sequence[str], places: Sequence[int]) -> list[str]:
    if any(not 0 <= place < len(names) for place in places):
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return [names[place] for place in places]
