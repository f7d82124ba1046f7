"""Settings that topics inherit from their broker: when one has changed, all topics follow.

I1  Topics follow some a turn of the loop, and each once, however often the settings change meanwhile.
I2  A change of a broker's settings that no topic inherits costs one look.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.metadata.image import Image
from ottla.metadata.topics import Topic

# Topics in a turn of the loop; as many partitions count as one more of them.
_TOPICS_A_TURN = 200
_PARTITIONS_A_TOPIC = 20


class InheritedSettings:
    """`effective` tells what a topic has that sets nothing; `configure` works a topic's settings out again."""

    __slots__ = ("_configure", "_effective", "_image", "_known", "_waiting", "call_soon")

    def __init__(
        self,
        effective: Callable[[], Mapping[str, Any]],
        image: Callable[[], Image | None],
        configure: Callable[[Topic, Image], None],
    ) -> None:
        self._effective = effective
        self._image = image
        self._configure = configure
        self._known = effective()
        self._waiting: dict[bytes, None] = {}  # topics that have not followed yet
        # What goes on in the next turn of the loop; None for tools without one.
        self.call_soon: Callable[[Callable[[], None]], object] | None = None

    def may_have_changed(self) -> None:
        """Look what topics inherit by now, and have them follow if it is something else."""
        image, inherited = self._image(), self._effective()
        if inherited == self._known or image is None:
            return
        self._known = inherited
        is_under_way = bool(self._waiting)
        self._waiting = dict.fromkeys(image.topics.by_id)
        if not is_under_way:
            self._go_on()

    def _go_on(self) -> None:
        image, left = self._image(), _TOPICS_A_TURN
        while self._waiting and image is not None and (left > 0 or self.call_soon is None):
            topic_id = next(iter(self._waiting))
            del self._waiting[topic_id]
            topic = image.topics.by_id.get(topic_id)
            if topic is not None:  # it was not deleted meanwhile
                self._configure(topic, image)
                left -= 1 + len(topic.partitions) // _PARTITIONS_A_TOPIC
        if self._waiting and self.call_soon is not None:
            self.call_soon(self._go_on)
