"""Deleting topics, by name or by id."""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.controller.view import View
from ottla.replicated.decision import Decision
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.records.metadata import RemoveTopicRecord
from ottla.wire.uuid import ZERO_UUID

if TYPE_CHECKING:
    from ottla.wire.message import Message

Result = DeleteTopicsResponse.DeletableTopicResult
_Key = tuple[str | None, bytes]
_DISABLED_SINCE = 3  # the version that brought TOPIC_DELETION_DISABLED


def delete_topics(view: View, request: DeleteTopicsRequest, version: int) -> Decision[DeleteTopicsResponse]:
    """Remove the topics that exist; whatever is named twice, in whichever way, is left alone."""
    asked: list[_Key] = [(name, ZERO_UUID) for name in request.topic_names]
    asked += [(topic.name, topic.topic_id) for topic in request.topics]
    if not view.values["delete.topic.enable"]:
        return Decision(
            DeleteTopicsResponse(responses=[_disabled(key, version) for key in dict.fromkeys(asked)])
        )
    times = Counter(asked)
    results: list[Result] = []
    records: dict[bytes, Message] = {}
    for key, count in times.items():
        name, topic_id = key
        problem = _problem(view, key, count)
        if problem is not None:
            code, message = problem
            results.append(Result(name=name, topic_id=topic_id, error_code=code, error_message=message))
            continue
        topic = view.image.topics.by_name[name] if name is not None else view.image.topics.by_id[topic_id]
        if topic.id in records:
            message = "The provided topic name maps to an ID that was already supplied."
            code = ErrorCode.INVALID_REQUEST
            results.append(Result(name=topic.name, topic_id=topic.id, error_code=code, error_message=message))
            continue
        records[topic.id] = RemoveTopicRecord(topic_id=topic.id)
        results.append(Result(name=topic.name, topic_id=topic.id))
    return Decision(DeleteTopicsResponse(responses=results), tuple(records.values()))


def _problem(view: View, key: _Key, count: int) -> tuple[ErrorCode, str | None] | None:
    name, topic_id = key
    if name is None and topic_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."
    if name is not None and topic_id != ZERO_UUID:
        return ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
    if count > 1:
        return (
            ErrorCode.INVALID_REQUEST,
            "Duplicate topic name." if name is not None else "Duplicate topic id.",
        )
    if name is not None and name not in view.image.topics.by_name:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if name is None and topic_id not in view.image.topics.by_id:
        return ErrorCode.UNKNOWN_TOPIC_ID, None
    return None


def _disabled(key: _Key, version: int) -> Result:
    name, topic_id = key
    if version < _DISABLED_SINCE:
        message = "This version does not support topic deletion."
        return Result(
            name=name, topic_id=topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=message
        )
    return Result(name=name, topic_id=topic_id, error_code=ErrorCode.TOPIC_DELETION_DISABLED)
