"""Heartbeats: a broker says that it lives and what it wants, and hears what it may.

    (absent) --register()--> FENCED --heartbeat()--> UNFENCED --heartbeat(want_shut_down)--> LEAVING
                                ^                       |                                       |
                                +------ expire() -------+---- GONE <------ heartbeat() ---------+

H1  A broker leaves the fence once it has applied its own registration.
H2  A broker that leads something and wants to stop hands it over first (LEAVING), a piece a heartbeat if that is much,
    and may go when every active broker knows. One that leads nothing may go at once.
"""

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.controller import fencing
from ottla.controller.progress import Progress
from ottla.controller.session import Sessions
from ottla.controller.view import View
from ottla.metadata.registration import Broker
from ottla.replicated.decision import Decision, Millis
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from ottla.wire.message import Message


class Standing(enum.Enum):
    """How a broker stands with the controller."""

    FENCED = "leads nothing, and is not shown to clients"
    UNFENCED = "in service"
    LEAVING = "has handed its partitions over, and waits until all know"
    GONE = "may stop now"


OUT = frozenset({Standing.FENCED, Standing.GONE})


def heartbeat(
    view: View, sessions: Sessions, progress: Progress, request: BrokerHeartbeatRequest, now: Millis
) -> Decision[BrokerHeartbeatResponse]:
    """Keep a broker's session, and move it from one standing to the next as it wishes and may."""
    broker_id, offset = request.broker_id, request.current_metadata_offset
    view.check_epoch(broker_id, request.broker_epoch)
    broker = view.image.brokers[broker_id]
    caught_up = progress.is_caught_up(broker_id, offset)
    current = standing(broker)
    left = fencing.shutdown_step(view, broker) if current is Standing.LEAVING else []
    following = next_standing(
        current,
        request,
        caught_up=caught_up,
        leads=lambda: bool(left) or fencing.leads_any(view, broker_id),
        may_leave=lambda: progress.may_leave(broker_id, view.image.brokers),
    )
    gone = fencing.newly_offline(view, broker, request.offline_log_dirs)
    if gone and current is Standing.FENCED and following is Standing.UNFENCED:
        following = current  # until the loss is recorded: it must not lead what lies there
    records: list[Message] = []
    if following is Standing.UNFENCED and current is Standing.FENCED:
        records += fencing.unfence(view, broker)
    elif following is Standing.LEAVING:
        records += left if current is Standing.LEAVING else fencing.shutdown_step(view, broker)
    elif following in OUT and not broker.fenced:
        records += fencing.fence(view, broker)
    if gone:
        leaving = bool(left) or (current is Standing.UNFENCED and following is not current)
        records += fencing.lose_directories(view, broker, gone, leaving=leaving)
    records += fencing.cordon(view, broker, request.cordoned_log_dirs)
    progress.applied(broker_id, offset)
    if following is Standing.GONE:
        sessions.remove(broker_id)  # its successor need not wait
    else:
        sessions.touch(broker_id, now)
    reply = BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=following in OUT,
        should_shut_down=following is Standing.GONE,
    )
    return Decision(reply, tuple(records))


def standing(broker: Broker) -> Standing:
    """How a registered broker stands."""
    if broker.fenced:
        return Standing.FENCED
    return Standing.LEAVING if broker.in_controlled_shutdown else Standing.UNFENCED


def next_standing(
    current: Standing,
    request: BrokerHeartbeatRequest,
    *,
    caught_up: bool,
    leads: Callable[[], bool],
    may_leave: Callable[[], bool],
) -> Standing:
    """How a broker stands after its heartbeat."""
    if current is Standing.LEAVING:
        return Standing.LEAVING if leads() or not may_leave() else Standing.GONE
    if current is Standing.FENCED:
        if request.want_shut_down:
            return Standing.GONE
        return Standing.UNFENCED if caught_up and not request.want_fence else Standing.FENCED
    if request.want_fence:
        return Standing.GONE if request.want_shut_down else Standing.FENCED
    if request.want_shut_down:
        return Standing.LEAVING if leads() else Standing.GONE
    return Standing.UNFENCED
