"""Where replicas should be: a pure function of where they are.

P1  A replica that may stay stays.
P2  What is missing goes to racks that have no replica of the partition yet, and there to the broker that carries least.
P3  Brokers end up with as many replicas as each other, give or take one, as far as moving only what P1 allows gets.
P4  Preferred leaders are spread the same way: the order of a partition's replicas costs no move.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

K = TypeVar("K")


def place(
    current: Mapping[K, Sequence[int]],
    brokers: Mapping[int, str | None],
    replicas: int | None = None,
) -> dict[K, list[int]]:
    """Return the replicas of each partition, on these brokers (with their racks), so many of each if that is given."""
    load: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    planned: dict[K, list[int]] = {}
    for key, before in current.items():
        kept = [id for id in before if id in brokers][: replicas or len(before)]
        planned[key] = kept
        load.update(kept)
    for key, before in current.items():
        chosen = planned[key]
        while len(chosen) < min(replicas or len(before), len(brokers)):
            chosen.append(_lightest(chosen, brokers, load))
            load[chosen[-1]] += 1
    _level(planned, brokers, load)
    _lead(planned, brokers)
    return planned


def _lightest(chosen: list[int], brokers: Mapping[int, str | None], load: Counter[int]) -> int:
    racks = {brokers[id] for id in chosen} - {None}
    return min(
        (id for id in brokers if id not in chosen),
        key=lambda node: (brokers[node] in racks, load[node], node),
    )


def _level(planned: dict[K, list[int]], brokers: Mapping[int, str | None], load: Counter[int]) -> None:
    """Move replicas from those who carry two more than others to those, where the racks stay as spread (P3)."""
    for chosen in planned.values():
        for place, heavy in enumerate(chosen):
            others = {brokers[id] for id in chosen if id != heavy} - {None}
            better = [
                id
                for id in brokers
                if id not in chosen
                and load[id] + 1 < load[heavy]
                and (brokers[id] not in others or brokers[heavy] in others)
            ]
            if better:
                light = min(better, key=lambda node: (load[node], node))
                chosen[place] = light
                load[heavy] -= 1
                load[light] += 1


def _lead(planned: dict[K, list[int]], brokers: Mapping[int, str | None]) -> None:
    leads: Counter[int] = Counter(dict.fromkeys(brokers, 0))
    for chosen in planned.values():
        if chosen:
            # Whoever leads already goes on unless another leads less.
            first = min(chosen, key=lambda node: (leads[node], chosen.index(node)))
            chosen.remove(first)
            chosen.insert(0, first)
            leads[first] += 1
