"""Which topics classic consumers read, as far as the coordinator can tell from what they tell each other."""

from collections.abc import Iterable

from ottla.wire.errors import ProtocolError
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER = "consumer"


def topics_of(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics that are subscribed to; None when a subscription makes no sense.

    Each is read as version 0, whatever it says it is: all versions begin with it, so later ones need no new reader.
    """
    decode = ConsumerProtocolSubscription.decoder(0)
    found: set[str] = set()
    try:
        for data in subscriptions:
            if len(data) < 2:
                return None
            subscription, _ = decode(data, 2, len(data))
            found.update(subscription.topics)
    except ProtocolError:
        return None
    return frozenset(found)
