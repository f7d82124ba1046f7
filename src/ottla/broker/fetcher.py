"""Follows one leader: fetches, for all partitions that it leads and that we have replicas of.

F1  One fetch is under way at a time, in a session: it names what is new (`_due`), and costs no more than that; an idle
    one is a few bytes twice a second.
F2  What an answer says of a partition that was left, or has another epoch by now, is thrown away.
F3  A partition that cannot be fetched rests, at first for a moment and then for longer, up to
    `replica.fetch.backoff.ms`; the others go on. A follower often hears of a new leader before that one does, and
    everybody who writes waits for it.
    Every kind of answer that brings nothing rests: an error, a branch that cuts nothing, records that add nothing, a
    session that the leader does not know though it has just been asked to begin one. Only the first cut after a
    success is followed up at once. So no answer whatsoever makes a loop of requests without a delay.
F4  An answer is stored, and durable in the sense of the flush mode, before the next fetch goes out, for that one tells
    the leader that it is: with `ack`, what all in sync are said to have survives the loss of power everywhere. Nor is a
    partition named whose end is not durable for another reason: it led until now, or followed in an earlier epoch.
F5  In another life of this broker everything is named anew: a leader goes by the life in which it was last told of a
    partition, and one that is level would say nothing more.
F6  An error that nobody foresaw is reported as a bug. If it is one partition's, that one rests, as in F3. If it is the
    request's, everything is named anew in another session after a rest. Neither ends the fetching.
F7  Logs are not cut one by one as answers tell, but all that are to be cut together, a few a turn (`Truncations`): each
    cut may cost a sync, and a leader that was uncleanly elected has thousands of partitions cut in one answer.

    follow() --> DUE --fetch--> (answer) --> stored, DUE
                  ^                |
                  |                +--> branched: cut, DUE
                  +--- backoff ----+--> refused, or out of range: ask where the leader begins, RESTING
"""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.broker.broker import Timers
from ottla.broker.fetch_session import SESSION_ERRORS
from ottla.broker.followed import Followed as _Followed
from ottla.broker.truncations import Truncations
from ottla.channel.peers import Peer
from ottla.partition.copy import branch_offset, cut_to, cut_to_branch, learn, store
from ottla.partition.partition import Partition
from ottla.partition.throttle import Throttle
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.world.worker import InlineWorker, Worker

_EPOCH_MAX = 2**31 - 1
_EARLIEST_LOCAL = -4
_LATEST = -1
_REST_S_MIN = 0.02
_LOST_FAILURES_MAX = 8

Key = tuple[bytes, int]
Asked = FetchRequest.FetchTopic
Answer = FetchResponse.FetchableTopicResponse.PartitionData


class Fetcher:
    """The way to one leader. `values` are the broker's settings in force."""

    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        peer: Peer,
        timers: Timers,
        values: Callable[[], Mapping[str, Any]],
        report: Callable[[str], None],
        throttle: Throttle,
        worker: Worker | None = None,
    ) -> None:
        self._throttle = throttle
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._peer = peer
        self._timers, self._values, self._report = timers, values, report
        self._followed: dict[Key, _Followed] = {}
        self._due: dict[Key, None] = {}
        self._named: set[Key] = set()  # what the session has
        self._session_id = 0
        self._session_epoch = 0
        self._life = -1
        self._busy = False
        self._unsynced = 0  # partitions whose part of the last answer is on its way to the disk
        self._asked = 0  # requests so far: only the answer to the last one counts
        self._failures = 0  # in a row
        self._bugs = 0  # in a row (F6)
        self._closed = False
        self._truncations = Truncations(timers, worker or InlineWorker())

    def __len__(self) -> int:
        return len(self._followed)

    @property
    def is_lost(self) -> bool:
        """Whether the leader has hung up and not been reached since; after seconds nothing is concluded from it."""
        return 0 < self._failures <= _LOST_FAILURES_MAX

    @property
    def partitions(self) -> list[Partition]:
        """All that are fetched."""
        return [each.partition for each in self._followed.values()]

    def follow(self, partition: Partition) -> None:
        """Fetch a partition, from its end on."""
        key = (partition.topic_id, partition.index)
        self._followed[key] = _Followed(partition)
        self._due[key] = None
        self._fetch()

    def leave(self, partition: Partition) -> None:
        """Fetch it no more."""
        key = (partition.topic_id, partition.index)
        found = self._followed.get(key)
        if found is not None and found.partition is partition:
            del self._followed[key]
            self._due[key] = None  # so that the session is told to forget it

    def close(self) -> None:
        """Stop."""
        self._closed = True
        self._followed.clear()
        self._truncations.close()
        self._peer.close()

    # Fetching

    def _fetch(self) -> None:
        if self._busy or self._unsynced or self._closed or not self._followed:
            return
        self._busy = True
        # At the end of the turn: whatever else is to be followed is named along.
        self._timers.call_soon(self._send)

    def _send(self) -> None:
        try:
            self._ask()
        except Exception as error:  # noqa: BLE001  # F6
            self._begin_again(error)

    def _begin_again(self, error: Exception) -> None:
        """Report what broke a request, or the handling of its answer, and ask for everything anew after a rest (F6)."""
        self._busy = False
        self._asked += 1  # should the request be answered all the same
        if self._closed:
            return
        self._bugs += 1
        self._begin_session()
        self._later(self._bugs, self._fetch)
        self._report_bug(error)

    def _report_bug(self, error: Exception) -> None:
        for followed in self._followed.values():
            followed.partition.log.report_bug(error)
            return

    def _ask(self) -> None:
        if self._closed or not self._followed:
            self._busy = False
            return
        if self._life != self._broker_epoch():
            self._life = self._broker_epoch()
            self._begin_session()
        values = self._values()
        asked: dict[bytes, list[Any]] = {}
        forgotten: dict[bytes, list[int]] = {}
        due, self._due = self._due, {}
        for topic_id, index in due:
            followed = self._followed.get((topic_id, index))
            place = None if followed is None else self._place_of(followed)
            if followed is None or place is None:
                if (topic_id, index) in self._named:
                    self._named.remove((topic_id, index))
                    forgotten.setdefault(topic_id, []).append(index)
                continue
            if place == followed.told and self._session_id:
                continue
            followed.told = place
            self._named.add((topic_id, index))
            offset, fetched_epoch, start_offset, epoch, high_watermark = place
            asked.setdefault(topic_id, []).append(
                Asked.FetchPartition(
                    partition=index,
                    current_leader_epoch=epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=fetched_epoch,
                    log_start_offset=start_offset,
                    partition_max_bytes=values["replica.fetch.max.bytes"],
                    high_watermark=high_watermark,
                )
            )
        if not self._named:
            # All rest. A leader that has nothing to look for answers at once, so that it would be asked without end.
            self._begin_session()
            self._busy = False
            return
        if not self._session_id:
            if not asked:
                self._busy = False
                return
            forgotten = {}
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=self._node_id, replica_epoch=self._life),
            max_wait_ms=values["replica.fetch.wait.max.ms"],
            min_bytes=values["replica.fetch.min.bytes"],
            max_bytes=values["replica.fetch.response.max.bytes"],
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=[Asked(topic_id=topic_id, partitions=parts) for topic_id, parts in asked.items()],
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in forgotten.items()
            ],
        )
        self._asked += 1
        number = self._asked
        self._peer.ask(request, FetchResponse, lambda answer: self._answered(number, answer))

    def _place_of(self, followed: _Followed) -> tuple[int, int, int, int, int] | None:
        """Return where to fetch a partition from; None for one that is not to be fetched now."""
        try:
            if self._throttle.named and not followed.rests:
                self._hold_back(followed)
            if followed.rests or not followed.is_current:
                return None
            partition = followed.partition
            end_offset = partition.log.end_offset
            if partition.durable_offset < end_offset:  # F4
                followed.rests = True
                partition.when_stored(end_offset, lambda _: self._resume(followed))
                return None
            return followed.place()
        except Exception as error:  # noqa: BLE001  # as in `_take`
            self._rest(followed)
            followed.partition.log.report_bug(error)
            return None

    def _answered(self, number: int, answer: FetchResponse | Exception) -> None:
        if number != self._asked:
            return  # it was given up (F6)
        self._busy = False
        if self._closed:
            return
        try:
            self._take_all(answer)
        except Exception as error:  # noqa: BLE001  # F6
            self._begin_again(error)
        else:
            self._bugs = 0

    def _take_all(self, answer: FetchResponse | Exception) -> None:
        if isinstance(answer, Exception):
            self._begin_session()
            self._failures += 1
            self._later(self._failures, self._fetch)
            return
        if answer.error_code:
            known = self._session_id
            self._begin_session()
            if known and answer.error_code in SESSION_ERRORS:
                self._fetch()
            else:
                self._failures += 1
                self._later(self._failures, self._fetch)
            return
        self._failures = 0
        self._session_id = answer.session_id
        self._session_epoch = 0 if not answer.session_id else self._session_epoch % _EPOCH_MAX + 1
        for topic in answer.responses:
            for part in topic.partitions:
                key = (topic.topic_id, part.partition_index)
                followed = self._followed.get(key)
                if followed is not None:
                    self._due[key] = None
                    if followed.is_current:
                        self._take(followed, part)
        self._fetch()

    def _synced(self, _: BrokerError | None) -> None:
        """One of the last answer's parts is durable, or will never be."""
        self._unsynced -= 1
        self._fetch()  # F4: unless there are others

    def _begin_session(self) -> None:
        self._session_id = self._session_epoch = 0
        self._named.clear()
        for key, followed in self._followed.items():
            followed.told = None
            self._due[key] = None

    def _take(self, followed: _Followed, part: Answer) -> None:
        partition, asked_for = followed.partition, followed.told
        if asked_for is None:
            return  # F2: it was asked for by an earlier life, or not at all
        if not self._session_id:
            followed.told = None
        try:
            if part.error_code:
                self._refused(followed, part.error_code)
                return
            branch = part.diverging_epoch
            if branch is not None and branch.end_offset >= 0:
                offset, _ = branch_offset(partition, branch.epoch, branch.end_offset)
                self._cut_soon(followed, offset, lambda: self._branch_off(followed, branch))
                return
            if part.records and asked_for[0] == partition.log.end_offset:
                store(partition, part.records)
                if partition.log.end_offset == asked_for[0]:
                    raise BrokerError(ErrorCode.INVALID_RECORD, "there is no whole batch in it")
                if partition.durable_offset < partition.log.end_offset:
                    partition.when_stored(partition.log.end_offset, self._synced)
                    self._unsynced += 1
                if self._throttle.named:
                    self._throttle.record(partition, len(part.records))
            followed.refusals = 0
            followed.is_level = part.high_watermark <= partition.log.end_offset
            learn(partition, part.high_watermark, part.log_start_offset)
        except Exception as error:  # noqa: BLE001  # that of one partition must not end the fetching of all
            self._failed(followed, error, "what the leader sent was not stored: ")

    def _cut_soon(self, followed: _Followed, offset: int, cut: Callable[[], None]) -> None:
        """Cut at `offset` with all others that are to be cut now (F7); it rests until then."""
        followed.rests = True

        def guarded(error: BrokerError | None) -> None:
            if self._closed or not followed.is_current:
                return
            try:
                if error is not None:
                    raise error
                cut()
            except Exception as failure:  # noqa: BLE001  # F6: it rests already, and would do so for ever
                self._failed(followed, failure, "")

        self._truncations.add(followed.partition, offset, guarded)

    def _failed(self, followed: _Followed, error: Exception, what: str) -> None:
        """Let a partition rest for which something has failed, and tell of it."""
        partition = followed.partition
        if partition.error is None:
            self._rest(followed)  # before it is told, which may break as well
            self._report(f"{partition.topic}-{partition.index}: {what}{error}")
        if not isinstance(error, (BrokerError, OSError)):
            partition.log.report_bug(error)

    def _branch_off(self, followed: _Followed, branch: Answer.EpochEndOffset) -> None:
        partition = followed.partition
        before = partition.log.end_offset
        cut_to_branch(partition, branch.epoch, branch.end_offset)
        self._report(
            f"{partition.topic}-{partition.index}: cut from {before} to {partition.log.end_offset}, "
            f"where the leader's epoch {branch.epoch} ends"
        )
        if partition.log.end_offset == before:
            self._rest(followed)
        else:
            self._resume(followed)

    def _refused(self, followed: _Followed, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            followed.rests = True
            self._ask_range(followed, _LATEST, lambda end: self._out_of_range(followed, end))
        else:
            # Another leader, or one that has yet to hear of its role: the metadata, or time, will mend it.
            self._rest(followed)

    # Out of range

    def _out_of_range(self, followed: _Followed, leader_end_offset: int) -> None:
        """We are ahead of the leader, after an unclean election; or behind what it has kept."""
        partition = followed.partition
        log = partition.log
        if log.start_offset < leader_end_offset < log.end_offset:
            self._cut_soon(followed, leader_end_offset, lambda: self._cut(followed, leader_end_offset))
            return
        ahead = leader_end_offset < log.end_offset

        def begins(start_offset: int) -> None:
            """Start anew where the leader begins, if nothing of ours lies within what it has."""
            if ahead or start_offset > log.end_offset:
                self._cut_soon(followed, start_offset, lambda: self._cut(followed, start_offset))
            else:
                self._rest(followed)

        self._ask_range(followed, _EARLIEST_LOCAL, begins)

    def _cut(self, followed: _Followed, offset: int) -> None:
        """Go on at `offset`: at once, but after a rest when that is where we were, or when one cut follows another."""
        partition = followed.partition
        before = partition.log.start_offset, partition.log.end_offset
        cut_to(partition, offset)
        after = partition.log.start_offset, partition.log.end_offset
        self._report(
            f"{partition.topic}-{partition.index}: was out of the leader's range at {before[1]}, goes on at {after[1]}"
        )
        if followed.refusals or before == after:
            self._rest(followed)
        else:
            followed.refusals = 1
            self._resume(followed)

    def _ask_range(self, followed: _Followed, which: int, then: Callable[[int], None]) -> None:
        partition = followed.partition
        topic = ListOffsetsRequest.ListOffsetsTopic
        place = topic.ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=followed.epoch, timestamp=which
        )
        request = ListOffsetsRequest(
            replica_id=self._node_id, topics=[topic(name=partition.topic, partitions=[place])]
        )

        def answered(answer: ListOffsetsResponse | Exception) -> None:
            if not followed.is_current or self._closed:
                return
            parts = [] if isinstance(answer, Exception) else [each for t in answer.topics for each in t.partitions]
            found = parts[0] if parts else None
            if found is None or found.error_code or found.offset < 0:
                self._rest(followed)
                return
            try:
                then(found.offset)
            except Exception as error:  # noqa: BLE001  # F6: it rests already, and would do so for ever
                self._failed(followed, error, "")

        self._peer.ask(request, ListOffsetsResponse, answered)

    # Waiting

    def _rest(self, followed: _Followed) -> None:
        followed.rests = True
        followed.told = None
        followed.refusals += 1
        self._later(followed.refusals, lambda: self._resume(followed))

    def _hold_back(self, followed: _Followed) -> None:
        """Let one that catches up wait, where that has been going on too fast."""
        if self._throttle.holds_back(followed.partition, in_sync=followed.is_level):
            followed.rests = True
            delay_s = self._values()["replica.fetch.backoff.ms"] / 1000
            self._timers.call_later(delay_s, lambda: self._resume(followed))

    def _resume(self, followed: _Followed) -> None:
        followed.rests = False
        followed.told = None
        key = (followed.partition.topic_id, followed.partition.index)
        if self._followed.get(key) is followed:
            self._due[key] = None
            self._fetch()

    def _later(self, times: int, callback: Callable[[], None]) -> None:
        """Call after a rest, which is twice as long each time in a row."""
        rest_s = min(self._values()["replica.fetch.backoff.ms"] / 1000, _REST_S_MIN * 2 ** min(times - 1, 16))
        self._timers.call_later(rest_s, callback)
