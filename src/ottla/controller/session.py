"""Sessions: who is alive, as far as this controller can hear. They live with it and are not recorded.

    expect(), touch() --> HEARD --disconnected()--> CLOSED --touch()--> HEARD
                            |                         |
                            +-------- stale() --------+--> fenced by the controller, and forgotten

S1  Silence ends a session after `silence_ms`, or after four times the pace at which the broker is used to speak if that
    is longer; never after more than `session_ms`. A broker earns the short wait by heartbeats that come often, so one
    that is slow by its settings (Apache Kafka's default is one in two seconds) or by its load is waited for.
S2  A closed connection ends it sooner: `grace_ms` after the close, and after the next heartbeat was due. One whose host
    refuses a new connection to it ends it at once: there is no process that could speak.
S3  Only time in which the controller listened counts (`attention.py`). After a stall everybody has a whole session,
    and for `silence_ms` no close counts: whoever gave up on a controller that did not answer has closed as well.
S4  When nobody is heard, and there are two or more to hear, the fault is more likely here than with all of them:
    silence is then borne for `session_ms`.
S5  The controller's own node has no session: they stop together. A new controller, and a new broker, begin with the
    pace of `broker.heartbeat.interval.ms`. The last controller has fallen silent before and speaks at once if it lives,
    so it is waited for as one that speaks often.
S6  A broker that only an earlier controller has heard keeps its seat from another process for a beat, no longer:
    whoever lives hears of the new controller and speaks at once. After a start of all nodes those that went down last
    are still in service by the metadata, and would keep themselves out until they are missed.
S7  An operator who raises `broker.session.timeout.ms` above its default asks for patience, and has it: neither silence
    nor a close nor a refused connection ends a session before that, unless the setting for it says so by itself.
"""

from dataclasses import dataclass

from ottla.controller.attention import PULSE_MS, Attention
from ottla.metadata.settings.broker import BROKER
from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.decision import Millis

BEATS_MISSED = 4
BEAT_MS = 500
_SESSION, _SILENCE = "broker.session.timeout.ms", "ottla.broker.silence.ms"
_GRACE, _PACE = "ottla.broker.disconnect.grace.ms", "broker.heartbeat.interval.ms"
# In this time of regular heartbeats most of a slower pace is forgotten.
LEARNING_MS = 4_000


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a broker is waited for."""

    session_ms: int  # broker.session.timeout.ms
    silence_ms: int  # ottla.broker.silence.ms
    grace_ms: int  # ottla.broker.disconnect.grace.ms
    pace_ms: int  # broker.heartbeat.interval.ms

    @classmethod
    def from_settings(cls, values: BrokerValues) -> "Patience":
        """How long to wait by the settings in force (S7)."""

        def shorter(name: str) -> int:
            own: int = values[name]
            return own if not is_raised(values) or values.is_set(name) else values[_SESSION]

        return cls(values[_SESSION], shorter(_SILENCE), shorter(_GRACE), values[_PACE])

    @property
    def seat_ms(self) -> int:
        """How long a broker that nobody has heard keeps its seat from another process (S6)."""
        return min(self.silence_ms // BEATS_MISSED, BEAT_MS)


def is_raised(values: BrokerValues) -> bool:
    """Whether an operator asks for more patience than the default."""
    default = BROKER[_SESSION].default_value
    assert isinstance(default, int)
    raised: bool = values[_SESSION] > default
    return raised


def warnings(values: BrokerValues) -> list[str]:
    """What an operator has to be told who raised the session and set what ends it sooner."""
    if not is_raised(values):
        return []
    return [
        f"{name}={values[name]} ends a broker's session before {_SESSION}={values[_SESSION]} does"
        for name in (_SILENCE, _GRACE)
        if values.is_set(name) and values[name] < values[_SESSION]
    ]


class _Session:
    __slots__ = ("closed_ms", "expected_ms", "heard_ms", "is_replaced", "pace_ms", "refuses")

    def __init__(self, heard_ms: int, pace_ms: int) -> None:
        self.heard_ms = heard_ms
        self.expected_ms: int | None = None  # since when; None once it was heard
        self.pace_ms = pace_ms  # the longest wait between two heartbeats of late
        self.closed_ms: int | None = None
        self.refuses = False
        self.is_replaced = False


class Sessions:
    """The session of every broker that was heard from."""

    __slots__ = ("_attention", "_by_broker", "_look_ms", "_node_id", "_patience")

    def __init__(self, node_id: int, patience: Patience, now: Millis) -> None:
        self._node_id = node_id
        self._patience = patience
        self._attention = Attention(now)
        self._by_broker: dict[int, _Session] = {}
        self._look_ms = now

    @property
    def deadline(self) -> Millis | None:
        """When to look next; None while there is nobody to look for."""
        return self._look_ms if self._by_broker else None

    def expect(self, broker_id: int, now: Millis) -> None:
        """Begin to listen for a broker that another controller has heard: its next heartbeat is due now."""
        if broker_id != self._node_id:
            listened_ms = self._attention.listen(now)
            session = self._begin(broker_id, listened_ms - self._patience.pace_ms, now)
            session.expected_ms = listened_ms

    def touch(self, broker_id: int, now: Millis) -> None:
        """Note that a broker was heard from."""
        if broker_id == self._node_id:
            return
        heard_ms = self._attention.listen(now)
        # A clock that was set back must not put the next look off for as long.
        self._look_ms = min(self._look_ms, now + PULSE_MS)
        session = self._by_broker.get(broker_id)
        if session is None:
            self._begin(broker_id, heard_ms, now)
            return
        gap_ms = heard_ms - session.heard_ms
        session.pace_ms = max(gap_ms, session.pace_ms - session.pace_ms * gap_ms // LEARNING_MS)
        session.heard_ms = heard_ms
        session.expected_ms = session.closed_ms = None
        session.refuses = session.is_replaced = False

    def disconnected(self, broker_id: int, now: Millis, *, refused: bool = False) -> None:
        """Note that the connection on which a broker was heard has closed; `refused`, that nobody listens there."""
        listened_ms = self._attention.listen(now)
        session = self._by_broker.get(broker_id)
        if session is None:
            return
        if session.closed_ms is None:
            session.closed_ms = listened_ms
        if refused:
            session.refuses = True
            self._look_ms = min(self._look_ms, now)

    def replaced(self, broker_id: int, now: Millis) -> None:
        """Note that another process has come in a broker's place, which need not be waited for any more."""
        self.disconnected(broker_id, now, refused=True)
        session = self._by_broker.get(broker_id)
        if session is not None:
            session.is_replaced = True

    def doubt(self, broker_id: int, now: Millis) -> None:
        """Expect a broker to speak often, from now on: it was the last controller, and fell silent as that."""
        listened_ms = self._attention.listen(now)
        session = self._by_broker.get(broker_id)
        if session is not None:
            session.heard_ms = max(session.heard_ms, listened_ms)
            session.pace_ms = min(session.pace_ms, self._patience.silence_ms // BEATS_MISSED)

    def remove(self, broker_id: int) -> None:
        """Forget a broker."""
        self._by_broker.pop(broker_id, None)

    def knows(self, broker_id: int) -> bool:
        """True when a broker is listened for."""
        return broker_id in self._by_broker

    def is_live(self, broker_id: int, now: Millis) -> bool:
        """True while a broker's session lasts and its connection stands."""
        listened_ms = self._attention.listen(now)
        session = self._by_broker.get(broker_id)
        if session is None or session.closed_ms is not None:
            return False
        if session.expected_ms is not None:  # S6
            return listened_ms < session.expected_ms + self._patience.seat_ms
        return listened_ms < self._due_ms(session, alone=self._hears_nobody())

    def stale(self, now: Millis) -> int | None:
        """A broker whose session ran out, the one longest due first; None when there is none."""
        listened_ms = self._attention.listen(now)
        alone = self._hears_nobody()
        due = {broker: self._due_ms(session, alone=alone) for broker, session in self._by_broker.items()}
        first = min(due, key=due.__getitem__, default=None)
        if first is None or due[first] > listened_ms:
            self._look_ms = now + PULSE_MS
            return None
        self._look_ms = now
        return first

    def _begin(self, broker_id: int, heard_ms: int, now: Millis) -> _Session:
        if not self._by_broker:
            self._look_ms = now + PULSE_MS
        session = self._by_broker[broker_id] = _Session(heard_ms, self._patience.pace_ms)
        return session

    def _due_ms(self, session: _Session, *, alone: bool) -> int:
        patience, resumed_ms = self._patience, self._attention.resumed_ms
        heard_ms = max(session.heard_ms, resumed_ms)
        wait_ms = min(patience.session_ms, max(patience.silence_ms, BEATS_MISSED * session.pace_ms))
        if alone:
            wait_ms = patience.session_ms
        due_ms = heard_ms + wait_ms
        closed_ms = session.closed_ms
        if session.is_replaced and closed_ms is not None:
            return min(due_ms, closed_ms)
        if closed_ms is None or closed_ms < resumed_ms + patience.silence_ms:
            return due_ms
        if session.refuses and patience.grace_ms < patience.session_ms:
            return min(due_ms, closed_ms)
        return min(due_ms, max(closed_ms, heard_ms + session.pace_ms) + patience.grace_ms)

    def _hears_nobody(self) -> bool:
        if len(self._by_broker) < 2:
            return False
        heard_ms = max(session.heard_ms for session in self._by_broker.values())
        return self._attention.listened_ms - heard_ms >= self._patience.silence_ms // 2
