"""The states of a transaction, numbered as they are stored and named as they are shown."""

from enum import IntEnum


class State(IntEnum):
    """Where a transactional id stands.

    DEAD and PREPARE_EPOCH_FENCE are passed through inside one decision and never recorded: an id that expires is gone
    at once, and a producer is fenced by the very record that aborts its transaction. Filters may still name them.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name that tools show, such as `PrepareCommit`."""
        return _LABELS[self]

    @property
    def settling(self) -> bool:
        """True while the end is decided and its markers are on their way."""
        return self in _SETTLING

    @property
    def idle(self) -> bool:
        """True when nothing is open, so that a producer may begin anew and an unused id may expire."""
        return self in _IDLE


_LABELS = {state: state.name.title().replace("_", "") for state in State}
_SETTLING = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})
_IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
BY_LABEL = {label: state for state, label in _LABELS.items()}
