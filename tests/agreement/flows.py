"""What is known of what flows between operators, and where the order of records is promised.

An operator with state takes records from queues: partitions of topics, and partitions of operators before it. Within a
micro-batch it goes by timestamps between queues, where each counts as late as the latest before it in its queue. The
reference takes one record all its way before the next. So both take the same order

    where all comes by one queue, whatever the times are; or
    where all inputs come in the order of time, and no two records of different queues have one time; or
    where each input is a whole topic of one partition, of which nothing was filtered out: then each record counts.

Anything else is documented as differing (docs/guide/streams-and-kafka-streams.md: stream time; several inputs of one
operator; records of equal timestamps), and is not generated.
"""

from dataclasses import dataclass, replace

Queue = tuple[str, str, int]


@dataclass(frozen=True)
class Flow:
    """What flows out of an operator, and what it is called in the program."""

    name: str
    is_table: bool
    key: str
    value: str
    roots: frozenset[str]  # the topics that it comes of
    queues: frozenset[
        Queue
    ]  # ("topic", name, partition) or ("operator", name, 0 if of its partition alone, else 1)
    is_ordered: bool  # by time
    is_tied: bool = False  # whether two records of one operator may have one time
    is_spread: bool = False  # whether such records may be in several operator partitions
    is_whole: bool = False  # whether all records of its topic are in it
    has_moved: bool = False  # whether it came to an operator with state under another key
    moves: bool = False  # whether its key was changed since the last operator with state
    windowed: str = ""  # the kind of window, of a key with one
    nulls: frozenset[str] = frozenset("kv")

    def count(self, partitions: int) -> int:
        """From how many queues the records of one operator partition may come."""
        return sum(partitions if kind == "operator" and part else 1 for kind, _, part in self.queues)

    def moved(self) -> "Flow":
        """The same under other keys."""
        queues = frozenset(
            (kind, name, 1 if kind == "operator" else part) for kind, name, part in self.queues
        )
        return replace(self, queues=queues, moves=True)


def may_meet(flows: list[Flow], partitions: int) -> bool:
    """Whether an operator that reads them takes the same order everywhere."""
    counts = [each.count(partitions) for each in flows]
    if sum(counts) == 1:
        return True
    if len(flows) > 1 and len(frozenset().union(*(each.roots for each in flows))) < sum(
        len(each.roots) for each in flows
    ):
        return False
    if partitions == 1 and all(
        each.is_whole and count == 1 for each, count in zip(flows, counts, strict=True)
    ):
        return True
    return all(
        each.is_ordered and not (each.is_spread and count > 1)
        for each, count in zip(flows, counts, strict=True)
    )


def out_of(
    name: str,
    flows: list[Flow],
    partitions: int,
    *,
    key: str,
    value: str,
    is_table: bool,
    is_ordered: bool = True,
    multiplies: bool = False,
    windowed: str = "",
) -> Flow:
    """What flows out of an operator with state."""
    is_tied = multiplies or len(flows) > 1 or any(each.is_tied for each in flows)
    return Flow(
        name=name,
        is_table=is_table,
        key=key,
        value=value,
        roots=frozenset().union(*(each.roots for each in flows)),
        queues=frozenset({("operator", name, 0)}),
        is_ordered=is_ordered and all(each.is_ordered for each in flows),
        is_tied=is_tied,
        is_spread=is_tied and partitions > 1,
        has_moved=any(each.has_moved or each.moves for each in flows),
        windowed=windowed,
    )
