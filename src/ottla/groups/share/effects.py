"""What share groups ask of the share coordinators, which keep the state of their share partitions."""

from dataclasses import dataclass

from ottla.replicated.decision import Effect
from ottla.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest


@dataclass(frozen=True, slots=True)
class InitializeState(Effect):
    """Ask for state, and give the answer to `ShareGroups.state_initialized`, with the token if there is one."""

    request: InitializeShareGroupStateRequest
    token: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteState(Effect):
    """Ask for state to be deleted, and give the answer to `ShareGroups.state_deleted`, with the token."""

    request: DeleteShareGroupStateRequest
    token: int
