"""Who hears of every committed image.

A listener that breaks is reported, and keeps neither the others nor the replies behind the image from their turn. Until
the quorum has started its error is raised: nobody is served by a node that does not know its own partitions.
"""

import traceback
from collections.abc import Callable

from ottla.metadata.delta import Delta
from ottla.metadata.fold import Change
from ottla.metadata.image import Image

Listener = Callable[[Delta, Image], None]


class Listeners:
    """The listeners of one quorum. `report` tells an operator."""

    __slots__ = ("_all", "_report", "is_started")

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._all: list[Listener] = []
        self.is_started = False

    def add(self, listener: Listener) -> None:
        """Call a listener from now on."""
        self._all.append(listener)

    def tell(self, change: Change) -> None:
        """Call every listener with a change."""
        for listener in self._all:
            try:
                listener(change.delta, change.image)
            except Exception as error:
                if not self.is_started:
                    raise
                way = "".join(traceback.format_exception(error)).rstrip()
                self._report(f"a bug of Ottla, please report it: the metadata was not taken in whole: {way}")
