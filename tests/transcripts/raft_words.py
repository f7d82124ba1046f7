"""Messages of the quorum in a few words."""

from __future__ import annotations

from typing import Any

from ottla.wire.batch import scan
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message


def text_of(message: Message) -> str:
    """A message in a few words."""
    name = type(message).__name__
    describe = _WORDS.get(name)
    if describe is None:
        code = getattr(message, "error_code", 0)
        return name if not code else f"{name} {ErrorCode(code).name}"
    if getattr(message, "error_code", 0) and describe is not _change_response:
        return f"{name} {ErrorCode(message.error_code).name}"  # type: ignore[attr-defined]
    return describe(message)


def _part(message: Any) -> Any:
    return message.topics[0].partitions[0]


def _vote_request(message: Any) -> str:
    part = _part(message)
    what = "would you vote for me" if part.pre_vote else "vote for me"
    return (
        f"{what} in epoch {part.replica_epoch}, my log ends at {part.last_offset} of {part.last_offset_epoch}"
    )


def _vote_response(message: Any) -> str:
    part = _part(message)
    if part.error_code:
        return _error(part)
    return ("yes" if part.vote_granted else "no") + f", in epoch {part.leader_epoch}{_leader(part)}"


def _begin_request(message: Any) -> str:
    part = _part(message)
    return f"I lead epoch {part.leader_epoch}"


def _end_request(message: Any) -> str:
    part = _part(message)
    line = ", ".join(str(each.candidate_id) for each in part.preferred_candidates)
    return f"I lead epoch {part.leader_epoch} no longer, next are {line or 'any'}"


def _acknowledgement(message: Any) -> str:
    part = _part(message)
    return _error(part) if part.error_code else f"so be it, in epoch {part.leader_epoch}"


def _fetch_request(message: Any) -> str:
    part = message.topics[0].partitions[0]
    return f"fetch from {part.fetch_offset} of {part.last_fetched_epoch} in epoch {part.current_leader_epoch}"


def _fetch_response(message: Any) -> str:
    part = message.responses[0].partitions[0]
    if part.error_code:
        current = part.current_leader
        who = f"{current.leader_id} leads" if current.leader_id >= 0 else "nobody leads"
        return f"{ErrorCode(part.error_code).name}, {who} epoch {current.leader_epoch}"
    if part.diverging_epoch is not None and part.diverging_epoch.epoch >= 0:
        return f"we part after {part.diverging_epoch.end_offset} of {part.diverging_epoch.epoch}"
    if part.snapshot_id is not None and part.snapshot_id.epoch >= 0:
        return f"fetch snapshot {part.snapshot_id.end_offset} of {part.snapshot_id.epoch}"
    known = f"{part.high_watermark} committed" if part.high_watermark >= 0 else "nothing known committed"
    batches = [batch for _, batch in scan(bytes(part.records or b""))]
    if not batches:
        return f"nothing new, {known}"
    return f"records {batches[0].base_offset} to {batches[-1].end_offset}, {known}"


def _piece_request(message: Any) -> str:
    part = _part(message)
    id = part.snapshot_id
    return f"snapshot {id.end_offset} of {id.epoch} from byte {part.position}"


def _piece_response(message: Any) -> str:
    part = _part(message)
    if part.error_code:
        return ErrorCode(part.error_code).name
    return f"bytes {part.position} to {part.position + len(part.unaligned_records)} of {part.size}"


def _change_response(message: Any) -> str:
    if message.error_code:
        return f"{ErrorCode(message.error_code).name}: {message.error_message}"
    return "done"


def _error(part: Any) -> str:
    return f"{ErrorCode(part.error_code).name} in epoch {part.leader_epoch}{_leader(part)}"


def _leader(part: Any) -> str:
    return f", {part.leader_id} leads" if part.leader_id >= 0 else ""


_WORDS = {
    "VoteRequest": _vote_request,
    "VoteResponse": _vote_response,
    "BeginQuorumEpochRequest": _begin_request,
    "BeginQuorumEpochResponse": _acknowledgement,
    "EndQuorumEpochRequest": _end_request,
    "EndQuorumEpochResponse": _acknowledgement,
    "FetchRequest": _fetch_request,
    "FetchResponse": _fetch_response,
    "FetchSnapshotRequest": _piece_request,
    "FetchSnapshotResponse": _piece_response,
    "ApiVersionsRequest": lambda message: "what do you speak",
    "ApiVersionsResponse": lambda message: "kraft.version 0 to 1",
    "AddRaftVoterResponse": _change_response,
    "RemoveRaftVoterResponse": _change_response,
}
