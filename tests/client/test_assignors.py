"""The assignors beside Apache Kafka's own: the same groups, round after round, are shared out in the same way.

Both sides read what members handed in as bytes and answer in bytes, so this is the proof that members in Python
and in Java can be in one group, whoever leads.
"""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.consumer.assignors.assignor import MemberSubscription
from ottla.client.consumer.assignors.protocol import decode_assignment, encode_subscription
from ottla.client.consumer.assignors.table import ASSIGNORS
from ottla.client.record import TopicPartition
from tests.compat.absence import need_kafka
from tests.peers import jars
from tests.peers.kafka import SHORT_LIVED

SEED = int(os.environ.get("SEED", "0")) or random.randrange(1, 1 << 30)
ROUNDS = 400
# In the order in which Java's hash maps go through them, where an order decides between equals.
NAMES = "abcdefghijklmno"


class Java:
    """Apache Kafka's assignors behind a pipe."""

    def __init__(self) -> None:
        source = str(Path(__file__).with_name("Assign.java"))
        command = [jars.java(), *SHORT_LIVED, "-cp", jars.classpath(), source]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def assign(self, name, layout, subscriptions):
        topics = ";".join(
            f"{topic}:{','.join('+'.join(sorted(racks)) for racks in partitions)}"
            for topic, partitions in layout.items()
        )
        members = ";".join(f"{m}={w.instance or ''}={encode_subscription(w).hex()}" for m, w in subscriptions.items())
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(f"{name}|{topics}|{members}", file=self.process.stdin, flush=True)
        line = self.process.stdout.readline().strip()
        if not line:
            return None
        fields = [each.split("=") for each in line.split(";")]
        for member, _, echo in fields:
            assert echo == encode_subscription(subscriptions[member]).hex(), "the bytes of the subscription"
        return {
            member: sorted(decode_assignment(bytes.fromhex(assignment))) for member, assignment, _ in fields
        }


@pytest.fixture(scope="module")
def java() -> Iterator[Java]:
    need_kafka()
    running = Java()
    yield running
    running.process.kill()
    running.process.communicate()


def grow(dice, layout, racks):
    for topic in NAMES[: dice.randint(1, 5)]:
        count = dice.randint(1, 9)
        if len(layout.setdefault(topic, [])) < count and dice.random() < 0.5:
            layout[topic] += [
                frozenset(dice.sample(racks, dice.randint(1, len(racks)))) if racks else frozenset()
                for _ in range(count - len(layout[topic]))
            ]
    for topic in [topic for topic in layout if not layout[topic]]:
        del layout[topic]


@pytest.mark.parametrize("alike", [True, False], ids=["same-topics", "different-topics"])
@pytest.mark.parametrize("near", [False, True], ids=["no-racks", "racks"])
@pytest.mark.parametrize("name", ASSIGNORS)
def test_as_apache_kafka_assigns(java: Java, name: str, near: bool, alike: bool) -> None:
    dice = random.Random(SEED)
    racks = ["r1", "r2", "r3"] if near else []
    layout, members = {}, {}
    generation = 0
    differing = 0
    for turn in range(ROUNDS):
        if turn % 12 == 0:
            layout, members = {}, {}
        grow(dice, layout, racks)
        everything = tuple(layout) if layout else ("a",)
        for member in NAMES[: dice.randint(1, 6)]:
            if member not in members:
                static = f"i{dice.randint(0, 99)}{member}" if dice.random() < 0.2 else None
                rack = dice.choice([None, *racks])
                members[member] = (ASSIGNORS[name](), static, rack, (), -1)
        for member in [each for each in members if len(members) > 1 and dice.random() < 0.15]:
            if len(members) > 1:
                del members[member]
        subscriptions = {}
        for member in sorted(members):
            mine, static, rack, owned, since = members[member]
            topics = everything if alike else tuple(dice.sample(everything, dice.randint(1, len(everything))))
            kept = tuple(sorted(owned)) if mine.cooperative else ()
            subscriptions[member] = MemberSubscription(topics, mine.user_data(topics), kept, since, rack, static)
        theirs = java.assign(name, layout, subscriptions)
        ours = ASSIGNORS[name]().assign(layout, subscriptions)
        ours = {member: sorted(partitions) for member, partitions in ours.items()}
        if alike or "sticky" not in name:
            assert ours == theirs, f"seed {SEED}, round {turn}"
        elif theirs is None or any(
            each.topic not in subscriptions[member].topics for member, given in theirs.items() for each in given
        ):
            # With members that missed a generation, Kafka's may give a member what it has not subscribed to, or fail.
            theirs = ours
        else:
            # Which of several equal moves is made depends on the order of Java's hash sets, so now and then it differs.
            differing += ours != theirs
        check(layout, subscriptions, ours, whole=name != "cooperative-sticky")
        generation += 1
        for member in list(members):
            mine, static, rack, _, since = members[member]
            if dice.random() < 0.1:  # absent from this round
                continue
            mine.adopt(theirs[member], generation)
            members[member] = (mine, static, rack, tuple(theirs[member]), generation)
    assert differing < ROUNDS / 15, f"seed {SEED}"


def check(layout, subscriptions, assignment, *, whole):
    given = [each for partitions in assignment.values() for each in partitions]
    assert len(given) == len(set(given))
    for member, partitions in assignment.items():
        assert {each.topic for each in partitions} <= set(subscriptions[member].topics)
    wanted = {topic for wish in subscriptions.values() for topic in wish.topics} & layout.keys()
    every = {TopicPartition(topic, n) for topic in wanted for n in range(len(layout[topic]))}
    assert set(given) <= every
    if whole:
        assert set(given) == every
