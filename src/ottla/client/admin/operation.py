"""Operations on resources, as in ACLs and descriptions."""

import enum


class Operation(enum.IntEnum):
    """An operation on a resource. The values are those of Kafka's protocol."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    @classmethod
    def _missing_(cls, value: object) -> "Operation":
        return cls.UNKNOWN


_UNASKED = -(1 << 31)


def operations(bits: int) -> frozenset[Operation] | None:
    """Return the operations of a bit field; None where a broker was not asked for them."""
    if bits == _UNASKED:
        return None
    return frozenset(
        each for each in Operation if each > Operation.ALL and (bits & 0xFFFFFFFF) >> each.value & 1
    )
