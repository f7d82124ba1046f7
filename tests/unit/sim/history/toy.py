"""A broker made of lists, which keeps its word, or breaks it in one way.

A key is a list of cells: a value, and the transaction that it is of. Readers come to the first cell of an open
transaction, and do not see what was called off. In the middle of a transaction `meanwhile` lets another process do
something.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ottla.sim.history.op import Poll, Seen, Send, Step
from ottla.sim.history.workload import Below, Refused

BUGS = (
    "inconsistent-offsets",
    "duplicate",
    "lost-write",
    "unseen",
    "G1a",
    "precommitted-read",
    "int-poll-skip",
    "poll-skip",
    "int-nonmonotonic-poll",
    "nonmonotonic-poll",
    "int-nonmonotonic-send",
    "nonmonotonic-send",
    "G1c",
    "phantom",
)
POLLED_MAX = 12


@dataclass(eq=False)
class Transaction:
    will_abort: bool
    state: str = "open"


@dataclass(eq=False)
class Cell:
    value: str | None  # None is a marker, or nothing at all
    transaction: Transaction | None = None
    sender: object = None
    was_read: bool = False


@dataclass
class Broker:
    """All keys, and the bug that it has, if any, which shows now and then."""

    keys: Sequence[str]
    below: Below
    bug: str | None = None
    meanwhile: Callable[[], None] = lambda: None
    healed: bool = False
    cells: dict[str, list[Cell]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cells = {key: [] for key in self.keys}
        self.gap: dict[str, tuple[int, object]] = {}  # a cell kept free for the next of its sender

    def has(self, bug: str, one_in: int = 6) -> bool:
        """Whether the bug strikes now."""
        return self.bug == bug and not self.healed and not self.below(one_in)

    def append(
        self, send: Send, sender: object, transaction: Transaction | None = None, last: bool = True
    ) -> Send:
        """`last` says that no other for its key is in the same request."""
        log = self.cells[send.key]
        if transaction is None:
            offset = self._misplaced(log, send, sender, last)
            if offset is not None:
                return Send(send.key, send.value, offset)
        cell = Cell(send.value, transaction, sender)
        log.append(cell)
        offset = len(log) - 1
        if transaction is None and self.has("lost-write"):
            cell.value = None
        elif transaction is None and self.has("duplicate"):
            log.append(Cell(send.value))
        return Send(send.key, send.value, offset)

    def _misplaced(self, log: list[Cell], send: Send, sender: object, last: bool) -> int | None:
        """Where a bug puts a record that should go to the end."""
        if log and log[-1].was_read and log[-1].value is not None and self.has("inconsistent-offsets"):
            log[-1] = Cell(send.value, sender=sender)
            return len(log) - 1
        gap = self.gap.get(send.key)
        if gap is not None and gap[1] is sender:
            del self.gap[send.key]
            log[gap[0]].value = send.value
            return gap[0]
        if gap is None and last and self.bug == "nonmonotonic-send" and not self.healed and not self.below(6):
            log += [Cell(None), Cell(send.value, sender=sender)]
            self.gap[send.key] = (len(log) - 2, sender)
            return len(log) - 1
        return None

    def append_all(self, sends: Sequence[Send], sender: object) -> list[Send]:
        """Several of one request."""
        same_key = len({send.key for send in sends}) < len(sends)
        if same_key and self.has("int-nonmonotonic-send"):
            return [self.append(send, sender) for send in reversed(sends)][::-1]
        return [
            self.append(send, sender, last=all(other.key != send.key for other in sends[at + 1 :]))
            for at, send in enumerate(sends)
        ]

    def end(self, key: str, own: Transaction | None = None) -> int:
        """How far readers come."""
        log = self.cells[key]
        end = next(
            (at for at, cell in enumerate(log) if cell.transaction and self._hides(cell.transaction, own)),
            len(log),
        )
        end = min(end, self.gap[key][0]) if key in self.gap else end
        if self.bug == "unseen" and key == self.keys[0] and end > 20:
            return 20
        return end

    def _hides(self, transaction: Transaction, own: Transaction | None) -> bool:
        if transaction.state != "open":
            return False
        return self.bug != "G1c" or transaction.will_abort or transaction is own

    def read(self, key: str, position: int, own: Transaction | None) -> tuple[list[Seen], int]:
        """What stands there, and where to go on."""
        end, seen = self.end(key, own), []
        log = self.cells[key]
        if own is not None and not own.will_abort and end < len(log) and self.has("precommitted-read", 2):
            behind = {cell.transaction for cell in log[end:] if cell.transaction is not None}
            end = len(log) if {each for each in behind if each.state == "open"} == {own} else end
        while position < end and len(seen) < POLLED_MAX:
            cell = log[position]
            is_aborted = cell.transaction is not None and cell.transaction.state == "aborted"
            if cell.value is not None and not is_aborted:
                seen.append((key, position, cell.value))
                cell.was_read = True
            position += 1
        return seen, position


class ToyClient:
    """A client of such a broker, in its own words a producer and a consumer."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._positions: dict[str, int] = {}

    def assign(self, keys: Sequence[str], *, from_start: bool) -> None:
        self._positions = {key: 0 if from_start else self._broker.end(key) for key in keys}

    def poll(self, own: Transaction | None = None) -> Poll:
        broker, found = self._broker, list[Seen]()
        for key, position in self._positions.items():
            seen, after = broker.read(key, position, own)
            if len(seen) > 2 and broker.has("int-poll-skip"):
                del seen[1]
            elif len(seen) > 1 and own is None and broker.has("poll-skip"):
                del seen[0]
            elif seen and broker.has("int-nonmonotonic-poll"):
                seen.append(seen[-1])
            elif seen and own is None and broker.has("nonmonotonic-poll"):
                after = seen[-1][1]
            found += seen
            self._positions[key] = after
        return Poll(tuple(found))

    def send(self, sends: Sequence[Send]) -> Sequence[Send]:
        return self._broker.append_all(sends, self)

    def transact(self, steps: Sequence[Step], *, abort: bool) -> Sequence[Step]:
        broker, transaction = self._broker, Transaction(abort)
        done: list[Step] = []
        for step in steps:
            done.append(
                broker.append(step, self, transaction) if isinstance(step, Send) else self.poll(transaction)
            )
            broker.meanwhile()
        transaction.state = "aborted" if abort and not broker.has("G1a", 2) else "committed"
        for key in {step.key for step in done if isinstance(step, Send)}:
            marker = f"marker {len(broker.cells[key])}" if broker.has("phantom") else None
            broker.cells[key].append(Cell(marker))
        if abort:
            raise Refused("called off", [Send(s.key, s.value) if isinstance(s, Send) else s for s in done])
        return done

    def close(self) -> None:
        self._positions.clear()
