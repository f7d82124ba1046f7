"""Asks for what a producer needs besides sending: a producer id, and the members and the end of a transaction.

C1  What a program has begun goes on when it gives up waiting. The same call again waits for the same thing, and no
    other call is possible before that is over.
C2  A transaction ends after the last of its batches has ended, and everything else that was asked for it.
C3  What nobody foresaw does not leave a producer between two states, nor anything out of a commit: the transaction is
    broken, or, where it was about to end or the producer to begin, the producer is doomed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import Aborted, ClientError, Refused, TimedOut, Unsupported, WrongState, refused
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.coordinator import GROUP, TRANSACTION, Coordinators
from ottla.client.producer.identity import Identity
from ottla.client.producer.lane import Lane
from ottla.client.producer.offsets import GroupMember, OffsetsToCommit
from ottla.client.producer.reaction import Errand, Reaction, error_for, react
from ottla.client.producer.sequence import ProducerId
from ottla.client.producer.settlement import concurrent_pause
from ottla.client.producer.terms import Terms
from ottla.client.producer.transaction import State, Transaction
from ottla.client.record import OffsetAndMetadata, TopicPartition
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitResponse

M = TypeVar("M", bound=Message)

LOGGER = logging.getLogger("ottla.client")

_NO_TIMEOUT_MS = (1 << 31) - 1
_FEATURE, _FEATURE_V2 = "transaction.version", 2
# The newest version that a client may use, by whether transactions are of version 2.
_ADD_PARTITIONS_NEWEST = 3
_END_NEWEST = {False: 4, True: 5}
_OFFSETS_NEWEST = {False: 4, True: 5}
_BUMPS_SINCE = 3


class Transactor:
    """The conversations of one producer with coordinators.

    `wake` gives the sender a turn, `flush` waits until everything sent has ended.
    """

    def __init__(
        self,
        terms: Terms,
        cluster: Cluster,
        accumulator: Accumulator,
        identity: Identity,
        transaction: Transaction | None,
        wake: Callable[[], object],
        flush: Callable[[], Awaitable[None]],
    ) -> None:
        self._terms = terms
        self._cluster = cluster
        self._accumulator = accumulator
        self._identity = identity
        self._transaction = transaction
        self._wake = wake
        self._flush = flush
        self._coordinators = Coordinators(cluster)
        self._operation: tuple[str, asyncio.Task[None]] | None = None
        self._chores: set[asyncio.Task[None]] = set()
        self._obtaining: asyncio.Task[None] | None = None
        self._adding: asyncio.Task[None] | None = None

    @property
    def transaction(self) -> Transaction:
        """The state of transactions; WrongState for a producer without any."""
        if self._transaction is None:
            raise WrongState("the producer has no transactions", hint="give it a transactional.id")
        return self._transaction

    # Calls of the program

    async def initialize(self) -> None:
        """Become the one producer of this transactional id."""

        def begin() -> None:
            self.transaction.check("init_transactions", State.UNINITIALIZED)
            self.transaction.state = State.INITIALIZING

        await self._perform("init_transactions", begin, lambda: self._initialize(None))

    async def commit(self) -> None:
        """Commit the transaction."""
        await self._perform("commit_transaction", self.transaction.commit, lambda: self._end(True))

    async def abort(self) -> None:
        """Abort the transaction."""
        await self._perform("abort_transaction", self.transaction.abort, lambda: self._end(False))

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: GroupMember
    ) -> None:
        """Make the offsets of a group part of the transaction."""
        self._check_idle("send_offsets")
        self.transaction.check("send_offsets", State.OPEN)
        if offsets:
            task = asyncio.create_task(self._foresee(self._send_offsets(offsets, member), Reaction.ABORT))
            self._chores.add(task)
            task.add_done_callback(self._chores.discard)
            task.add_done_callback(_heard)
            await self._wait("send_offsets", task)

    def begin(self) -> None:
        """Open a transaction."""
        self._check_idle("begin_transaction")
        self.transaction.begin()

    def _check_idle(self, call: str) -> None:
        if self._operation is not None:
            before, task = self._operation
            if not task.done():
                raise WrongState(
                    f"{call}: {before} is not over", hint=f"call {before} again, and wait for it"
                )
            self._operation = None

    async def _perform(
        self, call: str, begin: Callable[[], None], work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        if self._operation is None or self._operation[0] != call:
            self._check_idle(call)
            begin()
            task = asyncio.create_task(self._foresee(work(), Reaction.DOOM))
            task.add_done_callback(_heard)
            self._operation = call, task
        operation = self._operation
        await self._wait(call, operation[1])

    async def _wait(self, call: str, task: "asyncio.Task[None]") -> None:
        await asyncio.wait([task], timeout=self._terms.block_s)
        if not task.done():
            message = f"{call} was not over within {self._terms.block_s:g} s"
            raise TimedOut(message, hint=f"it goes on; call {call} again to wait for it")
        if self._operation is not None and self._operation[1] is task:
            self._operation = None
        task.result()

    # Producer ids

    def obtain(self) -> None:
        """Ask for a producer id for a producer without transactions, unless that is under way."""
        if self._obtaining is None:
            self._obtaining = asyncio.create_task(self._obtain())

    async def _obtain(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        backoff = self._cluster.links.retry_backoff()
        try:
            while True:
                try:
                    answer = await self._cluster.ask_any(request, InitProducerIdResponse)
                    code = ErrorCode(answer.error_code)
                    if code is ErrorCode.NONE:
                        self._identity.become(ProducerId(answer.producer_id, answer.producer_epoch))
                        return
                    error: ClientError = refused(code, about="the producer id")
                except ClientError as failure:
                    error, code = failure, ErrorCode.UNKNOWN_SERVER_ERROR
                if not error.retriable:
                    if code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                        self._identity.fatal = error
                    self._accumulator.fail(error)
                    return
                await asyncio.sleep(backoff.failed())
        finally:
            self._obtaining = None
            self._accumulator.look_again()

    async def _initialize(self, former: ProducerId | None) -> None:
        """Take a producer id, or the next epoch of the `former` one."""
        transaction, terms = self.transaction, self._terms
        if terms.is_two_phase:
            message = (
                "transaction.two.phase.commit.enable needs a version of InitProducerId that is not stable yet"
            )
            self._suffer(Reaction.DOOM, Unsupported(message, hint="leave the setting out"))
        request = InitProducerIdRequest(
            transactional_id=transaction.name, transaction_timeout_ms=terms.transaction_timeout_ms
        )
        if former is not None:
            request.producer_id, request.producer_epoch = former
        answer = await self._converse(Errand.INITIALIZE, request, InitProducerIdResponse)
        self._start_over(ProducerId(answer.producer_id, answer.producer_epoch))
        if former is None:
            transaction.is_v2 = self._cluster.links.feature(_FEATURE) >= _FEATURE_V2
        transaction.state, transaction.error = State.READY, None
        self._wake()

    def _start_over(self, producer: ProducerId) -> None:
        lanes = [lane for road in self._accumulator.roads.values() for lane in road.lanes.values()]
        self._identity.start_over(producer, lanes)

    # Members of a transaction

    def add_partitions(self) -> None:
        """Tell the coordinator of partitions that are new in the transaction, unless it is being told of some."""
        if self._adding is None and self.transaction.new:
            self._adding = asyncio.create_task(self._foresee(self._add_partitions(), Reaction.ABORT))
            self._adding.add_done_callback(_heard)

    async def _add_partitions(self) -> None:
        transaction = self.transaction
        try:
            while transaction.new:
                lanes = list(transaction.new)
                transaction.new.clear()
                await self._add(lanes)
                transaction.joined.update(lanes)
                transaction.started = True
                self._accumulator.look_again()
        finally:
            self._adding = None

    async def _add(self, lanes: list[Lane]) -> None:
        topics: dict[str, list[int]] = {}
        for lane in lanes:
            topics.setdefault(lane.topic, []).append(lane.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transaction.name,
            v3_and_below_producer_id=self._identity.producer.id,
            v3_and_below_producer_epoch=self._identity.producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        await self._converse(
            Errand.ADD_PARTITIONS,
            request,
            AddPartitionsToTxnResponse,
            newest=_ADD_PARTITIONS_NEWEST,
            code_of=_worst_partition,
        )

    async def _send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], member: GroupMember
    ) -> None:
        transaction, producer = self.transaction, self._identity.producer
        if transaction.is_v2:
            transaction.started = True
        else:
            request = AddOffsetsToTxnRequest(
                transactional_id=transaction.name,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                group_id=member.group_id,
            )
            await self._converse(Errand.ADD_OFFSETS, request, AddOffsetsToTxnResponse)
            transaction.started = True
        left = OffsetsToCommit(transaction.name, producer, member, dict(offsets))
        await self._converse(
            Errand.COMMIT_OFFSETS,
            left.request,
            TxnOffsetCommitResponse,
            newest=_OFFSETS_NEWEST[transaction.is_v2],
            code_of=left.take,
            to=(GROUP, member.group_id),
        )

    # The end of a transaction

    async def _end(self, committed: bool) -> None:
        transaction, accumulator = self.transaction, self._accumulator
        if not committed:
            accumulator.fail(
                Aborted("the transaction was aborted before the record was sent"), numbered=False
            )
        accumulator.seal_all()
        await self._flush()
        for chore in (*self._chores, *filter(None, (self._adding,))):
            await asyncio.wait([chore])
        transaction.check_error()
        producer, is_v2 = self._identity.producer, transaction.is_v2
        request = EndTxnRequest(
            transactional_id=transaction.name,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        now_v2 = self._cluster.links.feature(_FEATURE) >= _FEATURE_V2
        if now_v2 and not is_v2:
            transaction.bump_required = True
        transaction.is_v2 = now_v2
        if transaction.started:
            errand = Errand.COMMIT if committed else Errand.ABORT
            answer = await self._converse(errand, request, EndTxnResponse, newest=_END_NEWEST[is_v2])
            if answer.producer_id != -1:
                producer = ProducerId(answer.producer_id, answer.producer_epoch)
                self._start_over(producer)
        bump = transaction.bump_required
        transaction.ended()
        if bump:
            await self._initialize(producer)

    # Conversation

    async def _converse(
        self,
        errand: Errand,
        request: Message | Callable[[], Message],
        response: type[M],
        *,
        newest: int | None = None,
        code_of: Callable[[Any], int] = lambda answer: int(answer.error_code),
        to: tuple[int, str] | None = None,
    ) -> M:
        """Ask a coordinator until the answer is final; raise what a bad one means after acting on it."""
        transaction = self.transaction
        kind, key = to or (TRANSACTION, transaction.name)
        backoff = self._cluster.links.retry_backoff()
        while True:
            message = request() if callable(request) else request
            try:
                answer = await self._coordinators.ask(kind, key, message, response, newest)
            except Refused as error:
                self._suffer(react(Errand.FIND, error.code), error)
            except ClientError as error:
                self._suffer(Reaction.DOOM, error)
            self._note_coordinator()
            code = ErrorCode(code_of(answer))
            reaction = react(errand, code)
            if reaction is Reaction.DONE:
                return answer
            pause = backoff.failed()
            if reaction is Reaction.ELSEWHERE:
                self._coordinators.forget(kind, key)
            elif reaction is not Reaction.AGAIN:
                self._suffer(reaction, error_for(errand, code, transaction.name))
            if code is ErrorCode.CONCURRENT_TRANSACTIONS:
                pause = min(pause, concurrent_pause(backoff.failures))
            await asyncio.sleep(pause)

    async def _foresee(self, work: Coroutine[Any, Any, None], reaction: Reaction) -> None:
        """Do some work, and act on what nobody foresaw as on a final answer (C3)."""
        try:
            await work
        except ClientError:
            raise
        except Exception as error:
            LOGGER.exception("a conversation with a coordinator failed")
            unforeseen = ClientError(f"{self.transaction.name}: {error!r}")
            unforeseen.__cause__ = error
            self._suffer(reaction, unforeseen)

    def _note_coordinator(self) -> None:
        node = self._coordinators.node(TRANSACTION, self.transaction.name)
        if node is not None and self._cluster.links.is_connected(node):
            version = self._cluster.links.version(node, InitProducerIdRequest)
            self.transaction.can_bump = version >= _BUMPS_SINCE

    def _suffer(self, reaction: Reaction, error: ClientError) -> NoReturn:
        """Act on a final answer, and raise what it means."""
        transaction = self.transaction
        if reaction is Reaction.DENIED:
            transaction.state = State.UNINITIALIZED
            raise error
        if reaction is Reaction.ABORT:
            transaction.must_abort(error)
        elif reaction is Reaction.RENUMBER:
            transaction.must_abort_if_possible(error)
        else:
            transaction.doom(error)
        self._wake()
        transaction.check_error()
        raise error

    async def settled(self) -> None:
        """Wait for what is under way."""
        if self._operation is not None:
            await asyncio.wait([self._operation[1]])

    def cancel(self) -> "list[asyncio.Task[None]]":
        """Give everything up; return what is ending."""
        tasks = [*self._chores, *filter(None, (self._adding, self._obtaining))]
        if self._operation is not None:
            tasks.append(self._operation[1])
        for task in tasks:
            task.cancel()
        return tasks


def _worst_partition(answer: AddPartitionsToTxnResponse) -> int:
    """The code that decides: one that concerns the whole request goes before one that a partition has for itself."""
    codes = [
        ErrorCode(result.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]
    bad = [code for code in codes if code is not ErrorCode.NONE]
    own = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OPERATION_NOT_ATTEMPTED}
    return next((code for code in bad if code not in own), min(bad, default=ErrorCode.NONE))


def _heard(task: "asyncio.Task[None]") -> None:
    """Whoever waits for a task hears of its error; nobody else is to complain."""
    if not task.cancelled():
        task.exception()
