"""The driver of the metadata quorum, for a node that is its only voter.

    start(): snapshot --> log --> own epoch (quorum-state, LeaderChange) --> activation --> serving
    submit(): decide --> append --> apply --> sync --> committed --> listeners --> replies

V1  The only voter leads every epoch, and opens a new one at each start, so that no offset is ever written twice under
    the same epoch.
V2  A record is committed once it is on disk here; with more voters it will be once a majority has it, and nothing else
    in this file changes.
V3  Listeners hear of an image before the replies to the commands that made it leave.
V4  No record is written that the log up to it could not be folded with.
V5  After a failed sync nothing is acknowledged any more: what the disk holds is unknown until the node starts anew.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar, cast

from ottla.metadata.delta import Delta
from ottla.metadata.error import MetadataError
from ottla.metadata.feature import KRAFT_VERSION, SUPPORTED, TRANSACTIONS_SINCE
from ottla.metadata.fold import Change, Fold
from ottla.metadata.frame import encode
from ottla.metadata.image import EMPTY, Image
from ottla.quorum.bootstrap import read_bootstrap
from ottla.quorum.checkpoint import frame_batch, grouped
from ottla.quorum.election_state import ElectionState, TornState, read_election_state
from ottla.quorum.metadata_log import LoadedLog, load, log_path
from ottla.quorum.snapshotting import Snapshotting
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.quorum.voters import Voter, Voters
from ottla.replicated.decision import Decision, Machine, Millis
from ottla.replicated.host import Done, Host
from ottla.wire.control import quorum_batch
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.control import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from ottla.wire.records.metadata import BeginTransactionRecord, EndTransactionRecord
from ottla.world.disk import File

RECORDS_PER_BATCH = 10_000
# A stop writes a snapshot when the next start would otherwise have to fold more than this.
CLOSING_SNAPSHOT_BYTES = 1024 * 1024

Listener = Callable[[Delta, Image], None]
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
    """The metadata log, led by this node."""

    def __init__(self, world: Surroundings, settings: QuorumSettings) -> None:
        self._world = world
        self._settings = settings
        self._listeners: list[Listener] = []
        self._unpublished: deque[Change] = deque()
        self._syncing = self._scheduled = False
        self._failure: OSError | None = None
        self._host: Host[M] | None = None
        self._loaded: LoadedLog | None = None
        self._snapshotting: Snapshotting | None = None
        self.voters = settings.voters or Voters({})
        self.kraft_version = 0
        self.epoch = 0
        self.committed_offset = 0
        self.image = EMPTY

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
        """Who leads."""
        return self._settings.node_id

    @property
    def node_id(self) -> int:
        """The id of this node."""
        return self._settings.node_id

    @property
    def machine(self) -> M:
        """The machine this node leads with."""
        assert self._host is not None, "the quorum has not been started"
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

    def listen(self, listener: Listener) -> None:
        """Call `listener(delta, image)` with every committed image, in order; the first delta is the whole image."""
        self._listeners.append(listener)

    def start(self, lead: Callable[[Fold, int], M]) -> None:
        """Load the log, open an epoch, and let `lead(fold, kraft_version)` make the machine to lead with.

        When this returns, the loaded image has been told to the listeners, and everything written is on disk.
        """
        loaded = self._loaded = load(self._world, self._settings, self._fail)
        self.committed_offset = loaded.log.end_offset
        self.kraft_version = loaded.kraft_version
        self._unpublished.extend(loaded.fold.settle())
        _check_features(loaded.fold.image)
        self._snapshotting = Snapshotting(
            self._world, self._settings, loaded.log, loaded.snapshots, loaded.bytes_since_snapshot
        )
        self._publish()
        self._open_epoch(loaded)
        self._host = Host(lead(loaded.fold, self.kraft_version), self)
        bootstrap = read_bootstrap(self._world.disk, self._settings.directory)
        self._host.submit(lambda machine, now: machine.activate(bootstrap, now), _expect_success, self._now())
        self._settle()
        loaded.log.sync()
        self._commit(loaded.log.end_offset)

    def submit(self, decide: Callable[[M, Millis], Decision[R]], done: Done[R]) -> None:
        """Let the controller decide; `done` gets its reply once everything behind it is committed."""
        assert self._host is not None, "the quorum has not been started"
        self._host.submit(decide, done, self._now())
        self._after_append()

    def tick(self) -> None:
        """Let time pass: sessions run out, and a snapshot may be due. Call it about once a second."""
        if self._host is None or self._failure is not None:
            return
        self._host.expire(self._now())
        self._after_append()
        self._snapshot_if_due()

    def close(self) -> None:
        """Make all that was appended durable, and leave the log so that the next start is quick."""
        if self._loaded is None or self._snapshotting is None:
            return
        if self._failure is None:
            self._loaded.log.sync()
            self._commit(self._loaded.log.end_offset)
            if self._snapshotting.bytes_since >= CLOSING_SNAPSHOT_BYTES:
                self._snapshotting.begin(self.image, self.kraft_version, self.voters)
            self._snapshotting.finish()
        if self._host is not None:
            self._host.drop(BrokerError(ErrorCode.NOT_CONTROLLER, "The controller is shutting down."))
        self._loaded.log.close(clean=self._failure is None)

    def append(
        self, records: Sequence[object], now: Millis, transactional: tuple[int, int] | None = None
    ) -> range:
        """Write a decision's records, atomically whatever their number, and return their offsets."""
        assert transactional is None, "metadata belongs to no producer's transaction"
        if self._failure is not None:
            raise _storage_error(self._failure)
        self._check_foldable(records)
        log = self._started.log
        metadata_version = self._appended_image.features.metadata_version
        frames = [encode(record, metadata_version) for record in cast(Sequence[Message], records)]
        first = offset = log.end_offset
        groups = list(grouped(frames, RECORDS_PER_BATCH))
        if len(groups) > 1 and metadata_version >= TRANSACTIONS_SINCE:
            # What one batch cannot hold is made whole by a metadata transaction (KIP-868).
            groups.insert(0, [encode(BeginTransactionRecord(name="Large decision"))])
            groups.append([encode(EndTransactionRecord())])
            first += 1
        data = bytearray()
        for group in groups:
            data += frame_batch(group, base_offset=offset, epoch=self.epoch, timestamp_ms=now)
            offset += len(group)
        log.append(data, self.epoch, now, from_client=False)
        self._note_append(len(data))
        return range(first, first + len(records))

    def _check_foldable(self, records: Sequence[object]) -> None:
        # A record that contradicts the state would stop every start from now on, so it must not reach the log.
        trial = Fold(self._appended_image)
        if self._started.fold.transaction_offset is not None:
            trial.transaction_offset = self._started.fold.transaction_offset
        try:
            for offset, record in enumerate(cast(Sequence[Message], records), self.end_offset):
                trial.apply(offset, record)
        except MetadataError as error:
            raise BrokerError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"The decision contradicts the metadata: {error}"
            ) from error

    @property
    def _appended_image(self) -> Image:
        """The image with everything appended, committed or not."""
        return self._unpublished[-1].image if self._unpublished else self.image

    def _now(self) -> Millis:
        return self._world.clock.now_ms()

    def _open_epoch(self, loaded: LoadedLog) -> None:
        settings, log = self._settings, loaded.log
        path = log_path(settings)
        self.voters, changed = self._find_voters(loaded)
        state = self._read_election_state(path)
        self.epoch = max(state.epoch, log.latest_epoch or 0, loaded.fold.image.epoch, 0) + 1
        ElectionState(self.epoch, settings.node_id).write(
            self._world.disk, path, self.kraft_version, self.voters
        )
        controls: list[LeaderChangeMessage | KRaftVersionRecord | VotersRecord] = [
            self.voters.leader_change(settings.node_id)
        ]
        if changed:
            controls += [KRaftVersionRecord(kraft_version=self.kraft_version), self.voters.record()]
        now = self._now()
        batch = quorum_batch(controls, timestamp_ms=now, base_offset=log.end_offset, leader_epoch=self.epoch)
        log.append(batch, self.epoch, now, from_client=False)
        self._note_append(len(batch))
        loaded.fold.advance(log.end_offset, self.epoch, now)

    def _read_election_state(self, path: str) -> ElectionState:
        try:
            return read_election_state(self._world.disk, path)
        except TornState as error:
            self._world.warn(f"{error}; the epoch is taken from the log, since this node is the only voter")
            return ElectionState()

    def _find_voters(self, loaded: LoadedLog) -> tuple[Voters, bool]:
        """The voters, and whether they have to be written down (again)."""
        settings = self._settings
        if self.kraft_version == 0:
            voters = settings.voters
            if voters is None or not voters.by_id:
                raise MetadataError(
                    f"{settings.directory} names no voters, and neither does controller.quorum.voters; "
                    "a directory is given its voters when it is formatted for a standalone controller"
                )
            changed = False
        else:
            if loaded.voters is None:
                raise MetadataError(
                    f"{loaded.log.path} is of a dynamic quorum, but does not say who its voters are"
                )
            own = Voter(settings.node_id, settings.directory_id, settings.addresses)
            known = loaded.voters.by_id.get(settings.node_id)
            if known is None or known.directory_id != settings.directory_id:
                own_name = f"node {settings.node_id} with this directory"
                raise MetadataError(f"{own_name} is not a voter of the metadata quorum")
            changed = not loaded.voters_in_log or known.addresses != own.addresses
            voters = Voters({**loaded.voters.by_id, settings.node_id: own}) if changed else loaded.voters
        if voters.by_id.keys() != {settings.node_id}:
            named = ", ".join(map(str, sorted(voters.by_id)))
            raise MetadataError(
                f"the metadata quorum has the voters {named}; a quorum of several nodes is not supported yet"
            )
        return voters, changed

    def _note_append(self, size_bytes: int) -> None:
        if self._snapshotting is not None:
            self._snapshotting.bytes_since += size_bytes

    def _settle(self) -> None:
        end_offset = self.end_offset
        if end_offset > self._appended_image.offset + 1:
            self.machine.advance(end_offset, self.epoch, self._now())
            self._unpublished.extend(self.machine.settle())

    def _after_append(self) -> None:
        self._settle()
        log = self._started.log
        if log.end_offset > self.committed_offset and not self._syncing and not self._scheduled:
            self._scheduled = True
            if self._world.later is None:
                self._sync()
            else:
                self._world.later(self._sync)

    def _sync(self) -> None:
        self._scheduled = False
        log = self._started.log
        if self._syncing or self._failure is not None or log.end_offset <= self.committed_offset:
            return
        self._syncing = True
        end_offset = log.end_offset
        files = log.unsynced()
        for file in files:
            file.pins += 1

        def done(_: object, error: BaseException | None) -> None:
            self._syncing = False
            for file in files:
                file.pins -= 1
            if isinstance(error, OSError):
                self._fail(error)
            elif error is not None:
                raise error
            else:
                log.synced(end_offset)
                self._commit(end_offset)
                self._sync()

        self._world.worker.run(lambda: _sync_all(files), done)

    def _commit(self, end_offset: int) -> None:
        if self._failure is not None or end_offset <= self.committed_offset:
            return
        self.committed_offset = end_offset
        self._publish()
        assert self._host is not None
        self._host.commit(end_offset)
        self._snapshot_if_due()

    def _publish(self) -> None:
        while self._unpublished and self._unpublished[0].image.offset < self.committed_offset:
            change = self._unpublished.popleft()
            self.image = change.image
            for listener in self._listeners:
                listener(change.delta, change.image)

    def _snapshot_if_due(self) -> None:
        snapshotting = self._snapshotting
        if snapshotting is not None and snapshotting.is_due():
            snapshotting.begin(self.image, self.kraft_version, self.voters)

    def _fail(self, error: OSError) -> None:
        if self._failure is not None:
            return
        self._failure = error
        if self._host is not None:
            self._host.drop(_storage_error(error))
        self._world.fail(error)


def _sync_all(files: list[File]) -> None:
    for file in files:
        file.sync()


def _check_features(image: Image) -> None:
    for name, level in image.features.all().items():
        low, high = SUPPORTED.get(name, (0, 0))
        if level and not low <= level <= high:
            raise MetadataError(f"the cluster uses {name}={level}; this software supports {low} to {high}")


def _expect_success(outcome: object) -> None:
    if isinstance(outcome, BrokerError):
        raise MetadataError(f"the controller could not take over: {outcome.message or outcome.code.name}")


def _storage_error(error: OSError) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log failed: {error}")
