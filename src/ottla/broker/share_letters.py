"""Dead letters of share groups: on their way to the topics that the groups have for them (KIP-1191).

D1  A letter goes to the partition of the topic that has the number of its own, modulo their count. Letters for one
    partition go in order, as many in a batch as `max.message.bytes` allows, one batch after the other.
D2  A topic takes letters when its name begins as the cluster demands and it has `errors.deadletterqueue.group.enable`;
    one that is not there is made, if the cluster allows that.
D3  Whoever sent a letter hears of its end in any case: a letter that cannot be written must hold up nothing.
D4  Nothing is read or written in the turn of the loop in which a record is given up, and one batch at most in others.

    send() --> sorted --> [the topic is made] --> waiting for its partition --> written --> done()
                  |                |                                                |
                  +----------------+-------- refused, after some tries -------------+-----> done()
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.fair_queue import Job
from ottla.broker.share_carrier import carry
from ottla.broker.share_letter import Originals, Parcel, pack
from ottla.log.inspection import Inspected, PostponedError
from ottla.log.validation import inspect_client_batch
from ottla.metadata.config import ConfigType
from ottla.metadata.settings.topic import effective_topic
from ottla.share.effects import DeadLetter
from ottla.wire.batch import build_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.uuid import uuid_text

Place = tuple[str, int]  # topic, partition
Reached = list[tuple[DeadLetter, int]]

_Topic = CreateTopicsRequest.CreatableTopic
_ENABLED = "errors.deadletterqueue.group.enable"
_TRIES = 5
_RETRY_S = 1.0
_PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.TOPIC_ALREADY_EXISTS,
)


class _Unsendable(Exception):
    """Why a letter cannot go."""


class Post:
    """One letter under way, up to this offset; `done` is called at its end."""

    __slots__ = ("done", "letter", "offset", "tries")

    def __init__(self, letter: DeadLetter, done: Callable[[], None]) -> None:
        self.letter = letter
        self.done = done
        self.offset = letter.start_offset
        self.tries = 0


class Counts(NamedTuple):
    """What a group's letters came to: records written, batches they were in, and how often that failed."""

    records: int = 0
    batches: int = 0
    failures: int = 0


class DeadLetters:
    """The letters of all share groups on this broker. `report` is told why the letters of a group do not go."""

    def __init__(self, broker: Broker, report: Callable[[str], object]) -> None:
        self._broker = broker
        self._report = report
        self._originals = Originals(broker.table)
        self._boxes: dict[Place, deque[Post]] = {}
        self._making: dict[str, list[Post]] = {}
        self._reported: dict[str, str] = {}
        self.counts: dict[str, Counts] = {}

    def send(self, letter: DeadLetter, done: Callable[[], None]) -> None:
        """Write a letter, and call back once it is durable, or never will be."""
        post = Post(letter, done)
        self._broker.call_soon(lambda: self._sort(post))

    def forget(self, group_id: str) -> None:
        """A group is gone: count nothing of it any more."""
        self.counts.pop(group_id, None)
        self._reported.pop(group_id, None)

    # Where to

    def _sort(self, post: Post) -> None:
        broker = self._broker
        try:
            name = self._topic_of(post.letter.group_id)
        except Exception as reason:  # noqa: BLE001  # _Unsendable, or whatever else: it has an end (D3)
            self._give_up(post, str(reason))
            return
        topic = broker.image.topics.by_name.get(name)
        if topic is None:
            self._make(name, post)
            return
        place = name, post.letter.partition % len(topic.partitions)
        box = self._boxes.get(place)
        if box is not None:
            box.append(post)
        else:
            self._boxes[place] = deque([post])
            broker.call_soon(lambda: self._write(place))

    def _topic_of(self, group_id: str) -> str:
        broker = self._broker
        name = broker.coordination.config(group_id, "errors.deadletterqueue.topic.name")
        assert isinstance(name, str)
        prefix = str(broker.settings["errors.deadletterqueue.topic.name.prefix"])
        if not name:
            raise _Unsendable("it has no dead-letter topic any more")
        if name.startswith("__"):
            raise _Unsendable(f"{name} cannot be a dead-letter topic, for its name begins with __")
        if not name.startswith(prefix):
            raise _Unsendable(
                f"{name} cannot be a dead-letter topic, for its name does not begin with {prefix}"
            )
        if name in broker.image.topics.by_name:
            overrides = broker.image.configs.of(ConfigType.TOPIC, name)
            if not effective_topic(broker.settings, overrides)[_ENABLED]:
                raise _Unsendable(f"the topic {name} does not have {_ENABLED}=true")
        elif not broker.settings["errors.deadletterqueue.auto.create.topics.enable"]:
            setting = "errors.deadletterqueue.auto.create.topics.enable"
            raise _Unsendable(f"there is no topic {name}, and {setting} is false")
        return name

    def _make(self, name: str, post: Post) -> None:
        waiting = self._making.get(name)
        if waiting is not None:
            waiting.append(post)
            return
        self._making[name] = [post]
        configs = {_ENABLED: "true", "message.timestamp.type": "CreateTime"}
        topic = _Topic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            configs=[_Topic.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        wish = CreateTopicsRequest(topics=[topic])

        def made(outcome: CreateTopicsResponse | BrokerError) -> None:
            if isinstance(outcome, BrokerError):
                code, reason = outcome.code, outcome.message
            elif not outcome.topics:
                code, reason = ErrorCode.UNKNOWN_SERVER_ERROR, None
            else:
                code = ErrorCode(outcome.topics[0].error_code)
                reason = outcome.topics[0].error_message
            for waiter in self._making.pop(name):
                if code is ErrorCode.NONE:
                    self._sort(waiter)
                else:
                    self._failed(waiter, code, f"the topic {name} could not be made: {reason or code.name}")

        self._broker.ask_controller(
            wish, CreateTopicsResponse, lambda controller, now: controller.create_topics(wish, now), made
        )

    # Writing

    def _write(self, place: Place) -> None:
        """Write one batch, and see to the next once it is durable. If that breaks, the first letter goes (D3)."""
        try:
            self._write_batch(place)
        except Exception as error:  # noqa: BLE001
            first = self._boxes[place][0]
            self._broke(place, [(first.letter, first.offset)], error)

    def _write_batch(self, place: Place) -> None:
        broker, box = self._broker, self._boxes[place]
        overrides = broker.image.configs.of(ConfigType.TOPIC, place[0])
        size_bytes_max = effective_topic(broker.settings, overrides)["max.message.bytes"]
        assert isinstance(size_bytes_max, int)
        now = broker.clock.now_ms()
        records, reached = pack(self._parcels(box), self._originals, size_bytes_max, now)
        batch = build_batch(records)
        for letter, _ in reached:
            self._count(letter.group_id, batches=1)
        peer = broker.other_leader(*place)
        if peer is None:
            self._append(place, reached, batch, None)
            return
        topic_id = broker.image.topics.by_name[place[0]].id
        carry(peer, topic_id, place, batch, lambda error: self._written(place, reached, error))

    def _append(
        self, place: Place, reached: Reached, batch: bytearray, inspected: Inspected | BrokerError | None
    ) -> None:
        """Append a batch here; a long one is looked through in a thread first."""
        now = self._broker.clock.now_ms()
        try:
            partition = self._broker.table.by_name(*place)
            appended = partition.append(batch, now, inspected)
        except PostponedError:
            config = partition.log.config
            self._broker.inspections.submit(
                None,
                Job(
                    lambda: lambda: inspect_client_batch(batch, config, now),
                    lambda result, error: self._inspected(place, reached, batch, result, error),
                ),
            )
            return
        except BrokerError as error:
            self._written(place, reached, error)
            return
        if appended.end_offset <= partition.high_watermark:
            self._written(place, reached, None)
        else:
            partition.when_durable(appended.end_offset, lambda error: self._written(place, reached, error))

    def _inspected(
        self,
        place: Place,
        reached: Reached,
        batch: bytearray,
        result: Inspected | BrokerError | None,
        error: BaseException | None,
    ) -> None:
        try:
            if result is None:
                raise error or AssertionError("no result")
            self._append(place, reached, batch, result)
        except Exception as broken:  # noqa: BLE001
            self._broke(place, reached, broken)

    def _broke(self, place: Place, reached: Reached, error: Exception) -> None:
        self._broker.failed(error)
        self._written(place, reached, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)))

    def _parcels(self, box: deque[Post]) -> Iterator[Parcel]:
        for post in tuple(box):
            letter = post.letter
            topic = self._broker.image.topics.by_id.get(letter.topic_id)
            name = uuid_text(letter.topic_id) if topic is None else topic.name
            copies = self._broker.coordination.config(
                letter.group_id, "errors.deadletterqueue.copy.record.enable"
            )
            yield Parcel(letter, post.offset, name, copies)

    def _written(self, place: Place, reached: Reached, error: BrokerError | None) -> None:
        box = self._boxes[place]
        ended: list[Post] = []
        for letter, end_offset in reached:
            post = box[0]
            assert post.letter is letter
            if error is None:
                self._count(letter.group_id, records=end_offset - post.offset)
                post.offset, post.tries = end_offset, 0
            if error is not None or end_offset == letter.end_offset:
                ended.append(box.popleft())
        if box:
            self._broker.call_soon(lambda: self._write(place))
        else:
            del self._boxes[place]
            if not self._boxes:
                self._originals.forget()
        for post in ended:
            if error is None:
                self._reported.pop(post.letter.group_id, None)
                self._end(post)
            else:
                reason = f"the topic {place[0]} refused it: {error.message or error.code.name}"
                self._failed(post, error.code, reason)

    # Ends

    def _failed(self, post: Post, code: ErrorCode, reason: str) -> None:
        """Try again what may work a little later, and give up the rest."""
        post.tries += 1
        if code in _PASSING and post.tries < _TRIES:
            self._broker.call_later(_RETRY_S * 2 ** (post.tries - 1), lambda: self._sort(post))
        else:
            self._count(post.letter.group_id, failures=1)
            self._give_up(post, reason)

    def _give_up(self, post: Post, reason: str) -> None:
        group_id = post.letter.group_id
        if self._reported.get(group_id) != reason:
            self._reported[group_id] = reason
            self._report(
                f"the share group {group_id} gave up records, and no dead letter was written: {reason}"
            )
        self._end(post)

    def _end(self, post: Post) -> None:
        try:
            post.done()
        except Exception as error:  # noqa: BLE001  # the letters behind it are not to blame
            self._broker.failed(error)

    def _count(self, group_id: str, records: int = 0, batches: int = 0, failures: int = 0) -> None:
        known = self.counts.get(group_id) or Counts()
        self.counts[group_id] = Counts(
            known.records + records, known.batches + batches, known.failures + failures
        )
