"""The errors of clients.

E1  Every error that a client raises is a ClientError, or a SettingError for a setting with a value that is not allowed.
E2  `retriable` says whether the same call may succeed later. The client has already retried such a call until its
    timeout.
E3  `hint` says what to do, where something can be done.
"""

from collections.abc import Mapping
from typing import Any

from ottla.wire.errors import ErrorCode


class ClientError(Exception):
    """The base class of all errors of clients.

    `retriable` says whether the same call may succeed later. `hint` says what to do, or is empty.
    """

    retriable: bool = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nhint: {self.hint}" if self.hint else message


class Refused(ClientError):
    """A broker answered with an error code, which is in `code`."""

    def __init__(
        self, code: ErrorCode, message: str | None = None, *, about: str = "", hint: str = ""
    ) -> None:
        said = message or code.name.replace("_", " ").lower()
        super().__init__(f"{about}: {said} ({code.name})" if about else f"{said} ({code.name})", hint=hint)
        self.code = code
        self.retriable = code.retriable


class Fenced(Refused):
    """Another client uses the same transactional.id or group.instance.id. This client can only be closed."""


class Disconnected(ClientError):
    """The connection to a broker was lost, or could not be opened."""

    retriable = True


class TimedOut(ClientError):
    """A call did not finish before its timeout. The broker may have carried out the request nevertheless."""

    retriable = True


class NoBroker(TimedOut):
    """No broker could be reached before the timeout."""


class Unsupported(ClientError):
    """The broker does not support this request, or only in a version that is too old for it."""


class Malformed(ClientError):
    """A broker sent bytes that are not valid in Kafka's protocol."""


class Closed(ClientError):
    """The client is closed."""


class BufferFull(ClientError):
    """The buffer of the producer (buffer.memory) has no room for another record."""

    retriable = True


class TopicUnknown(ClientError):
    """The client does not know this topic, or this partition, yet."""

    retriable = True


class RecordTooLarge(ClientError):
    """A record is larger than the producer (max.request.size) or the broker allows."""


class SerializationFailed(ClientError):
    """A serializer or deserializer failed, or a part of a record has the wrong type."""


class Aborted(ClientError):
    """The record was not sent, because its transaction was aborted."""


class MustAbort(ClientError):
    """The transaction has failed. Abort it and begin another. `__cause__` is the error that made it fail."""


class WrongState(ClientError):
    """The call is not allowed in the current state of the client. The message says what to do first."""


class NoOffset(ClientError):
    """A partition has no offset to read from, and `auto.offset.reset` is none."""


class SomeFailed(ClientError):
    """A call about several things failed for some of them.

    `errors` has an error for each key that failed, and `results` has the result of each key that did not.
    """

    def __init__(self, errors: Mapping[Any, ClientError], results: Mapping[Any, Any]) -> None:
        first = "; ".join(str(error).partition("\n")[0] for error in tuple(errors.values())[:3])
        more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
        super().__init__(f"{len(errors)} of {len(errors) + len(results)} failed: {first}{more}")
        self.errors = dict(errors)
        self.results = dict(results)
        self.retriable = all(error.retriable for error in errors.values())


class CommitFailed(ClientError):
    """The offsets were not committed, because the group was rebalanced without this member."""


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
