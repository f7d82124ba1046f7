"""The metadata log of this node, whoever leads it.

    start(): snapshot --> log --> Raft --> committed --> listeners
    submit(): decide --> append --> apply --> (a majority has it) --> committed --> listeners --> replies

V1  Raft says who leads and what is committed (`driver.py`); a quorum of one takes the same way, and has its lead when
    `start` returns.
V2  While this node leads, its machine's own fold makes the images, which are published as they are committed. While it
    does not, committed records are read from the log and folded here.
V3  Listeners hear of an image before the replies to the commands that made it leave.
V4  No record is written that the log up to it could not be folded with.
V5  After a failed sync nothing is acknowledged any more: what the disk holds is unknown until the node starts anew.
V6  A machine whose lead is over is dropped, with all it had not yet committed; the next lead begins with a new one.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

from ottla.metadata.difference import difference
from ottla.metadata.error import MetadataError
from ottla.metadata.feature import KRAFT_VERSION
from ottla.metadata.fold import Change, Fold
from ottla.metadata.image import EMPTY, Image
from ottla.quorum.bootstrap import read_bootstrap
from ottla.quorum.decided import check_features, check_foldable, frame_decision
from ottla.quorum.driver import Driver, Silence, Wires
from ottla.quorum.election_state import TornState, read_election_state
from ottla.quorum.listeners import Listener, Listeners
from ottla.quorum.metadata_log import (
    LoadedLog,
    fold_batches,
    install,
    load,
    log_path,
    not_the_voter,
    outline_of,
    remove_older,
)
from ottla.quorum.snapshotting import Snapshotting
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.raft.election_state import NOBODY, ElectionState
from ottla.raft.event import ShutDown
from ottla.raft.log_view import Memory
from ottla.raft.ready import Leadership
from ottla.raft.snapshot import SnapshotId
from ottla.raft.voters import Voters
from ottla.replicated.decision import Decision, Machine, Millis
from ottla.replicated.host import Done, Host
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.world.clock import steady_ms

# A stop writes a snapshot when the next start would otherwise have to fold more than this.
CLOSING_SNAPSHOT_BYTES = 1024 * 1024

R = TypeVar("R")


class MetadataMachine(Machine[Message], Protocol):
    """The machine on top of the metadata log: it folds records into images, and knows what to write first."""

    def advance(self, end_offset: int, epoch: int, timestamp_ms: int) -> None:
        """Note the end of a batch in the log."""
        ...

    def settle(self) -> list[Change]:
        """The steps from image to image since the last call."""
        ...

    def activate(self, bootstrap: Iterable[Message], now: Millis) -> Decision[None]:
        """Say what to write when taking over; `bootstrap` is only gone through where the log is empty."""
        ...


M = TypeVar("M", bound=MetadataMachine)


class Quorum(Generic[M]):
    """The metadata log. `wires` lead to the other voters; the only one has none."""

    def __init__(self, world: Surroundings, settings: QuorumSettings, wires: Wires | None = None) -> None:
        self._world = world
        self.now_ms = steady_ms(world.clock)  # the time of the machine: for what waits, not for people
        self._settings = settings
        self._wires = wires or Silence()
        self._listeners = Listeners(world.warn)
        self._lead: Callable[[Fold, int], M] | None = None
        self._unpublished: deque[Change] = deque()
        self._failure: OSError | None = None
        self._host: Host[M] | None = None
        self._loaded: LoadedLog | None = None
        self._driver: Driver | None = None
        self._snapshotting: Snapshotting | None = None
        self._fold = Fold()
        self._timer: Any = None
        self._deadline: Millis | None = None
        self._leadership_listeners: list[Callable[[], None]] = []
        self.leadership = Leadership(NOBODY, 0)
        self.committed_offset = 0
        self.image = EMPTY

    # What it knows

    @property
    def end_offset(self) -> int:
        """The offset that the next record will have."""
        return self._started.log.end_offset

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""
        return self._started.log.start_offset

    @property
    def leader_id(self) -> int:
        """Who leads, as far as is known; -1 for nobody."""
        return self.leadership.leader_id

    @property
    def epoch(self) -> int:
        """The epoch of the quorum."""
        return 0 if self._driver is None else self._driver.raft.epoch

    @property
    def voters(self) -> Voters:
        """Who votes."""
        return self._started.membership.voters if self._driver is None else self._driver.raft.voters

    @property
    def kraft_version(self) -> int:
        """Whether voters stand in the log (1) or in the settings (0)."""
        return self._started.membership.kraft_version

    @property
    def node_id(self) -> int:
        """The id of this node."""
        return self._settings.node_id

    @property
    def is_active(self) -> bool:
        """Whether this node leads, and decides."""
        return self._host is not None

    @property
    def machine(self) -> M:
        """The machine this node leads with."""
        assert self._host is not None, "this node does not lead"
        return self._host.machine

    @property
    def failure(self) -> OSError | None:
        """Why nothing is acknowledged any more; None while all is well."""
        return self._failure

    @property
    def finalized_features(self) -> dict[str, int]:
        """Every finalized feature, kraft.version among them."""
        levels = self.image.features.all()
        return levels | {KRAFT_VERSION: self.kraft_version} if self.kraft_version else levels

    @property
    def statistics(self) -> dict[str, int]:
        """Numbers for the metrics page."""
        snapshotting = self._snapshotting
        return {
            "end_offset": self.end_offset,
            "committed_offset": self.committed_offset,
            "epoch": self.epoch,
            "waiting": self._host.waiting if self._host is not None else 0,
            "snapshots_taken": snapshotting.taken if snapshotting is not None else 0,
            "bytes_since_snapshot": snapshotting.bytes_since if snapshotting is not None else 0,
            "size_bytes": self._started.log.size_bytes,
        }

    @property
    def _started(self) -> LoadedLog:
        assert self._loaded is not None, "the quorum has not been started"
        return self._loaded

    @property
    def driver(self) -> Driver:
        """What runs Raft."""
        assert self._driver is not None, "the quorum has not been started"
        return self._driver

    def listen(self, listener: Listener) -> None:
        """Call `listener(delta, image)` with every committed image, in order; the first delta is the whole image."""
        self._listeners.add(listener)

    def on_leadership(self, listener: Callable[[], None]) -> None:
        """Call back whenever somebody leads, or nobody any more."""
        self._leadership_listeners.append(listener)

    # Life

    def start(self, lead: Callable[[Fold, int], M]) -> None:
        """Load the log and take part in the quorum; `lead(fold, kraft_version)` makes the machine to lead with.

        The only voter leads when this returns: the image has been told to the listeners, and all is on disk.
        """
        loaded = self._loaded = load(self._world, self._settings, self._fail)
        self._lead = lead
        self._fold = loaded.fold
        self.committed_offset = max(loaded.fold.end_offset, 0)
        raft = self._settings.raft()
        alone = loaded.membership.voters.is_only(raft.key)
        others = loaded.membership.voters.by_id.keys() - {self.node_id}
        if not alone and (isinstance(self._wires, Silence) or not (others or raft.bootstrap)):
            raise not_the_voter(loaded, self._settings)
        self._publish_all(loaded.fold.settle())
        memory = Memory(self._read_election_state(loaded, alone), outline_of(loaded), loaded.membership)
        driver = self._driver = Driver(
            self._world,
            raft,
            loaded.log,
            loaded.snapshots,
            memory,
            self._wires,
            self,
            self._world.draw,
            self._fail,
        )
        self._snapshotting = Snapshotting(
            self._world,
            self._settings,
            loaded.log,
            loaded.snapshots,
            driver.step,
        )
        if alone:
            driver.start_alone()
        else:
            driver.start()
        self._listeners.is_started = True

    def _read_election_state(self, loaded: LoadedLog, alone: bool) -> ElectionState:
        try:
            state = read_election_state(self._world.disk, log_path(self._settings))
        except TornState as error:
            if not alone:
                raise
            self._world.warn(f"{error}; the epoch is taken from the log, since this node is the only voter")
            state = ElectionState()
        latest = max(loaded.log.latest_epoch or 0, loaded.fold.image.epoch, 0)
        return state if state.epoch >= latest else ElectionState(latest)

    def submit(self, decide: Callable[[M, Millis], Decision[R]], done: Done[R]) -> None:
        """Let the controller decide; `done` gets its reply once everything behind it is committed."""
        host = self._host
        if host is None:
            error = self._failure
            done(_not_controller() if error is None else _storage_error(error))
            return
        host.submit(decide, done, self.now_ms())
        self._after_append()

    def tick(self) -> None:
        """Let time pass: sessions run out, and a snapshot may be due. Call it about once a second."""
        if self._failure is not None or self._driver is None:
            return
        if self._host is not None:
            self._host.expire(self.now_ms())
            self._after_append()
        self._snapshot_if_due()

    def hand_over(self, timeout_ms: int) -> None:
        """Give up the lead, if it is here, before a stop."""
        self.driver.step(ShutDown(timeout_ms))

    def serve(self, request: Message, version: int, listener: str, reply: Callable[[Message], None]) -> None:
        """Take a request of another replica, or about them, in."""
        self.driver.serve(request, version, listener, reply)

    def forget(self, reply: Callable[[Message], None]) -> None:
        """Whoever would get this reply has gone: what it asked for waits no longer."""
        self.driver.forget(reply)

    def close(self) -> None:
        """Make all that was appended durable, and leave the log so that the next start is quick."""
        if self._loaded is None or self._snapshotting is None or self._driver is None:
            return
        if self._failure is None:
            self._driver.sync_now()
        self._driver.stop()
        if self._timer is not None:
            self._timer.cancel()
        if self._failure is None:
            if self._snapshotting.bytes_since >= CLOSING_SNAPSHOT_BYTES:
                self._begin_snapshot(self._snapshotting)
            self._snapshotting.finish()
        if self._host is not None:
            self._host.drop(BrokerError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down."))
            self._host = None
        self._loaded.log.close(clean=self._failure is None)

    # The leader's journal

    def append(
        self, records: Sequence[object], now: Millis, transactional: tuple[int, int] | None = None
    ) -> range:
        """Write a decision's records, atomically whatever their number, and return their offsets."""
        assert transactional is None, "metadata belongs to no producer's transaction"
        if self._failure is not None:
            raise _storage_error(self._failure)
        check_foldable(
            self._appended_image,
            self._fold.transaction_offset,
            self.end_offset,
            cast(Sequence[Message], records),
        )
        data, first = frame_decision(
            cast(Sequence[Message], records),
            self._appended_image.features.metadata_version,
            self.end_offset,
            self.epoch,
            self._world.clock.now_ms(),
        )
        self.driver.append(data)
        if self._failure is not None:
            raise _storage_error(self._failure)
        self._note_bytes(len(data))
        return range(first, first + len(records))

    @property
    def _appended_image(self) -> Image:
        """The image with everything appended, committed or not."""
        return self._unpublished[-1].image if self._unpublished else self.image

    def _note_bytes(self, size_bytes: int) -> None:
        if self._snapshotting is not None:
            self._snapshotting.bytes_since += size_bytes

    def _after_append(self) -> None:
        if self._host is None:
            return
        end_offset = self.end_offset
        if end_offset > self._appended_image.offset + 1:
            self.machine.advance(end_offset, self.epoch, self._world.clock.now_ms())
            self._unpublished.extend(self.machine.settle())
        self.driver.drain()
        self._arm()

    def _arm(self) -> None:
        """Have the machine called when it next waits for time."""
        call_later = self._world.call_later
        deadline = None if self._host is None else self._host.machine.deadline
        if call_later is None or deadline == self._deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._deadline = deadline
        if deadline is not None:
            self._timer = call_later(max(1, deadline - self.now_ms()) / 1000, self._ring)

    def _ring(self) -> None:
        self._timer = self._deadline = None
        self.tick()
        self._arm()

    # What Raft tells

    def committed(self, end_offset: int) -> None:
        """All below `end_offset` is committed: publish it, then let the replies out."""
        if self._failure is not None or end_offset <= self.committed_offset:
            return
        self.committed_offset = end_offset
        if self._host is None:
            self._note_bytes(fold_batches(self._started.log, self._fold, end_offset))
            self._publish_all(self._fold.settle())
        else:
            while self._unpublished and self._unpublished[0].image.offset < end_offset:
                self._publish(self._unpublished.popleft())
            self._host.commit(end_offset)
        self._snapshot_if_due()

    def installed(self, id: SnapshotId) -> None:
        """A snapshot of the leader's has overtaken the log: go on from what it says."""
        self._fold = install(self._started, id)
        self.committed_offset = id.offset
        self._publish(Change(difference(self.image, self._fold.image), self._fold.image))
        remove_older(self._started, id, self._world.warn)

    def led(self, leadership: Leadership) -> None:
        """Somebody leads, or nobody any more: take the lead up, or lay it down."""
        self.leadership = leadership
        if self._host is not None:
            host, self._host = self._host, None
            self._unpublished.clear()
            self._fold = Fold(self.image)
            host.drop(_not_controller())
            self._arm()
        if leadership.leader_id == self.node_id:
            self._take_over()
        for listener in self._leadership_listeners:
            listener()

    def _take_over(self) -> None:
        assert self._lead is not None
        # Raft says so once something of this epoch is committed, and with it all that was before.
        self._note_bytes(fold_batches(self._started.log, self._fold, self.end_offset))
        self._publish_all(self._fold.settle())
        check_features(self._fold.image)
        self._host = Host(self._lead(self._fold, self.kraft_version), self)
        bootstrap = read_bootstrap(self._world.disk, self._settings.directory)
        self._host.submit(lambda machine, now: machine.activate(bootstrap, now), _expect_success, self.now_ms())
        self._after_append()

    def _publish_all(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._publish(change)

    def _publish(self, change: Change) -> None:
        self.image = change.image
        self._listeners.tell(change)

    def _snapshot_if_due(self) -> None:
        snapshotting = self._snapshotting
        if snapshotting is not None and snapshotting.is_due():
            self._begin_snapshot(snapshotting)

    def _begin_snapshot(self, snapshotting: Snapshotting) -> None:
        kraft_version, voters = self._started.membership.at(self.image.offset)
        snapshotting.begin(self.image, kraft_version, voters)

    def _fail(self, error: OSError) -> None:
        if self._failure is not None:
            return
        self._failure = error
        if self._driver is not None:
            self._driver.stop()
        if self._host is not None:
            self._host.drop(_storage_error(error))
            self._host = None
        self._world.fail(error)


def _not_controller() -> BrokerError:
    return BrokerError(ErrorCode.NOT_CONTROLLER, "This node is not the active controller.")


def _expect_success(outcome: object) -> None:
    if isinstance(outcome, BrokerError):
        raise MetadataError(f"the controller could not take over: {outcome.message or outcome.code.name}")


def _storage_error(error: OSError) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {error}")
