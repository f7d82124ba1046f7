"""Deleting topics, by name or by id."""

from collections import Counter

from ottla.controller.view import View, check_size
from ottla.metadata.topics import Topic
from ottla.replicated.decision import Decision
from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.records.metadata import RemoveTopicRecord
from ottla.wire.uuid import ZERO_UUID

Result = DeleteTopicsResponse.DeletableTopicResult
_Key = tuple[str | None, bytes]
_DISABLED_SINCE = 3  # the version that brought TOPIC_DELETION_DISABLED


def delete_topics(view: View, request: DeleteTopicsRequest, version: int) -> Decision[DeleteTopicsResponse]:
    """Remove the topics that exist; what is named twice is left alone, also when once by name and once by id."""
    asked: list[_Key] = [(name, ZERO_UUID) for name in request.topic_names]
    asked += [(topic.name, topic.topic_id) for topic in request.topics]
    if not view.values["delete.topic.enable"]:
        return Decision(
            DeleteTopicsResponse(responses=[_disabled(key, version) for key in dict.fromkeys(asked)])
        )
    times = Counter(asked)
    by_id = {topic_id for name, topic_id in times if name is None}
    results: dict[bytes, Result] = {}
    refused: list[Result] = []
    for key, count in times.items():
        name, topic_id = key
        try:
            topic = _find(view, key, count)
        except BrokerError as error:
            refused.append(
                Result(name=name, topic_id=topic_id, error_code=error.code, error_message=error.message)
            )
            continue
        result = results.setdefault(topic.id, Result(name=topic.name, topic_id=topic.id))
        if name is not None and topic.id in by_id:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "The provided topic name maps to an ID that was already supplied."
    records = tuple(RemoveTopicRecord(topic_id=id) for id, result in results.items() if not result.error_code)
    check_size(records)
    return Decision(DeleteTopicsResponse(responses=[*results.values(), *refused]), records)


def _find(view: View, key: _Key, count: int) -> Topic:
    name, topic_id = key
    if name is None and topic_id == ZERO_UUID:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and topic_id != ZERO_UUID:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if count > 1:
        what = "name" if name is not None else "id"
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
    topics = view.image.topics
    topic = topics.by_name.get(name) if name is not None else topics.by_id.get(topic_id)
    if topic is None and name is not None:
        message = "This server does not host this topic-partition."
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return topic


def _disabled(key: _Key, version: int) -> Result:
    name, topic_id = key
    if version < _DISABLED_SINCE:
        message = "This version does not support topic deletion."
        return Result(
            name=name, topic_id=topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=message
        )
    return Result(name=name, topic_id=topic_id, error_code=ErrorCode.TOPIC_DELETION_DISABLED)
