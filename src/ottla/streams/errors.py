"""What can be wrong with a topology, or with what flows through it."""


class StreamsError(Exception):
    """A topology could not be built or run."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\nhint: {self.hint}" if self.hint else message


class TopologyError(StreamsError):
    """An operator has a wrong argument. Nothing has run yet."""


class TypeMismatch(TopologyError):
    """A type is not possible for records, or not the expected one."""


class Unreadable(StreamsError):
    """The bytes of a record do not fit its serde."""


class TopologyChanged(StreamsError):
    """The checkpoint belongs to a topology with other state. The message says what has changed."""


class FunctionFailed(StreamsError):
    """A function of the user's raised something, or returned what it should not.

    `line` is where, as Python prints it, where that is known; else `place` says where the function stands. `record`
    says which record it was given: `located` adds it on the way up.
    """

    def __init__(self, operator: str, place: str, reason: str, line: str = "", record: str = "") -> None:
        super().__init__(
            f"{operator}: {reason}", hint="mend the function and start again: nothing of the record is lost"
        )
        self.operator = operator
        self.place = place
        self.reason = reason
        self.line = line
        self.record = record

    def located(self, topic: str | None, partition: int | None, offset: int | None) -> "FunctionFailed":
        """Return the same failure with the record that it happened on."""
        if self.record or topic is None:
            return self
        record = f"{topic}-{partition}@{offset}"
        return FunctionFailed(self.operator, self.place, self.reason, self.line, record)

    def __str__(self) -> str:
        record = f", on the record {self.record}" if self.record else ""
        where = f"\n{self.line}" if self.line else f" ({self.place})"
        return f"{self.operator}: {self.reason}{record}{where}\nhint: {self.hint}"

    def __reduce__(self) -> tuple[type, tuple[str, ...]]:
        return type(self), (self.operator, self.place, self.reason, self.line, self.record)
