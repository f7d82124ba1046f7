"""What every group is, whatever its protocol."""

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

from ottla.replicated.keyed import KeyedRecord


class Kind(Enum):
    """The protocols."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Group(Protocol):
    """One group, as the parts that serve all kinds see it."""

    id: str

    @property
    def members(self) -> Mapping[str, object]:
        """Who is in it, by member id."""
        ...

    @property
    def kind(self) -> Kind:
        """Which protocol its members speak."""
        ...

    @property
    def protocol_type(self) -> str:
        """What ListGroups and DescribeGroups show: `consumer`, `share`, `streams`, or what a classic group chose."""
        ...

    @property
    def state(self) -> str:
        """The state as Kafka names it, such as Empty, Stable, Reconciling or PreparingRebalance."""
        ...

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member reads the topic, so that its offsets are neither deleted nor expired."""
        ...

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
    ) -> None:
        """Raise BrokerError unless this member may commit offsets under this generation or member epoch."""
        ...

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise BrokerError unless this member may read offsets; no member and epoch -1 may always."""
        ...

    def check_delete(self) -> None:
        """Raise BrokerError unless the group may be deleted, which takes that nobody is in it."""
        ...

    def expires_at(self, now: int, commit_timestamp: int, retention_ms: int) -> int | None:
        """Return when an offset committed at `commit_timestamp` expires, or None while the group is in use."""
        ...

    def tombstones(self) -> list[KeyedRecord]:
        """Return the records that remove the group, its offsets aside."""
        ...
