"""Answers that are ready: one that waits for its turn, and what is left of one that the kernel took in part."""

from typing import Any

from ottla.channel.send_queue import cut


def behind(parts: list[Any], sent: int) -> list[Any]:
    """What is left of buffers whose first `sent` bytes have gone, without copying any records."""
    for number, part in enumerate(parts):
        if sent < len(part):
            return [*cut(part, sent), *parts[number + 1 :]]
        sent -= len(part)
    return []


class Ready:
    """An answer that is ready but stands behind one that is not."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Any]) -> None:
        self.parts: list[Any] | None = parts
