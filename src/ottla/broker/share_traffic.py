"""What share consumers ask for, by topic, and what they say of records, by kind."""

from collections.abc import Iterable
from enum import IntEnum

from ottla.share.acknowledgement import AcknowledgementBatch, Verdict


class Asked(IntEnum):
    """What is counted of a topic."""

    FETCHES = 0
    FETCH_FAILURES = 1
    ACKNOWLEDGEMENTS = 2
    ACKNOWLEDGEMENT_FAILURES = 3


class ShareTraffic:
    """Counters. `gone` holds what topics that are no more had come to, so that sums never fall."""

    __slots__ = ("by_topic", "gone", "verdicts")

    def __init__(self) -> None:
        self.by_topic: dict[bytes, list[int]] = {}
        self.gone = [0] * len(Asked)
        self.verdicts = dict.fromkeys(Verdict, 0)

    def count(self, what: Asked, topic_ids: Iterable[bytes]) -> None:
        """Count a request for each of its topics."""
        for topic_id in topic_ids:
            self.by_topic.setdefault(topic_id, [0] * len(Asked))[what] += 1

    def acknowledged(self, batches: Iterable[AcknowledgementBatch]) -> None:
        """Count what a member said of its records."""
        for batch in batches:
            kinds = batch.acknowledge_types
            if len(kinds) == 1:
                self.verdicts[Verdict(kinds[0])] += batch.last_offset - batch.first_offset + 1
            else:
                for kind in kinds:
                    self.verdicts[Verdict(kind)] += 1

    def forget(self, topic_ids: Iterable[bytes]) -> None:
        """Topics are no more."""
        for topic_id in topic_ids:
            for what, count in enumerate(self.by_topic.pop(topic_id, ())):
                self.gone[what] += count
