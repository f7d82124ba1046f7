"""A stage for consumer groups: topics that can change, a machine of classic and consumer groups, and consumers."""

import itertools
import re

from ottla.groups.machine import Groups
from ottla.groups.shelf import Shelf
from ottla.groups.topics import TopicFacts
from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.keyed import Client
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.unit.replicated.journal import Bench

CLIENT = Client("client", "/127.0.0.1")
GROUP = "group"


class Topics:
    """Topics by name, which can be created, grown and deleted."""

    def __init__(self, **counts):
        self.version = 1
        self._facts = {}
        self._made = 0
        for name, count in counts.items():
            self.put(name, count)

    def put(self, name, partitions, racks=()):
        known = self._facts.get(name)
        self._made += known is None
        topic_id = known.id if known else self._made.to_bytes(16, "big")
        self._facts[name] = TopicFacts(name, topic_id, partitions, racks)
        self.version += 1

    def delete(self, name):
        del self._facts[name]
        self.version += 1

    def find(self, name):
        return self._facts.get(name)

    def by_id(self, topic_id):
        return next((facts for facts in self._facts.values() if facts.id == topic_id), None)

    def names(self):
        return list(self._facts)


def match(pattern):
    """Compile a regular expression with Python's own engine."""
    try:
        return re.compile(pattern).fullmatch
    except re.error as error:
        raise ValueError(str(error)) from None


def make_machine(topics, settings):
    """Return the groups of one partition, with numbers for chance."""
    values = BrokerValues({"node.id": "1", **settings})
    chance = itertools.count(1)
    shelf = Shelf(
        topics, values, lambda group, name: values[f"group.{name}"], lambda: next(chance).to_bytes(16, "big")
    )
    return Groups(shelf, match)


def durable(machine):
    """Return what a machine must know again once it has read the log."""
    found = {}
    for group in machine.shelf.groups.values():
        volatile = {"refreshed", "_joining"}
        found[group.id] = {name: getattr(group, name) for name in group.__slots__ if name not in volatile}
    return found


class Stage(Bench):
    """A bench with topics, and words for what tests do most."""

    def __init__(self, settings=None, **topics):
        self.topics = Topics(**(topics or {"foo": 6}))
        self.settings = {"group.consumer.assignment.interval.ms": "0", **(settings or {})}
        super().__init__(make_machine(self.topics, self.settings))

    @property
    def group(self):
        return self.machine.shelf.groups[GROUP]

    def beat(self, version=1, client=CLIENT, group_id=GROUP, **fields):
        """Send a heartbeat as it is."""
        fields.setdefault("member_epoch", 0)
        if fields["member_epoch"] == 0:
            fields.setdefault("rebalance_timeout_ms", 5_000)
            fields.setdefault("topic_partitions", [])
            if "subscribed_topic_regex" not in fields:
                fields.setdefault("subscribed_topic_names", ["foo"])
        request = ConsumerGroupHeartbeatRequest(group_id=group_id, **fields)
        return self.ask(self.machine.consumer.heartbeat, request, version, client)

    def describe(self, *group_ids):
        return self.machine.consumer.describe(group_ids or (GROUP,))

    def refused(self, code, **fields):
        response = self.beat(**fields)
        assert ErrorCode(response.error_code) is code, response
        return response

    def fresh(self):
        """Return what another coordinator makes of the log."""
        return self.replayed(make_machine(self.topics, self.settings))

    def consumer(self, member_id, **fields):
        return Consumer(self, member_id, **fields)


def pairs(topic_partitions):
    return {(topic.topic_id, partition) for topic in topic_partitions for partition in topic.partitions}


class Consumer:
    """A consumer that does as it is told: `granted` is what it was last assigned, `owned` what it reads."""

    def __init__(self, stage, member_id, **fields):
        self.stage = stage
        self.id = member_id
        self.fields = fields
        self.epoch = 0
        self.owned = set()
        self.granted = set()
        self.error = ErrorCode.NONE
        # Whether an answer was lost, so that it says everything and is told everything.
        self.in_doubt = False

    def beat(self, *, quiet=False, **fields):
        """Send a heartbeat that says what it owns, unless it is quiet about that; the answer is only noted."""
        self.fields.update(fields)
        if self.epoch == 0 or self.in_doubt:
            fields = {"rebalance_timeout_ms": 5_000, **self.fields}
            if "subscribed_topic_regex" not in fields:
                fields.setdefault("subscribed_topic_names", ["foo"])
        fields["instance_id"] = self.fields.get("instance_id")
        # One in doubt says this too, as Java's does; else it would not be told everything.
        if not quiet or self.epoch == 0 or self.in_doubt:
            fields["topic_partitions"] = _partitions(self.owned) if self.epoch else []
        response = self.stage.beat(member_id=self.id, member_epoch=self.epoch, **fields)
        self.error = ErrorCode(response.error_code)
        if self.error is ErrorCode.NONE:
            self.in_doubt = False
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.granted = pairs(response.assignment.topic_partitions)
        elif self.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epoch, self.owned, self.granted = 0, set(), set()
        return response

    def obey(self):
        """Give up what is not granted any more, and begin to read what is new."""
        self.owned = set(self.granted)

    def step(self, **fields):
        response = self.beat(**fields)
        self.obey()
        return response


def _partitions(owned):
    by_topic = {}
    for topic_id, partition in sorted(owned):
        by_topic.setdefault(topic_id, []).append(partition)
    return [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in by_topic.items()
    ]


def settle(consumers, rounds=6):
    """Let all consumers beat and obey for some rounds."""
    for _ in range(rounds):
        for each in consumers:
            each.step()
