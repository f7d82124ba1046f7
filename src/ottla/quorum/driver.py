"""Gives Raft its disk, its wires and its clock, as `raft/ready.py` asks for.

V1  What a step wants written is written before the next step; `quorum-state` is on disk before the log is touched.
V2  One sync is under way at a time. What was written meanwhile is synced by the next, and words that wait for bytes
    leave once those are synced, in the order in which they were said.
V3  The first write or sync that fails ends it: nothing is said any more, and nothing is tried again. A sync that could
    not begin for want of descriptors is none that failed: it begins a moment later.
V4  A snapshot that is fetched has its name only once it is whole, synced and sound.
V5  No request and no answer of a peer ends it: what Raft cannot take in is answered with an error, or ignored.
V6  What is committed or fetched and cannot be taken in ends it as well: the image would stand still for good, and
    nobody would be told. At the start whoever starts it hears the reason.
V7  A fetched snapshot that cannot be read back is fetched again, unless the disk is to blame.
V8  An error that our own argument caused (`log/own_fault.py`) is no word about the disk: it is reported, and what met
    it is done again a moment later, a fetched snapshot from its beginning. Until what a step wanted written is there,
    no other step happens (V1), and requests are answered with an error. Others then elect another leader.

    step(event), append() --> write --> say what may be said --> tell what is committed, and who leads
                      |                 ^
                      +--> sync --------+--> step(Synced)
"""

import errno
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ottla.log.log import Log
from ottla.log.own_fault import Bugs, is_own_fault
from ottla.quorum.download import SnapshotDownload
from ottla.quorum.election_state import write_election_state
from ottla.quorum.snapshots import Snapshots
from ottla.quorum.surroundings import Surroundings
from ottla.quorum.view import DiskView
from ottla.raft.event import (
    Append,
    Event,
    Failure,
    Gone,
    Request,
    Response,
    Start,
    Synced,
    Tick,
    Upgrade,
)
from ottla.raft.log_view import Memory
from ottla.raft.raft import Raft
from ottla.raft.ready import Leadership, Ready, Reply, Send
from ottla.raft.settings import Node, RaftSettings
from ottla.raft.snapshot import Chunk, SnapshotId
from ottla.wire.apis import BY_KEY
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.world.clock import steady_ms
from ottla.world.disk import NO_DESCRIPTORS, pin_all, unpin_all

_AGAIN_S = 0.1  # how soon a sync that could not begin is tried again

Answered = Callable[[Message | ErrorCode], None]


class Wires(Protocol):
    """How replicas speak to each other."""

    def ask(self, node: Node, request: Message, answered: Answered) -> None:
        """Ask a node; `answered` is called once, in a later turn, with its answer or with why there is none."""
        ...


class Silence:
    """The wires of a quorum of one."""

    def ask(self, node: Node, request: Message, answered: Answered) -> None:
        """There is nobody to ask."""
        raise AssertionError(f"the only voter asks node {node.id}")


class Listener(Protocol):
    """Who is told what Raft has come to."""

    def committed(self, end_offset: int) -> None:
        """All below `end_offset` is committed."""
        ...

    def installed(self, id: SnapshotId) -> None:
        """The log was replaced by this snapshot."""
        ...

    def led(self, leadership: Leadership) -> None:
        """Somebody leads, or nobody any more."""
        ...


class Driver:
    """One replica of the metadata log, at work."""

    def __init__(
        self,
        world: Surroundings,
        settings: RaftSettings,
        log: Log,
        snapshots: Snapshots,
        memory: Memory,
        wires: Wires,
        listener: Listener,
        draw: Callable[[int], int],
        failed: Callable[[OSError], None],
    ) -> None:
        self._world = world
        self._now_ms = steady_ms(world.clock)  # elections must not wait for a wall clock that was set back
        self._log = log
        self._wires = wires
        self._listener = listener
        self._failed = failed
        self._held: list[tuple[int, Send | Reply]] = []
        self._written = 0
        self._syncing = False
        self._stopped = False
        self._is_started = False
        self._alarm: tuple[int, Any] | None = None
        self._appended: bytes | bytearray | None = None  # what stands in the log already
        self._unwritten: Ready | None = None  # what is tried again a moment later (V8)
        self._is_cut = False  # whether, of that, only batches are left to be written
        self._events: deque[Event] = deque()
        self._stepping = False
        self.bytes_written = 0
        self.bugs = Bugs(world.warn)
        self._download = SnapshotDownload(world.disk, snapshots, self.bugs, world.warn)
        self.raft = Raft(settings, DiskView(log, snapshots, world.warn), memory, draw)

    def start(self) -> None:
        """Begin."""
        self.step(Start())
        self._is_started = True

    def start_alone(self) -> None:
        """Begin as the only voter: this node leads when this returns, and what that made it write is on disk."""
        self._syncing = True  # by us, here and now
        self.step(Start())
        self.sync_now()  # it leads by that, and has decided what to write first
        self.sync_now()
        self._syncing = False
        self._is_started = True

    def step(self, event: Event) -> None:
        """Let an event happen. What happens while another is under way comes after it."""
        if self._stopped:
            return
        if self._unwritten is not None and isinstance(event, (Request, Tick)):
            if isinstance(event, Request):
                _refuse(event)
            return
        self._events.append(event)
        self.drain()

    def append(self, data: bytes | bytearray) -> None:
        """Write batches of the leader's state machine at once, for it counts on them; BrokerError if it does not lead.

        It may do so while it is being told that it leads, or what is committed. What follows from it waits for `drain`:
        the state machine has to take in what it wrote before it hears that it is committed.
        """
        if self._stopped:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node is stopping.")
        if not self.raft.is_leader:
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "This node does not lead.")
        self._check_is_written()
        # Before Raft counts on it: a full disk refuses this one decision, and nothing else has changed.
        self._log.append_as_follower(data)
        stepping, self._stepping, self._appended = self._stepping, True, data
        try:
            self._step(Append(data))
        finally:
            self._stepping, self._appended = stepping, None

    def upgrade(self, kraft_version: int, validate_only: bool) -> None:
        """Raise kraft.version at once, as the state machine asks in a decision; BrokerError when it cannot be done."""
        if self._stopped:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node is stopping.")
        self._check_is_written()
        stepping, self._stepping = self._stepping, True
        try:
            self._step(Upgrade(kraft_version, validate_only))
        finally:
            self._stepping = stepping

    def drain(self) -> None:
        """Let happen what has come up during an append."""
        if self._stepping or self._stopped:
            return
        self._stepping = True
        try:
            while self._events and not self._stopped and self._unwritten is None:
                self._step(self._events.popleft())
        finally:
            self._stepping = False
            self._set_alarm()

    def _step(self, event: Event) -> None:
        try:
            ready = self.raft.step(event, self._now_ms())
        except Exception as error:
            if isinstance(event, Request):
                # What the step has changed before is written and said with the next one (V5).
                self.bugs.report(error)
                _refuse(event)
            elif isinstance(event, Response):
                self.bugs.report(error)
                # Whoever sent it is asked again after a moment, like one that did not answer.
                self._events.append(Failure(event.request_id, event.node_id, ErrorCode.UNKNOWN_SERVER_ERROR))
            else:
                raise
            return
        if self._appended is not None:
            ready.append = [data for data in ready.append if data is not self._appended]
            self.bytes_written += len(self._appended)
        self._carry_out(ready)

    def _carry_out(self, ready: Ready) -> None:
        try:
            self._write(ready)
        except (OSError, BrokerError) as error:
            self._not_written(ready, error)
            return
        self._held += [(ready.number, word) for word in ready.send_after_sync]
        for word in ready.send_now:
            self._say(word)
        try:
            if ready.reset_to is not None:
                self._listener.installed(ready.reset_to)
            if ready.committed is not None:
                self._listener.committed(ready.committed)
        except Exception as error:  # V6
            if not self._is_started:
                raise
            self.bugs.report(error)
            self._fail(_broken_off("taking in what is committed", error))
            return
        if ready.leadership is not None:
            self._listener.led(ready.leadership)
        if ready.chunk is not None:
            self._keep(ready.chunk)

    def _not_written(self, ready: Ready, error: OSError | BrokerError) -> None:
        reason = error if isinstance(error, OSError) else error.__cause__
        if not self._may_try_again(reason):
            self._fail(error if isinstance(error, OSError) else OSError(error.message))
            return
        if isinstance(error, OSError):  # the log has reported its own
            self.bugs.report(error)
        assert self._world.call_later is not None
        self._unwritten = ready
        self._world.call_later(_AGAIN_S, self._write_again)

    def _write_again(self) -> None:
        ready, self._unwritten = self._unwritten, None
        if self._stopped or ready is None:
            return
        self._stepping = True
        try:
            self._carry_out(ready)
        finally:
            self._stepping = False
        self.drain()

    def _may_try_again(self, error: BaseException | None) -> bool:
        """Whether an error is our own fault (V8). At a start whoever starts it hears of it."""
        may = isinstance(error, OSError) and is_own_fault(error)
        return may and self._is_started and self._world.call_later is not None

    def _check_is_written(self) -> None:
        if self._unwritten is not None:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "The last write to the metadata log has failed.")

    def stop(self) -> None:
        """Say and write nothing any more."""
        self._stopped = True
        if self._alarm is not None:
            self._alarm[1].cancel()
            self._alarm = None
        self._download.close()

    def sync_now(self) -> None:
        """Sync what is written, here and now: at a start, and at an end."""
        if self._stopped:
            return
        try:
            self._log.sync()
        except OSError as error:
            if self._is_started and is_own_fault(error):
                self.bugs.report(error)
            else:
                self._fail(error)
            return
        self._released(self._written)

    def serve(self, request: Message, version: int, listener: str, reply: Callable[[Message], None]) -> None:
        """Take a request in; `reply` gets the answer, now or later, or never should this node stop."""
        self.step(Request(reply, request, version, listener))

    def forget(self, reply: Callable[[Message], None]) -> None:
        """Take note that whoever would get this reply has gone."""
        self.step(Gone(reply))

    # Writing

    def _write(self, ready: Ready) -> None:
        if not ready.is_to_sync:
            return
        if not self._is_cut:
            self._prepare(ready)
            self._is_cut = True
        while ready.append:
            self._log.append_as_follower(ready.append[0])
            self.bytes_written += len(ready.append.pop(0))
        self._is_cut = False
        self._written = ready.number
        if not self._syncing:
            self._syncing = True
            if self._world.later is None:
                self._sync()
            else:
                self._world.later(self._sync)  # with all that this turn still brings

    def _prepare(self, ready: Ready) -> None:
        """Write what comes before the batches of a step."""
        log = self._log
        if ready.state is not None:
            membership = self.raft.replica.membership
            write_election_state(
                ready.state, self._world.disk, log.path, membership.kraft_version, membership.voters
            )
        if ready.reset_to is not None:
            log.truncate_fully_and_start_at(ready.reset_to.offset)
        if ready.truncate_to is not None:
            log.truncate_to(ready.truncate_to)

    def _sync(self) -> None:
        if self._stopped:
            return
        number, log = self._written, self._log
        end_offset = log.end_offset
        files = log.unsynced()
        try:
            pin_all(files)
        except OSError as error:
            self._not_synced(error)
            return

        def work() -> None:
            for file in files:
                file.sync()

        def done(_: object, error: BaseException | None) -> None:
            try:
                unpin_all(files)
            except OSError as failure:
                error = error or failure
            if self._stopped:
                return
            if error is not None:
                # Whatever broke off, nobody can say what is on the disk, and nothing would ever be committed again.
                self._not_synced(error if isinstance(error, OSError) else _broken_off("a sync", error))
                return
            log.synced(min(end_offset, log.end_offset))
            self._syncing = self._written > number
            if self._syncing:
                self._sync()
            self._released(number)

        self._world.worker.run(work, done)

    def _not_synced(self, error: OSError) -> None:
        self._log.not_synced()
        if error.errno in NO_DESCRIPTORS and self._world.call_later is not None:
            self._world.call_later(_AGAIN_S, self._sync)  # V3
        elif self._may_try_again(error):
            self.bugs.report(error)
            self._world.call_later(_AGAIN_S, self._sync)  # type: ignore[misc]  # V8
        else:
            self._fail(error)

    def _released(self, number: int) -> None:
        leaves = [word for waits_for, word in self._held if waits_for <= number]
        self._held = [each for each in self._held if each[0] > number]
        for word in leaves:
            self._say(word)
        self.step(Synced(number))

    def _fail(self, error: OSError) -> None:
        self.stop()
        self._failed(error)

    # Words

    def _say(self, word: Send | Reply) -> None:
        if isinstance(word, Reply):
            reply: Any = word.token
            reply(word.message)
            return
        request_id, node = word.request_id, word.node

        def answered(answer: Message | ErrorCode) -> None:
            if isinstance(answer, Message):
                self.step(Response(request_id, node.id, answer))
            else:
                self.step(Failure(request_id, node.id, answer))

        self._wires.ask(node, word.message, answered)

    # Time

    def _set_alarm(self) -> None:
        deadline = self.raft.deadline
        if self._stopped or self._world.call_later is None:
            return
        if self._alarm is not None:
            if self._alarm[0] == deadline:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if deadline is not None:
            wait_ms = max(1, deadline - self._now_ms())
            self._alarm = deadline, self._world.call_later(wait_ms / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.step(Tick())

    # Snapshots of others

    def _keep(self, chunk: Chunk) -> None:
        try:
            event = self._download.keep(chunk)
        except OSError as error:
            self._fail(error)
            return
        if event is not None:
            self.step(event)


def _refuse(request: Request) -> None:
    """A peer's request cannot be taken in, by a bug of ours."""
    key = request.message.api_key
    assert key is not None, "only requests are served"
    reply: Any = request.token
    reply(BY_KEY[key].response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))


def _broken_off(what: str, error: BaseException) -> OSError:
    return OSError(errno.EIO, f"{what} broke off, {error!r}")
