"""Elections that a user asks for."""

from ottla.controller.election import Election, Transition
from ottla.controller.view import View, check_size
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

Topic = ElectLeadersResponse.ReplicaElectionResult
Result = Topic.PartitionResult
_KINDS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def elect_leaders(view: View, request: ElectLeadersRequest) -> Decision[ElectLeadersResponse]:
    """Elect leaders for the partitions named, or for all; of all, only those where something happened are named."""
    election = _KINDS.get(request.election_type)
    if election is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    everything = request.topic_partitions is None
    asked = [(each.topic, each.partitions) for each in request.topic_partitions or ()]
    if everything:
        asked = [(topic.name, list(topic.partitions)) for topic in view.image.topics.by_name.values()]
    records: list[Message] = []
    answers = []
    for topic, indexes in asked:
        results = []
        for index in indexes:
            code, message = _elect(view, topic, index, election, records)
            check_size(records)
            if not (everything and code == ErrorCode.ELECTION_NOT_NEEDED):
                results.append(Result(partition_id=index, error_code=code, error_message=message))
        answers.append(Topic(topic=topic, partition_result=results))
    return Decision(ElectLeadersResponse(replica_election_results=answers), tuple(records))


def _elect(
    view: View, name: str, index: int, election: Election, records: list[Message]
) -> tuple[ErrorCode, str | None]:
    topic = view.image.topics.by_name.get(name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    state = topic.partitions.get(index)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    preferred = election is Election.PREFERRED
    if (preferred and state.leader == state.replicas[0]) or (not preferred and state.leader >= 0):
        return ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    transition = Transition(view, topic, index)
    transition.election = election
    record = transition.record()
    if record is None:
        if preferred:
            return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
        message = "Eligible topic partition leaders are not available."
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message
    records.append(record)
    return ErrorCode.NONE, None
