"""A workshop for the quorum: real files, a clock one sets, and a worker that works when told."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.controller.controller import Controller
from ottla.log.identity import read_identity
from ottla.metadata.delta import Delta
from ottla.metadata.fold import Fold
from ottla.metadata.image import Image
from ottla.metadata.settings.layers import BrokerValues
from ottla.quorum.driver import Answered, Wires
from ottla.quorum.quorum import Quorum
from ottla.quorum.storage import Format, format_storage
from ottla.quorum.surroundings import QuorumSettings, Surroundings
from ottla.raft.settings import Node
from ottla.raft.voters import Address, Voter, Voters
from ottla.wire.message import Message
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.world.disk import RealDisk, RealFile
from ottla.world.entropy import SeededEntropy
from ottla.world.worker import InlineWorker

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
ADDRESS = Address("CONTROLLER", "127.0.0.1", 9093)


class SetClock:
    """A clock that stands still until moved; `ahead_ms` is by how much its wall clock was set."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return self.ms + self.ahead_ms

    def monotonic(self) -> float:
        return self.ms / 1000


class HeldWorker:
    """A worker that keeps what it is given until `work` is called."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]] = []

    def run(self, work: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.jobs.append((work, done))

    def stop(self) -> None:
        pass

    def work(self, error: BaseException | None = None) -> None:
        """Do the oldest job, or let it fail."""
        job, done = self.jobs.pop(0)
        if error is not None:
            done(None, error)
        else:
            done(job(), None)


class FullDisk(RealDisk):
    """A disk on which appends fail while it is full."""

    full = False

    def open(self, path: str, *, create: bool = True, size: int | None = None) -> RealFile:
        file = super().open(path, create=create, size=size)
        disk = self

        class Guarded(RealFile):
            __slots__ = ()

            def append(self, data: Any) -> None:
                if disk.full:
                    raise OSError(errno.ENOSPC, "No space left on device")
                super().append(data)

        return Guarded(file.path, file.size)


class Deaf:
    """Wires at whose other ends nobody answers."""

    def ask(self, node: Node, request: Message, answered: Answered) -> None:
        pass


class Workshop:
    """One node's directory, and the quorum on it; `reopen` starts it again as after a stop or a crash."""

    def __init__(
        self, path: Path, *, static: bool = False, address: Address = ADDRESS, **settings: Any
    ) -> None:
        self.directory = str(path / "data")
        self.clock = SetClock()
        self.disk = FullDisk()
        self.entropy = SeededEntropy(3)
        self.worker: InlineWorker | HeldWorker = InlineWorker()
        self.warnings: list[str] = []
        self.failures: list[OSError] = []
        self.heard: list[tuple[Delta, Image]] = []
        self.settings = settings
        self.wires: Wires | None = None
        self.call_later: Callable[[float, Callable[[], object]], Any] | None = None
        self.voters = Voters.of([Voter(1, addresses=(address,))]) if static else None
        wish = Format(CLUSTER_ID, 1, [self.directory], self.directory, () if static else (address,))
        format_storage(self.disk, self.clock, self.entropy, wish)
        self.quorum = self._open(address)

    def _open(self, address: Address = ADDRESS) -> Quorum[Controller]:
        identity = read_identity(self.disk, self.directory)
        assert identity is not None
        self.heard = []
        quorum: Quorum[Controller] = Quorum(
            Surroundings(
                self.disk,
                self.clock,
                self.worker,
                None,
                self.warnings.append,
                self.failures.append,
                self.call_later,
            ),
            QuorumSettings(
                1, self.directory, identity.directory_id, (address,), self.voters, **self.settings
            ),
            self.wires,
        )
        quorum.listen(lambda delta, image: self.heard.append((delta, image)))
        quorum.start(self._lead)
        return quorum

    def reopen(self, *, close: bool = True, address: Address = ADDRESS) -> None:
        if close:
            self.quorum.close()
        self.quorum = self._open(address)

    def _lead(self, fold: Fold, kraft_version: int) -> Controller:
        return Controller(
            fold,
            node_id=1,
            cluster_id=CLUSTER_ID,
            values=BrokerValues({"node.id": "1", "process.roles": "broker,controller"}),
            entropy=self.entropy,
            kraft_version=kraft_version,
            now=self.clock.now_ms(),
        )

    @property
    def log_path(self) -> Path:
        return Path(self.directory) / "__cluster_metadata-0"

    def join(self) -> None:
        """Register the node as a broker, and unfence it."""
        identity = read_identity(self.disk, self.directory)
        assert identity is not None
        request = BrokerRegistrationRequest(
            broker_id=1,
            cluster_id=CLUSTER_ID,
            incarnation_id=self.entropy.uuid(),
            features=[
                BrokerRegistrationRequest.Feature(name=name, max_supported_version=99)
                for name in self.quorum.finalized_features
            ],
            rack=None,
            log_dirs=[identity.directory_id],
        )
        self.quorum.submit(lambda controller, now: controller.register_broker(request, now), _expect)
        self.quorum.submit(
            lambda controller, now: controller.heartbeat(
                BrokerHeartbeatRequest(
                    broker_id=1,
                    broker_epoch=controller.image.brokers[1].epoch,
                    current_metadata_offset=controller.end_offset,
                ),
                now,
            ),
            _expect,
        )

    def create(self, *names: str, partitions: int = 1) -> list[object]:
        """Ask for topics; the list fills with the reply when it comes."""
        replies: list[object] = []
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
                for name in names
            ]
        )

        def done(reply: object) -> None:
            if isinstance(reply, CreateTopicsResponse):
                replies.extend(each.error_code for each in reply.topics)
            else:
                replies.append(reply)

        self.quorum.submit(lambda controller, now: controller.create_topics(request, now), done)
        return replies


def _expect(reply: object) -> None:
    assert not isinstance(reply, Exception), reply
