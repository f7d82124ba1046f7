"""What can go wrong for a client, and what to do about it.

E1  Whatever a client raises is a ClientError, or a SettingError for a setting that cannot be.
E2  `retriable` says whether the same call may succeed later without anybody changing anything. What is retriable has
    been retried already, until the time for it was up.
E3  `hint` says what to do, where there is something to say.
"""

from collections.abc import Mapping
from typing import Any

from ottla.wire.errors import ErrorCode


class ClientError(Exception):
    """A client could not do what it was asked."""

    retriable: bool = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nhint: {self.hint}" if self.hint else message


class Refused(ClientError):
    """A broker answered with an error code."""

    def __init__(
        self, code: ErrorCode, message: str | None = None, *, about: str = "", hint: str = ""
    ) -> None:
        said = message or code.name.replace("_", " ").lower()
        super().__init__(f"{about}: {said} ({code.name})" if about else f"{said} ({code.name})", hint=hint)
        self.code = code
        self.retriable = code.retriable


class Fenced(Refused):
    """Another client has taken over the identity of this one, which can do nothing any more but close."""


class Disconnected(ClientError):
    """The connection to a broker ended, or could not be made."""

    retriable = True


class TimedOut(ClientError):
    """There was no answer in time. What was asked may have happened all the same."""

    retriable = True


class NoBroker(TimedOut):
    """No broker could be reached in time."""


class Unsupported(ClientError):
    """The broker does not serve this request, or not in a version that can express it."""


class Malformed(ClientError):
    """A broker sent bytes that make no sense."""


class Closed(ClientError):
    """The client was closed, so nothing can be asked of it any more."""


class BufferFull(ClientError):
    """There is no room for another record."""

    retriable = True


class TopicUnknown(ClientError):
    """A topic, or a partition of it, is not known to this client yet."""

    retriable = True


class RecordTooLarge(ClientError):
    """A record is larger than this client, or the broker, takes."""


class SerializationFailed(ClientError):
    """A serializer could not make bytes of a key or value, or a deserializer nothing of its bytes."""


class Aborted(ClientError):
    """The record was part of a transaction that was aborted before it was sent."""


class MustAbort(ClientError):
    """The transaction cannot be committed any more: abort it, and begin another. `__cause__` says what happened."""


class WrongState(ClientError):
    """The call does not fit the state the client is in; the message says which call is missing."""


class NoOffset(ClientError):
    """A partition has no position, and `auto.offset.reset` does not say where to begin."""


class SomeFailed(ClientError):
    """Several things were asked for at once, and not all succeeded: `errors` and `results` have the keys asked for."""

    def __init__(self, errors: Mapping[Any, ClientError], results: Mapping[Any, Any]) -> None:
        first = "; ".join(str(error).partition("\n")[0] for error in tuple(errors.values())[:3])
        more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
        super().__init__(f"{len(errors)} of {len(errors) + len(results)} failed: {first}{more}")
        self.errors = dict(errors)
        self.results = dict(results)
        self.retriable = all(error.retriable for error in errors.values())


class CommitFailed(ClientError):
    """The group has moved on without this member, so its offsets were not committed."""


def refused(code: int, message: str | None = None, *, about: str = "", hint: str = "") -> Refused:
    """Return the error for a code that a broker answered."""
    known = ErrorCode(code)
    kind = Fenced if known in _FENCING else Refused
    return kind(known, message, about=about, hint=hint or _HINTS.get(known, ""))


_FENCING = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.FENCED_INSTANCE_ID,
}

_HINTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create the topic, or check its name",
    ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of the topic, or send smaller records",
    ErrorCode.RECORD_LIST_TOO_LARGE: "lower batch.size, or raise segment.bytes of the topic",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "ask for an ACL on the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask for an ACL on the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ask for an ACL on the cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask for an ACL on the transactional id",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another producer has this transactional.id; close this one",
    ErrorCode.PRODUCER_FENCED: "another producer has this transactional.id; close this one",
    ErrorCode.FENCED_INSTANCE_ID: "another consumer has this group.instance.id; close this one",
    ErrorCode.NOT_ENOUGH_REPLICAS: "bring brokers back, or lower min.insync.replicas of the topic",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "shorten the metadata, or raise offset.metadata.max.bytes of the broker",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "lower transaction.timeout.ms",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "raise group.max.size of the broker, or start fewer members",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "choose another compression.type",
}
