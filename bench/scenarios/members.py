"""Members of groups over plain sockets: they join, take what they are given, and send heartbeats.

Hundreds of them are driven by one thread. A member has at most one request unanswered, as real ones have.
"""

import heapq
import itertools
import select
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.peers.connection import Connection

NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
AGAIN_SECONDS = 0.02


class Member(ABC):
    """One member on a connection of its own."""

    interval_seconds: ClassVar[float]  # between heartbeats, by the product's default

    def __init__(self, port: int, group: str, topic: str) -> None:
        self.line = Connection(port, seconds_max=120)
        self.group, self.topic = group, topic
        self.epoch = 0
        self.steady = False
        self._expected: tuple[type[Message], int] | None = None

    @property
    def waiting(self) -> bool:
        """Whether an answer is on its way."""
        return self._expected is not None

    @abstractmethod
    def speak(self) -> None:
        """Send what is to be sent next: a join at first, later a heartbeat."""

    @abstractmethod
    def hear(self, answer: Message) -> bool:
        """Take an answer in; whether to speak again at once."""

    def listen(self) -> bool:
        assert self._expected is not None
        kind, version = self._expected
        self._expected = None
        return self.hear(self.line.receive(kind, version))

    def _send(self, request: Message, answer: type[Message], version: int) -> None:
        self.line.send(request, version)
        self._expected = answer, version


class ClassicMember(Member):
    """JoinGroup, SyncGroup, Heartbeat; the leader gives each member one partition."""

    interval_seconds = 3.0

    def __init__(self, port: int, group: str, topic: str) -> None:
        super().__init__(port, group, topic)
        self._id = ""
        self._given: list[SyncGroupRequest.SyncGroupRequestAssignment] = []
        self._next = self._join
        self._subscription = b"\0\1" + ConsumerProtocolSubscription(topics=[topic]).encode(1)

    def speak(self) -> None:
        self._next()

    def hear(self, answer: Message) -> bool:
        if isinstance(answer, JoinGroupResponse):
            return self._joined(answer)
        if isinstance(answer, SyncGroupResponse):
            self.steady = self._after(answer.error_code, self._beat)
            return not self.steady
        assert isinstance(answer, HeartbeatResponse)
        if answer.error_code != ErrorCode.NONE:
            self.steady = False
            self._after(answer.error_code, self._beat)
        return not self.steady

    def _after(self, code: int, then: Callable[[], None]) -> bool:
        """What follows an answer: the next step, or a join when the group has moved on."""
        if code == ErrorCode.NONE:
            self._next = then
            return True
        known = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, *NOT_YET}
        assert code in known, ErrorCode(code)
        self._next = self._join
        return False

    def _join(self) -> None:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=self._subscription)
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=self._id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        self._send(request, JoinGroupResponse, 7)

    def _joined(self, answer: JoinGroupResponse) -> bool:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._id = answer.member_id
        elif self._after(answer.error_code, self._sync):
            self._id, self.epoch = answer.member_id, answer.generation_id
            self._given = [self._gift(n, each.member_id) for n, each in enumerate(answer.members)]
        return True

    def _gift(self, number: int, member_id: str) -> SyncGroupRequest.SyncGroupRequestAssignment:
        place = ConsumerProtocolAssignment.TopicPartition(topic=self.topic, partitions=[number])
        content = b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=[place]).encode(1)
        return SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=content)

    def _sync(self) -> None:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self._id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=self._given,
        )
        self._send(request, SyncGroupResponse, 5)

    def _beat(self) -> None:
        request = HeartbeatRequest(group_id=self.group, generation_id=self.epoch, member_id=self._id)
        self._send(request, HeartbeatResponse, 4)


class ConsumerMember(Member):
    """ConsumerGroupHeartbeat (KIP-848): what it is told to give up it gives up at once."""

    interval_seconds = 5.0

    def __init__(self, port: int, group: str, topic: str) -> None:
        super().__init__(port, group, topic)
        self._id = str(uuid.uuid4())
        self._news = True  # something to tell beyond being alive
        self._owned: list[ConsumerGroupHeartbeatRequest.TopicPartitions] = []

    @property
    def owned_count(self) -> int:
        return sum(len(each.partitions) for each in self._owned)

    def speak(self) -> None:
        joining = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self._id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000 if joining else -1,
            subscribed_topic_names=[self.topic] if joining else None,
            topic_partitions=self._owned if self._news else None,
        )
        self._send(request, ConsumerGroupHeartbeatResponse, 1)

    def hear(self, answer: Message) -> bool:
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        if answer.error_code in NOT_YET:
            return True
        assert answer.error_code == ErrorCode.NONE, (answer.error_code, answer.error_message)
        self.epoch, self._news = answer.member_epoch, answer.assignment is not None
        if answer.assignment is not None:
            kind = ConsumerGroupHeartbeatRequest.TopicPartitions
            self._owned = [
                kind(topic_id=each.topic_id, partitions=each.partitions)
                for each in answer.assignment.topic_partitions
            ]
        self.steady = self.owned_count > 0
        return self._news


class Crowd:
    """Members driven together."""

    def __init__(self, members: list[Member], interval_seconds: float) -> None:
        self._members = members
        self._interval = interval_seconds
        self._poller = select.poll()
        self._by_number = {each.line.socket.fileno(): each for each in members}
        for number in self._by_number:
            self._poller.register(number, select.POLLIN)
        self._ties = itertools.count()
        self._due: list[tuple[float, int, Member]] = []

    def start(self) -> None:
        """All of them join at once."""
        for each in self._members:
            each.speak()

    def spread(self, interval_seconds: float) -> None:
        """From now on heartbeats come at this interval, evenly spread over the members."""
        self.run_until(lambda: not any(each.waiting for each in self._members))
        self._interval, now = interval_seconds, time.perf_counter()
        step = interval_seconds / len(self._members)
        self._due = [(now + n * step, next(self._ties), each) for n, each in enumerate(self._members)]

    def run_until(self, settled: Callable[[], bool], seconds_max: float = 120.0) -> None:
        deadline = time.perf_counter() + seconds_max
        while not settled():
            assert time.perf_counter() < deadline, f"the group did not settle within {seconds_max} s"
            self._turn()

    def run(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self._turn()

    def _turn(self) -> None:
        now = time.perf_counter()
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2].speak()
        wait = self._due[0][0] - now if self._due else 1.0
        for number, _ in self._poller.poll(min(max(wait, 0.001), 1.0) * 1000):
            member = self._by_number[number]
            at_once = member.listen()
            if at_once and (member.epoch or isinstance(member, ClassicMember)):
                member.speak()
                continue
            due = time.perf_counter() + (AGAIN_SECONDS if at_once else self._interval)
            heapq.heappush(self._due, (due, next(self._ties), member))

    def close(self) -> None:
        for each in self._members:
            each.line.close()
