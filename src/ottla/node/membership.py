"""How this node belongs to its cluster: it registers, beats, leaves the fence, and takes its leave.

M1  A registration is tried until a controller accepts it; what no trying again can mend ends the start.
M2  A broker beats from its registration on. It asks to leave the fence once it has followed the metadata up to its own
    registration, so whoever it serves finds everything that was there before.
M3  One beat is under way at a time; the next goes out an interval after the last went out, however long that took, and
    at once when a connection was lost.
M4  A stop is announced: the broker beats until the controller has moved its leaderships away, or patience ends; sooner
    when no controller answers, since the last nodes of a cluster that stops have none.

    start() --> REGISTERING --accepted--> FENCED --caught up, beat--> RUNNING --leave()--> LEAVING --> gone
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ottla.broker.broker import Timers
from ottla.broker.controller_line import ControllerLine
from ottla.metadata.feature import SUPPORTED
from ottla.node.endpoint import Endpoint
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

_AGAIN_S = 0.05
_SILENCE_S = 1.5
# What a controller refuses for good; anything else passes.
_FINAL = frozenset(
    {
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)

Refused = Callable[[BrokerError], None]


class Standing(Protocol):
    """What the membership has to know of the node."""

    @property
    def metadata_offset(self) -> int:
        """How far the metadata has been followed: the last offset."""
        ...

    @property
    def offline_directories(self) -> list[bytes]:
        """Ids of the directories that failed."""
        ...

    @property
    def cordoned_directories(self) -> list[bytes] | None:
        """Ids of the directories that take no new partitions; None before this broker knows its own settings."""
        ...


def controller_registration(
    node_id: int, incarnation_id: bytes, endpoints: Sequence[Endpoint]
) -> ControllerRegistrationRequest:
    """Where a controller listens, and what it supports."""
    return ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        listeners=[
            ControllerRegistrationRequest.Listener(
                name=each.name, host=each.host, port=each.port, security_protocol=each.protocol
            )
            for each in endpoints
        ],
        features=[
            ControllerRegistrationRequest.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED.items()
        ],
    )


def broker_registration(
    node_id: int,
    cluster_id: str,
    incarnation_id: bytes,
    endpoints: Sequence[Endpoint],
    rack: str | None,
    directory_ids: list[bytes],
    previous_epoch: int,
) -> BrokerRegistrationRequest:
    """Where a broker listens, what it supports, and what it holds."""
    return BrokerRegistrationRequest(
        broker_id=node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            BrokerRegistrationRequest.Listener(
                name=each.name, host=each.host, port=each.port, security_protocol=each.protocol
            )
            for each in endpoints
        ],
        features=[
            BrokerRegistrationRequest.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED.items()
        ],
        rack=rack,
        log_dirs=sorted(directory_ids),
        previous_broker_epoch=previous_epoch,
    )


def register_controller(
    line: ControllerLine, timers: Timers, request: ControllerRegistrationRequest, refused: Refused
) -> None:
    """Tell the cluster about this controller, until somebody has heard it."""

    def send() -> None:
        line.ask(request, ControllerRegistrationResponse, answered)

    def answered(answer: ControllerRegistrationResponse | Exception) -> None:
        if isinstance(answer, Exception) or (answer.error_code and answer.error_code not in _FINAL):
            timers.call_later(_AGAIN_S, send)
        elif answer.error_code:
            refused(BrokerError(ErrorCode(answer.error_code), answer.error_message))

    send()


class Membership:
    """One broker's seat in the cluster."""

    def __init__(
        self,
        line: ControllerLine,
        timers: Timers,
        registration: BrokerRegistrationRequest,
        standing: Standing,
        interval_ms: Callable[[], int],
        refused: Refused,
    ) -> None:
        self._line = line
        self._timers = timers
        self._registration = registration
        self._standing = standing
        self._interval_ms = interval_ms
        self._refused = refused
        self._beating = False
        self._timer: Any = None
        self._leaving: asyncio.Event | None = None
        self._silence: Any = None
        self._stopped = False
        self.epoch = -1
        self.is_fenced = True

    def start(self) -> None:
        """Register, and beat from then on."""
        self._line.ask(self._registration, BrokerRegistrationResponse, self._registered)

    def _registered(self, answer: BrokerRegistrationResponse | Exception) -> None:
        if self._stopped:
            return
        if isinstance(answer, Exception) or (answer.error_code and answer.error_code not in _FINAL):
            self._timers.call_later(_AGAIN_S, self.start)
        elif answer.error_code:
            self._refused(BrokerError(ErrorCode(answer.error_code)))
        else:
            self.epoch = answer.broker_epoch
            self.beat()

    def beat(self) -> None:
        """Beat now, unless a beat is under way."""
        if self._beating or self._stopped or self.epoch < 0:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.call_later(self._interval_ms() / 1000, self._due)
        request = BrokerHeartbeatRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._standing.metadata_offset,
            want_fence=False,
            want_shut_down=self._leaving is not None,
            offline_log_dirs=self._standing.offline_directories,
            cordoned_log_dirs=self._standing.cordoned_directories,
        )
        self._beating = True
        self._line.ask(request, BrokerHeartbeatResponse, self._answered)

    def _due(self) -> None:
        self._timer = None
        self.beat()

    def _answered(self, answer: BrokerHeartbeatResponse | Exception) -> None:
        self._beating = False
        if self._stopped:
            return
        if isinstance(answer, Exception) or answer.error_code:
            if not isinstance(answer, Exception) and answer.error_code == ErrorCode.STALE_BROKER_EPOCH:
                # Somebody else has our seat, or the controller forgot it: take it anew.
                self.epoch = -1
                self._timers.call_later(_AGAIN_S, self.start)
                return
            self._soon()
            return
        self.is_fenced = answer.is_fenced
        if self._leaving is not None:
            if answer.should_shut_down:
                self._leaving.set()
            else:
                self._listen(self._leaving)
                self._soon()
        elif answer.is_fenced:
            self._soon()  # until it has caught up
        elif self._timer is None:
            self.beat()

    def _soon(self) -> None:
        self._timers.call_later(_AGAIN_S, self.beat)

    async def leave(self, patience_s: float) -> None:
        """Have the controller move our leaderships away, before a stop."""
        if self.epoch < 0 or self._stopped:
            return
        self._leaving = asyncio.Event()
        self._listen(self._leaving)
        self.beat()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._leaving.wait(), patience_s)
        self._silence.cancel()

    def _listen(self, leaving: asyncio.Event) -> None:
        """Give up when nothing is heard of a controller for a while, from now on."""
        if self._silence is not None:
            self._silence.cancel()
        self._silence = self._timers.call_later(_SILENCE_S, leaving.set)

    def stop(self) -> None:
        """Beat no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
