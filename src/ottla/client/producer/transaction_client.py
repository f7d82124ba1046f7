"""The requests of a producer to coordinators: producer ids, and the partitions, offsets and end of a transaction.

C1  An operation continues when its caller stops waiting. The same call waits for it again, and no other call is
    possible until it has ended.
C2  A transaction ends after all of its batches and requests have ended.
C3  An unexpected error never leaves a producer between two states, and never leaves anything out of a commit: the
    transaction has to be aborted, or, if it was ending or the producer was initializing, the error is fatal.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NoReturn, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import Aborted, ClientError, Refused, TimedOut, Unsupported, WrongState, refused
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.batch_completion import concurrent_transactions_pause
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.coordinator_client import GROUP, TRANSACTION, CoordinatorClient
from ottla.client.producer.identity import ProducerIdentity
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.client.producer.response_action import CoordinatorCall, ResponseAction, action_for, error_for
from ottla.client.producer.sequence import ProducerId
from ottla.client.producer.transaction import ProducerTransaction, TransactionState
from ottla.client.producer.transaction_offsets import GroupMember, OffsetsToCommit
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


class TransactionClient:
    """Sends the requests of one producer to coordinators.

    `wake` runs the sender, `flush` waits until all batches have ended.
    """

    def __init__(
        self,
        config: ProducerConfig,
        cluster: Cluster,
        accumulator: Accumulator,
        identity: ProducerIdentity,
        transaction: ProducerTransaction | None,
        wake: Callable[[], object],
        flush: Callable[[], Awaitable[None]],
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._accumulator = accumulator
        self._identity = identity
        self._transaction = transaction
        self._wake = wake
        self._flush = flush
        self._coordinators = CoordinatorClient(cluster)
        self._operation: tuple[str, asyncio.Task[None]] | None = None
        self._offset_tasks: set[asyncio.Task[None]] = set()
        self._producer_id_task: asyncio.Task[None] | None = None
        self._add_partitions_task: asyncio.Task[None] | None = None

    @property
    def transaction(self) -> ProducerTransaction:
        """The state of the transaction. Raises WrongState for a producer without transactions."""
        if self._transaction is None:
            raise WrongState("the producer has no transactions", hint="give it a transactional.id")
        return self._transaction

    # Calls of the application

    async def initialize(self) -> None:
        """Register as the only producer of this transactional id."""

        def begin() -> None:
            self.transaction.check("init_transactions", TransactionState.UNINITIALIZED)
            self.transaction.state = TransactionState.INITIALIZING

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
        """Add the offsets of a group to the transaction."""
        self._check_idle("send_offsets")
        self.transaction.check("send_offsets", TransactionState.IN_TRANSACTION)
        if offsets:
            task = asyncio.create_task(
                self._fail_on_unexpected(self._send_offsets(offsets, member), ResponseAction.ABORT)
            )
            self._offset_tasks.add(task)
            task.add_done_callback(self._offset_tasks.discard)
            task.add_done_callback(_retrieve_exception)
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
            task = asyncio.create_task(self._fail_on_unexpected(work(), ResponseAction.FAIL))
            task.add_done_callback(_retrieve_exception)
            self._operation = call, task
        operation = self._operation
        await self._wait(call, operation[1])

    async def _wait(self, call: str, task: "asyncio.Task[None]") -> None:
        await asyncio.wait([task], timeout=self._config.block_s)
        if not task.done():
            message = f"{call} was not over within {self._config.block_s:g} s"
            raise TimedOut(message, hint=f"it goes on; call {call} again to wait for it")
        if self._operation is not None and self._operation[1] is task:
            self._operation = None
        task.result()

    # Producer ids

    def request_producer_id(self) -> None:
        """Request a producer id for a producer without transactions, unless a request is in progress."""
        if self._producer_id_task is None:
            self._producer_id_task = asyncio.create_task(self._request_producer_id())

    async def _request_producer_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        backoff = self._cluster.connections.retry_backoff()
        try:
            while True:
                try:
                    answer = await self._cluster.ask_any(request, InitProducerIdResponse)
                    code = ErrorCode(answer.error_code)
                    if code is ErrorCode.NONE:
                        self._identity.set_producer(ProducerId(answer.producer_id, answer.producer_epoch))
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
            self._producer_id_task = None
            self._accumulator.recheck_all()

    async def _initialize(self, previous: ProducerId | None) -> None:
        """Get a producer id, or the next epoch of the `previous` one."""
        transaction, config = self.transaction, self._config
        if config.is_two_phase:
            message = (
                "transaction.two.phase.commit.enable needs a version of InitProducerId that is not stable yet"
            )
            self._raise_final(ResponseAction.FAIL, Unsupported(message, hint="leave the setting out"))
        request = InitProducerIdRequest(
            transactional_id=transaction.transactional_id,
            transaction_timeout_ms=config.transaction_timeout_ms,
        )
        if previous is not None:
            request.producer_id, request.producer_epoch = previous
        answer = await self._ask_coordinator(CoordinatorCall.INITIALIZE, request, InitProducerIdResponse)
        self._reset_identity(ProducerId(answer.producer_id, answer.producer_epoch))
        if previous is None:
            transaction.is_v2 = self._cluster.connections.feature(_FEATURE) >= _FEATURE_V2
        transaction.state, transaction.error = TransactionState.READY, None
        self._wake()

    def _reset_identity(self, producer: ProducerId) -> None:
        queues = [
            queue
            for topic_queues in self._accumulator.topics.values()
            for queue in topic_queues.queues.values()
        ]
        self._identity.reset(producer, queues)

    # Partitions and offsets of a transaction

    def add_partitions(self) -> None:
        """Add new partitions to the transaction at the coordinator, unless such a request is in progress."""
        if self._add_partitions_task is None and self.transaction.to_add:
            self._add_partitions_task = asyncio.create_task(
                self._fail_on_unexpected(self._add_partitions(), ResponseAction.ABORT)
            )
            self._add_partitions_task.add_done_callback(_retrieve_exception)

    async def _add_partitions(self) -> None:
        transaction = self.transaction
        try:
            while transaction.to_add:
                queues = list(transaction.to_add)
                transaction.to_add.clear()
                await self._add(queues)
                transaction.added_partitions.update(queues)
                transaction.started = True
                self._accumulator.recheck_all()
        finally:
            self._add_partitions_task = None

    async def _add(self, queues: list[PartitionQueue]) -> None:
        topics: dict[str, list[int]] = {}
        for queue in queues:
            topics.setdefault(queue.topic, []).append(queue.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transaction.transactional_id,
            v3_and_below_producer_id=self._identity.producer.id,
            v3_and_below_producer_epoch=self._identity.producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        await self._ask_coordinator(
            CoordinatorCall.ADD_PARTITIONS,
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
                transactional_id=transaction.transactional_id,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                group_id=member.group_id,
            )
            await self._ask_coordinator(CoordinatorCall.ADD_OFFSETS, request, AddOffsetsToTxnResponse)
            transaction.started = True
        left = OffsetsToCommit(transaction.transactional_id, producer, member, dict(offsets))
        await self._ask_coordinator(
            CoordinatorCall.COMMIT_OFFSETS,
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
        for task in (*self._offset_tasks, *filter(None, (self._add_partitions_task,))):
            await asyncio.wait([task])
        transaction.check_error()
        producer, is_v2 = self._identity.producer, transaction.is_v2
        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        now_v2 = self._cluster.connections.feature(_FEATURE) >= _FEATURE_V2
        if now_v2 and not is_v2:
            transaction.epoch_bump_required = True
        transaction.is_v2 = now_v2
        if transaction.started:
            call = CoordinatorCall.COMMIT if committed else CoordinatorCall.ABORT
            answer = await self._ask_coordinator(call, request, EndTxnResponse, newest=_END_NEWEST[is_v2])
            if answer.producer_id != -1:
                producer = ProducerId(answer.producer_id, answer.producer_epoch)
                self._reset_identity(producer)
        bump = transaction.epoch_bump_required
        transaction.ended()
        if bump:
            await self._initialize(producer)

    # Requests

    async def _ask_coordinator(
        self,
        call: CoordinatorCall,
        request: Message | Callable[[], Message],
        response: type[M],
        *,
        newest: int | None = None,
        code_of: Callable[[Any], int] = lambda answer: int(answer.error_code),
        to: tuple[int, str] | None = None,
    ) -> M:
        """Ask a coordinator until the answer is final. An error changes the state, and is raised."""
        transaction = self.transaction
        kind, key = to or (TRANSACTION, transaction.transactional_id)
        backoff = self._cluster.connections.retry_backoff()
        while True:
            message = request() if callable(request) else request
            try:
                answer = await self._coordinators.ask(kind, key, message, response, newest)
            except Refused as error:
                self._raise_final(action_for(CoordinatorCall.FIND, error.code), error)
            except ClientError as error:
                self._raise_final(ResponseAction.FAIL, error)
            self._note_coordinator()
            code = ErrorCode(code_of(answer))
            action = action_for(call, code)
            if action is ResponseAction.DONE:
                return answer
            pause = backoff.failed()
            if action is ResponseAction.FIND_COORDINATOR:
                self._coordinators.forget(kind, key)
            elif action is not ResponseAction.RETRY:
                self._raise_final(action, error_for(call, code, transaction.transactional_id))
            if code is ErrorCode.CONCURRENT_TRANSACTIONS:
                pause = min(pause, concurrent_transactions_pause(backoff.failures))
            await asyncio.sleep(pause)

    async def _fail_on_unexpected(self, work: Coroutine[Any, Any, None], action: ResponseAction) -> None:
        """Run a coroutine. An unexpected error is handled like a final answer (C3)."""
        try:
            await work
        except ClientError:
            raise
        except Exception as error:
            LOGGER.exception("a request to a coordinator failed")
            unexpected = ClientError(f"{self.transaction.transactional_id}: {error!r}")
            unexpected.__cause__ = error
            self._raise_final(action, unexpected)

    def _note_coordinator(self) -> None:
        node = self._coordinators.node(TRANSACTION, self.transaction.transactional_id)
        if node is not None and self._cluster.connections.is_connected(node):
            version = self._cluster.connections.version(node, InitProducerIdRequest)
            self.transaction.can_bump_epoch = version >= _BUMPS_SINCE

    def _raise_final(self, action: ResponseAction, error: ClientError) -> NoReturn:
        """Change the state after a final answer, and raise the error."""
        transaction = self.transaction
        if action is ResponseAction.NOT_ALLOWED:
            transaction.state = TransactionState.UNINITIALIZED
            raise error
        if action is ResponseAction.ABORT:
            transaction.must_abort(error)
        elif action is ResponseAction.BUMP_EPOCH:
            transaction.must_abort_if_possible(error)
        else:
            transaction.fail_permanently(error)
        self._wake()
        transaction.check_error()
        raise error

    async def wait_for_operation(self) -> None:
        """Wait for the operation in progress."""
        if self._operation is not None:
            await asyncio.wait([self._operation[1]])

    def cancel(self) -> "list[asyncio.Task[None]]":
        """Cancel all tasks, and return them."""
        tasks = [*self._offset_tasks, *filter(None, (self._add_partitions_task, self._producer_id_task))]
        if self._operation is not None:
            tasks.append(self._operation[1])
        for task in tasks:
            task.cancel()
        return tasks


def _worst_partition(answer: AddPartitionsToTxnResponse) -> int:
    """Return the decisive code: one for the whole request comes before one for a single partition."""
    codes = [
        ErrorCode(result.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]
    bad = [code for code in codes if code is not ErrorCode.NONE]
    custom = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OPERATION_NOT_ATTEMPTED}
    return next((code for code in bad if code not in custom), min(bad, default=ErrorCode.NONE))


def _retrieve_exception(task: "asyncio.Task[None]") -> None:
    """Mark the error of a task as seen: the caller that waits for the task raises it."""
    if not task.cancelled():
        task.exception()
