"""Producer ids: handed out one by one, from blocks that the controller allocates a thousand at a time.

I1  An id is handed out once in the life of a cluster. What is left of a block when the broker stops is never used.
I2  The next block is asked for when nine tenths of this one are gone, so that nobody waits for it as a rule; whoever
    comes when there is none waits, and is refused only when the controller cannot be reached.
I3  Whatever breaks is reported: one who breaks over an id keeps no other from theirs, and no answer, nor a question
    that could not be asked, keeps the next from being asked.

    take() --have one--> done(id)
       |
       +-- have none --> waiting --block--> done(id)
                            +----refused--> done(error)
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from ottla.controller.controller import Controller
from ottla.replicated.decision import Decision
from ottla.replicated.host import nobody
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

M = TypeVar("M", bound=Message)
Done = Callable[[int | BrokerError], None]

_PREFETCH_AT = 0.9


class Ask(Protocol):
    """The way to the active controller."""

    def __call__(
        self,
        request: Message,
        response: type[M],
        decide: Callable[[Controller, int], Decision[M]],
        done: Callable[[M | BrokerError], None],
    ) -> None:
        """Let the controller decide, and call back once that is committed."""
        ...


class ProducerIds:
    """The ids this broker may hand out. `epoch` tells the broker's own epoch at the time of the call."""

    __slots__ = (
        "_ask_controller",
        "_asked",
        "_blocks",
        "_epoch",
        "_node_id",
        "_prefetch_at",
        "_waiting",
        "report",
    )

    def __init__(self, node_id: int, ask: Ask, epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._ask_controller = ask
        self._epoch = epoch
        self._blocks: deque[range] = deque()
        self._prefetch_at = -1
        self._waiting: deque[Done] = deque()
        self._asked = False
        # Whom to tell what an operator should know.
        self.report: Callable[[str], object] = nobody

    def take(self, done: Done) -> None:
        """Call back with an id nobody has had, or with why there is none."""
        if self._blocks and not self._waiting:
            done(self._next())
            return
        self._waiting.append(done)
        self._serve()

    def _next(self) -> int:
        """Take an id of a block that is here, and have the next block fetched in time."""
        blocks = self._blocks
        block = blocks[0]
        if len(block) > 1:
            blocks[0] = block[1:]
        else:
            blocks.popleft()
        if block[0] >= self._prefetch_at and len(blocks) <= 1:
            self._ask()
        return block[0]

    def _serve(self) -> None:
        while self._waiting and self._blocks:
            self._tell(self._waiting.popleft(), self._next())
        if self._waiting:
            self._ask()

    def _tell(self, done: Done, outcome: int | BrokerError) -> None:
        try:
            done(outcome)
        except Exception as error:  # noqa: BLE001  # I3
            self.report(f"one who waited for a producer id broke: {error!r}")

    def _ask(self) -> None:
        if self._asked:
            return
        self._asked = True
        try:
            request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._epoch())
            self._ask_controller(
                request,
                AllocateProducerIdsResponse,
                lambda controller, now: controller.allocate_producer_ids(request, now),
                self._answered,
            )
        except Exception as error:  # noqa: BLE001  # I3
            self.report(f"the controller could not be asked for producer ids: {error!r}")
            self._asked = False
            self._refuse()

    def _answered(self, outcome: AllocateProducerIdsResponse | BrokerError) -> None:
        self._asked = False
        if isinstance(outcome, BrokerError) or outcome.error_code:
            self._refuse()
            return
        start, size = outcome.producer_id_start, outcome.producer_id_len
        if start < 0 or size <= 0:
            self.report(f"the controller allocated {size} producer ids from {start} on, which are none")
            self._refuse()
            return
        block = range(start, start + size)
        self._blocks.append(block)
        self._prefetch_at = block.start + int(len(block) * _PREFETCH_AT)
        self._serve()

    def _refuse(self) -> None:
        """Send everybody who waits away; they come again."""
        # Kafka's code for it: older clients take most others for final (KAFKA-14694).
        refusal = BrokerError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Producer ID block is full. Waiting for next block"
        )
        waiting, self._waiting = self._waiting, deque()
        for done in waiting:
            self._tell(done, refusal)
