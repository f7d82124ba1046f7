"""Fuzz a running broker over its sockets: every API of both listeners at every version, several connections at once.

    python -m tests.fuzz.campaign [--requests N] [--seed N] [--api KEY ...]     start a broker and fuzz it
    python -m tests.fuzz.campaign --replay FILE                                 send again what a failed run has kept

F1  Every frame is answered, or its connection closed, within ANSWER_S_MAX of the answer before it, unless it asked for
    silence or for a wait.
F2  Answers come in order, and our own decoder reads them.
F3  A request that its version can express is answered. The connection may be closed over broken bytes, and over what
    asked for no answer.
F4  What is sent follows from the seed and from what the broker answers; a run that fails keeps its last frames
    in a file, to be sent again.
"""

import random
import selectors
import socket
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.broker.api import Api
from ottla.broker.controller_face import CONTROLLER_TABLE
from ottla.broker.served import APIS
from ottla.wire.errors import ProtocolError
from tests.fuzz.expectation import Expected, expectation, partitions_wanted
from tests.fuzz.known import Known
from tests.fuzz.mutation import misframe, mutate
from tests.fuzz.sampler import ExtremeSampler

ANSWER_S_MAX = 3.0
# What needs the controller waits for an election, where somebody has claimed to lead the quorum: 2 s, or some of them.
ELECTION_S_MAX = 15.0
# What asks for the state of share partitions is patient while its coordinator moves or loads: 8.5 s (K1 of
# `share_persister.py`).
PATIENT_S_MAX = 12.0
WAIT_S_MAX = 0.3
MISFRAMED_S_MAX = 0.05
LOOK_INTO_S = 20.0
LATE_S = 0.7
WINDOWS = (1, 2, 4, 8, 16)
WELL_FORMED_SHARE = 0.6
MISFRAMED_SHARE = 0.02
FRAMES_KEPT = 4000
PARTITIONS_MAX = 100  # of a topic, by broken bytes; above Kafka's limit they are refused
PARTITIONS_KAFKA_MAX = 10_200
_LEARN_FROM = frozenset({0, 1, 3, 11, 19, 22, 68, 76, 88})
_READ_SHARE = 0.1
# Metadata and FindCoordinator may make topics, InitProducerId draws a block of ids.
_ASK_CONTROLLER = frozenset({api.key for api in CONTROLLER_TABLE} | {3, 10, 22})
_ASK_SHARE_STATE = frozenset({76, 78, 79, 90, 91, 92})
LISTENERS: dict[str, tuple[Api, ...]] = {"client": APIS, "controller": CONTROLLER_TABLE}


class Sent(NamedTuple):
    """A frame that has been handed to a connection."""

    number: int
    frame: bytes
    expected: Expected
    at: float
    is_broken: bool

    @property
    def key_and_version(self) -> tuple[int, int]:
        return struct.unpack_from(">hh", self.frame, 4) if len(self.frame) >= 8 else (-1, -1)

    def __str__(self) -> str:
        key, version = self.key_and_version
        return f"API {key} v{version} (expected: {self.expected.value}) {self.frame[:300].hex()}"


class Unanswered(AssertionError):
    """A frame got neither an answer nor the end of its connection, or a wrong answer."""


class FuzzConnection:
    """One connection to one listener, with some requests under way."""

    def __init__(self, name: str, port: int, listener: str, apis: Sequence[Api], chance: random.Random) -> None:
        self.name = name
        self.port = port
        self.listener = listener
        self.apis = {api.key: api for api in apis}
        self.pairs = [(api, version) for api in apis for version in api.versions]
        self.chance = chance
        self.recent: deque[bytes] = deque(maxlen=300)
        self.socket: socket.socket | None = None
        self.connect()

    def connect(self) -> None:
        """Begin anew."""
        self.close()
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.under_way: deque[Sent] = deque()
        self.unsent = bytearray()
        self.received = bytearray()
        self.window = self.chance.choice(WINDOWS)
        self.first_since = 0.0  # when the first of them became that: answers come in order
        self.give_up_at: float | None = None
        self.doubtful: Sent | None = None  # what will close the connection, as likely as not
        self.silent_number = -1  # of the last frame without an answer, which may close the connection later

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    @property
    def takes_more(self) -> bool:
        """Whether another frame may go out: behind broken bytes it would be lost, mostly."""
        if self.doubtful is not None:
            if self.under_way and self.under_way[-1] is self.doubtful:
                return False
            self.doubtful = None
        return self.give_up_at is None and len(self.under_way) < self.window


class LiveFuzz:
    """Drives the connections until so many frames have been dealt with."""

    def __init__(
        self,
        seed: int,
        ports: dict[str, int],
        known: Known,
        *,
        only: frozenset[int] = frozenset(),
        well_formed_share: float = WELL_FORMED_SHARE,
        late_within: Callable[[float, float], float] = lambda began, ended: 0.0,
    ) -> None:
        """`late_within` says for how long the machine was late in a span of time, for which nobody is to blame."""
        self.chance = random.Random(seed)
        self.known = known
        self.sampler = ExtremeSampler(seed + 1, known, int(time.time() * 1000))
        self.well_formed_share = well_formed_share
        self._late_within = late_within
        self.slowest_s = 0.0
        self.late: deque[str] = deque(maxlen=100)
        self.counts: Counter[str] = Counter()
        self.by_api: Counter[tuple[str, int, int]] = Counter()
        self.closed_by_api: Counter[tuple[str, int, int]] = Counter()
        self.kept: deque[tuple[str, bytes]] = deque(maxlen=FRAMES_KEPT)
        self.done = 0
        self._number = 0
        tables = {
            name: [api for api in apis if not only or api.key in only] for name, apis in LISTENERS.items()
        }
        self.connections = [
            FuzzConnection(f"{name}-{number}", ports[name], name, tables[name], self.chance)
            for name in LISTENERS
            if tables[name]
            for number in range(2)
        ]

    def run(self, requests: int, seconds_max: float = float("inf")) -> None:
        """Send until `requests` frames have been answered or refused."""
        stop_at, deadline = self.done + requests, time.monotonic() + seconds_max
        selector = selectors.DefaultSelector()
        for each in self.connections:
            self._register(selector, each)
        while self.done < stop_at and time.monotonic() < deadline:
            for each in self.connections:
                self._fill(each)
                if each.unsent:
                    self._send(selector, each)
            for key, _ in selector.select(0.01):
                self._receive(selector, key.data)
            now = time.monotonic()
            for each in self.connections:
                self._check(selector, each, now)
        selector.close()

    def unseen_pairs(self) -> list[tuple[str, int, int]]:
        """Which APIs have never been sent, at which versions."""
        pairs = [(each.listener, api.key, version) for each in self.connections for api, version in each.pairs]
        return sorted(set(pairs) - set(self.by_api))

    @staticmethod
    def _register(selector: selectors.BaseSelector, each: FuzzConnection) -> None:
        assert each.socket is not None
        selector.register(each.socket, selectors.EVENT_READ, each)

    def _again(self, selector: selectors.BaseSelector, each: FuzzConnection) -> None:
        assert each.socket is not None
        selector.unregister(each.socket)
        each.connect()
        self._register(selector, each)

    # Out

    def _fill(self, each: FuzzConnection) -> None:
        while each.takes_more:
            frame, expected, is_broken, ends = self._next(each)
            self._number = self._number % 0x7FFF_FFFF + 1
            self.kept.append((each.name, frame))
            sent = Sent(self._number, frame, expected, time.monotonic(), is_broken)
            if expected is Expected.SILENCE:
                each.silent_number = sent.number
            each.under_way.append(sent)
            each.unsent += frame
            key, version = sent.key_and_version
            if key in each.apis and version in each.apis[key].versions:
                self.by_api[each.listener, key, version] += 1
            if ends:
                each.give_up_at = sent.at + MISFRAMED_S_MAX
            elif expected is Expected.WAIT:
                each.give_up_at = sent.at + WAIT_S_MAX
            elif is_broken and self.chance.random() < 0.9:
                each.doubtful = sent

    def _next(self, each: FuzzConnection) -> tuple[bytes, Expected, bool, bool]:
        """A frame, what to expect of it, whether its bytes are broken, and whether it ends the framing as well."""
        chance = self.chance
        number = self._number % 0x7FFF_FFFF + 1
        kind = chance.random()
        if kind < self.well_formed_share or len(each.recent) < 2:
            api, version = chance.choice(each.pairs)
            frame = self.sampler.frame(api.request, version, number)
            each.recent.append(frame)
            return frame, expectation(frame, each.apis), False, False
        frame = chance.choice(each.recent)
        if kind > 1 - MISFRAMED_SHARE:
            return misframe(chance, frame), Expected.WAIT, True, True
        broken = bytearray(mutate(chance, frame, chance.choice(each.recent)))
        if PARTITIONS_MAX < partitions_wanted(bytes(broken), each.apis) <= PARTITIONS_KAFKA_MAX:
            broken = bytearray(frame)  # S2 of the sampler holds for broken bytes, too
        if len(broken) >= 12:
            struct.pack_into(">i", broken, 8, number)
        return bytes(broken), expectation(bytes(broken), each.apis, is_broken=True), True, False

    def _send(self, selector: selectors.BaseSelector, each: FuzzConnection) -> None:
        assert each.socket is not None
        try:
            sent = each.socket.send(each.unsent)
            del each.unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._closed(selector, each)

    # In

    def _receive(self, selector: selectors.BaseSelector, each: FuzzConnection) -> None:
        assert each.socket is not None
        try:
            data = each.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._closed(selector, each)
            return
        each.received += data
        each.first_since = time.monotonic()
        received, position = each.received, 0
        while len(received) - position >= 4:
            (size,) = struct.unpack_from(">i", received, position)
            if len(received) - position - 4 < size:
                break
            self._answered(each, bytes(received[position + 4 : position + 4 + size]))
            position += 4 + size
        del received[:position]
        if each.give_up_at is not None and not each.under_way:
            each.give_up_at = None

    def _answered(self, each: FuzzConnection, answer: bytes) -> None:
        (number,) = struct.unpack_from(">i", answer)
        while each.under_way:
            sent = each.under_way.popleft()
            self.done += 1
            if sent.number == number:
                if each.silent_number < number:
                    each.silent_number = -1
                self.counts["answered"] += 1
                if sent.expected is Expected.ANSWER:
                    self._note_time(sent)
                self._read(each, sent, answer)
                return
            if sent.expected is Expected.ANSWER:
                raise Unanswered(f"an answer to a later request came first: {each.name}, {sent}")
            self.counts["silent"] += 1
        if each.give_up_at is None:
            raise Unanswered(f"an answer to nobody's question: {each.name}, {answer[:100].hex()}")

    def _note_time(self, sent: Sent) -> None:
        """Keep the slowest answer, and of late ones when they were asked for, to be compared with the honest client."""
        now = time.monotonic()
        self.slowest_s = max(self.slowest_s, now - sent.at)
        if now - sent.at > LATE_S:
            self.late.append(f"{sent.at:.2f} to {now:.2f}: {sent}"[:200])

    def _read(self, each: FuzzConnection, sent: Sent, answer: bytes) -> None:
        key, version = sent.key_and_version
        if key not in _LEARN_FROM and self.chance.random() > _READ_SHARE:
            return
        api = each.apis.get(key)
        if api is None or version not in api.versions:
            return  # ApiVersions, whose unknown versions are answered at v0
        start = 4 + (api.facts.response_header_version(version) >= 1)
        try:
            message: Any = api.response.decode(answer[start:], version)
        except ProtocolError as error:
            raise Unanswered(f"the answer cannot be read ({error}): {sent} -> {answer[:300].hex()}") from None
        self.known.learn(message)

    def _closed(self, selector: selectors.BaseSelector, each: FuzzConnection) -> None:
        """The broker has hung up: on the first frame that it has not answered; those behind are not counted."""
        while each.under_way and each.under_way[0].expected is Expected.SILENCE and len(each.under_way) > 1:
            each.under_way.popleft()
            self.done += 1
            self.counts["silent"] += 1
        if each.under_way:
            is_clear = each.silent_number < 0 and each.give_up_at is None
            if is_clear and not any(sent.is_broken for sent in each.under_way):
                raise Unanswered(f"closed over a request that is well formed: {each.name}, {each.under_way[0]}")
            sent = each.under_way.popleft()
            self.done += 1
            self.counts["closed"] += 1
            if sent.expected is Expected.ANSWER:
                self.closed_by_api[(each.listener, *sent.key_and_version)] += 1
            self.counts["lost behind a closed connection"] += len(each.under_way)
        self._again(selector, each)

    def _check(self, selector: selectors.BaseSelector, each: FuzzConnection, now: float) -> None:
        if each.give_up_at is not None and now > each.give_up_at:
            self.done += len(each.under_way)
            self.counts["given up on"] += len(each.under_way)
            self._again(selector, each)
            return
        if not each.under_way:
            return
        first = each.under_way[0]
        if first.expected is Expected.SILENCE:
            if now - first.at > MISFRAMED_S_MAX:
                each.under_way.popleft()
                self.done += 1
                self.counts["silent"] += 1
            return
        since = max(first.at, each.first_since)
        seconds_max = _seconds_max(first.key_and_version[0])
        if (
            each.give_up_at is None
            and now - since > seconds_max
            and now - since - self._late_within(since, now) > seconds_max
        ):
            raise Unanswered(
                f"neither answered nor refused after {seconds_max} s: {each.name}, {first}\n{self._look_into(each)}"
            )

    def _look_into(self, each: FuzzConnection) -> str:
        """Say what becomes of a connection that is silent: it was late, it is no longer read, or it is stuck."""
        assert each.socket is not None
        began, said = time.monotonic(), []
        last = [f"{len(frame)} B {frame[:120].hex()}" for name, frame in self.kept if name == each.name]
        said.append("the last frames of this connection, the oldest first:\n  " + "\n  ".join(last[-12:]))
        try:
            with socket.create_connection(("127.0.0.1", each.port), timeout=LOOK_INTO_S) as other:
                other.sendall(each.under_way[0].frame)
                answer = other.recv(1 << 16)
            said.append(f"over another connection: {len(answer)} bytes after {time.monotonic() - began:.2f} s")
        except OSError as error:
            said.append(f"over another connection: {error!r}")
        each.socket.settimeout(max(LOOK_INTO_S - (time.monotonic() - began), 0.1))
        try:
            answer = each.socket.recv(1 << 16)
            said.append(f"at last {len(answer)} bytes {time.monotonic() - began:.2f} s later: {answer[:100].hex()}")
        except OSError as error:
            said.append(f"nothing in {time.monotonic() - began:.1f} s more: {error!r}")
        return "\n".join(said)


def _seconds_max(key: int) -> float:
    """Return how long the answer to a request may take."""
    if key in _ASK_CONTROLLER:
        return ELECTION_S_MAX
    return PATIENT_S_MAX if key in _ASK_SHARE_STATE else ANSWER_S_MAX
