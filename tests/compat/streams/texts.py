"""Functions of texts that topologies are made of, the same as in java/Texts.java."""

LENGTH_MAX = 24


def chain(so_far: str, value: str) -> str:
    """What there is so far, and one thing more behind it; of it the end."""
    return f"{so_far},{value}"[-LENGTH_MAX:]


def merge(one: str, other: str) -> str:
    """The aggregates of two sessions, one behind the other."""
    return f"{one}|{other}"[-LENGTH_MAX:]


def pair(left: object, right: object) -> str:
    """A pair of which either may be missing."""
    return f"{'-' if left is None else left}+{'-' if right is None else right}"


def number(value: str | None) -> int:
    """The number that a value is; 1 for none."""
    return 1 if value is None else int(value)


def group(value: str) -> str:
    """One of three keys, chosen by the value."""
    return f"g{int(value) % 3}"


def reference(value: str | None) -> str | None:
    """The key of another table that a value refers to, or None for none."""
    if value is None or int(value) % 8 == 7:
        return None
    return chr(ord("a") + int(value) % 8)


def digits(value: str | None) -> list[str]:
    """The digits of a number, each by itself."""
    return ["none"] if value is None else list(value)
