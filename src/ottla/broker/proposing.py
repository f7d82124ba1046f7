"""What leaders here propose to the controller: who is in sync with them (AlterPartition).

A1  One request is under way at a time, and takes along all that was proposed meanwhile.
A2  A proposal ends with the controller's answer to it; what got lost on the way is asked again, for as long as the
    leader still means it: the answer to a repetition is the same.
"""

from collections.abc import Callable

from ottla.broker.broker import Timers
from ottla.broker.controller_line import ControllerLine
from ottla.partition.leadership import Proposal
from ottla.partition.partition import Partition
from ottla.partition.roles import Roles
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

_AGAIN_S = 0.05

Key = tuple[bytes, int]
_Topic = AlterPartitionRequest.TopicData
_Partition = _Topic.PartitionData
_Answer = AlterPartitionResponse.TopicData.PartitionData
_KNOWN = frozenset(code for code in ErrorCode if code)


class Proposals:
    """The queue to the controller. `broker_epoch` is that of this broker's registration."""

    def __init__(
        self, node_id: int, broker_epoch: Callable[[], int], line: ControllerLine, timers: Timers, roles: Roles
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._line = line
        self._timers = timers
        self._roles = roles
        self._waiting: dict[Key, tuple[Partition, Proposal]] = {}
        self._busy = False

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """Ask; the answer goes to `Roles.agreed` or `Roles.refused`."""
        self._waiting[partition.topic_id, partition.index] = (partition, proposal)
        if not self._busy:
            self._busy = True
            self._timers.call_soon(self._send)

    def _send(self) -> None:
        asked, self._waiting = self._waiting, {}
        if not asked:
            self._busy = False
            return
        topics: dict[bytes, list[_Partition]] = {}
        for (topic_id, index), (_, proposal) in asked.items():
            topics.setdefault(topic_id, []).append(
                _Partition(
                    partition_index=index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        _Partition.BrokerState(broker_id=id, broker_epoch=epoch) for id, epoch in proposal.isr
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        request = AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=[_Topic(topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()],
        )
        self._line.ask(request, AlterPartitionResponse, lambda answer: self._answered(asked, answer))

    def _answered(
        self, asked: dict[Key, tuple[Partition, Proposal]], answer: AlterPartitionResponse | Exception
    ) -> None:
        again = isinstance(answer, Exception) or answer.error_code
        if again:
            self._waiting = {**asked, **self._waiting}
            self._timers.call_later(_AGAIN_S, self._send)
            return
        assert not isinstance(answer, Exception)
        for topic in answer.topics:
            for part in topic.partitions:
                found = asked.pop((topic.topic_id, part.partition_index), None)
                if found is None:
                    continue
                self._end(*found, part)
        for partition, proposal in asked.values():  # of which nothing was said
            self._end(partition, proposal, _Answer(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        self._timers.call_later(_AGAIN_S if self._waiting else 0, self._send)

    def _end(self, partition: Partition, proposal: Proposal, part: _Answer) -> None:
        """Tell one partition what became of its proposal."""
        try:
            if part.error_code in _KNOWN:
                self._roles.refused(partition, proposal, ErrorCode(part.error_code))
            elif part.error_code:
                self._roles.refused(partition, proposal, ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                self._roles.agreed(partition, proposal, part.isr, part.leader_epoch, part.partition_epoch)
        except Exception as error:  # noqa: BLE001  # no leader here could ever propose anything again
            partition.log.report_bug(error)
