"""The follower's half of a partition: store what the leader has, and no more.

L2  Below the high watermark the bytes of all replicas are the same.
L10 Where the logs branched is for the leader's epochs to say, never for a watermark (KIP-101, KIP-279): the fetch names
    the epoch of our last record, and an answer that tells us where that epoch ends there makes us cut to it, and ask
    again, until both agree.
L11 A follower's watermark is its leader's, as far as its own log reaches.
"""

from ottla.log.log import Log
from ottla.partition.partition import Partition
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.world.disk import Bytes


def store(partition: Partition, records: Bytes) -> None:
    """Append what the leader has sent; KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE when that cannot be."""
    if partition.error is not None or partition.is_leader:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    partition.log.append_as_follower(records)
    partition.stored(len(records))


def learn(partition: Partition, high_watermark: int, start_offset: int) -> None:
    """Take over how far the leader has committed, and from where on it still has records."""
    partition.raise_watermark(min(high_watermark, partition.log.end_offset))
    if start_offset > partition.log.start_offset:
        partition.log.raise_start_offset(min(start_offset, partition.high_watermark))


def cut_to_branch(partition: Partition, epoch: int, end_offset: int) -> bool:
    """Cut to where the leader says that its epoch `epoch` ends; say whether that settles it.

    The leader names its own last epoch not above ours. If we have that epoch too, the logs agree up to where the
    shorter of the two ends; if not, up to where we leave the epochs below it, and the leader has to be asked again.
    """
    offset, settles = branch_offset(partition, epoch, end_offset)
    cut_to(partition, offset)
    return settles


def branch_offset(partition: Partition, epoch: int, end_offset: int) -> tuple[int, bool]:
    """Return where `cut_to_branch` cuts, and whether that settles it."""
    log = partition.log
    if epoch < 0:
        return log.start_offset, True
    our_epoch, our_end_offset = log.end_offset_for_epoch(epoch)
    if our_epoch < 0:
        return max(min(end_offset, log.end_offset), log.start_offset), True
    if our_epoch != epoch:
        return min(our_end_offset, log.end_offset), False
    return min(our_end_offset, end_offset, log.end_offset), True


def agreed_end(copy: Log, log: Log) -> int:
    """Return up to where a copy agrees with its log by their epochs, each of which one leader has written."""
    following = [start_offset for _, start_offset in log.epochs[1:]] + [log.end_offset]
    ends = {epoch: end_offset for (epoch, _), end_offset in zip(log.epochs, following, strict=False)}
    end_offset = copy.end_offset
    for epoch, start_offset in reversed(copy.epochs):
        end_offset = min(end_offset, ends.get(epoch, start_offset))
        if end_offset > start_offset:
            return end_offset
    return min(end_offset, copy.start_offset)


def cut_to(partition: Partition, offset: int) -> None:
    """Take away all from `offset` on, which no leader has, or start anew there when it lies behind our end."""
    log = partition.log
    partition.cuts += 1
    if offset > log.end_offset or offset < log.start_offset:
        log.truncate_fully_and_start_at(offset)
        partition.high_watermark = partition.durable_offset = offset
        return
    log.truncate_to(offset)
    partition.high_watermark = min(partition.high_watermark, log.end_offset)
    partition.durable_offset = min(partition.durable_offset, log.end_offset)


def last_epoch(partition: Partition) -> int:
    """The epoch of our last record, -1 for an empty log."""
    latest = partition.log.epoch_for_offset(partition.log.end_offset - 1)
    return -1 if latest is None or partition.log.end_offset == partition.log.start_offset else latest
