"""What the groups of a broker have done since it started, for those who watch it, and what their members hold."""

from dataclasses import dataclass, field

from ottla.groups.group import Kind
from ottla.groups.member_budget import MemberBudget


@dataclass(slots=True)
class Tally:
    """Offsets committed, deleted and expired, and rebalances by kind of group. One for all partitions of a broker."""

    commits: int = 0
    deletions: int = 0
    expirations: int = 0
    rebalances: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    members: MemberBudget = field(default_factory=MemberBudget)
