"""C1 and C2: how many elements a message of a peer may hold, in Python and in C alike."""

import pytest

from ottla.wire.compiling import compile_codec
from ottla.wire.elements import ELEMENTS_MAX
from ottla.wire.errors import ProtocolError
from ottla.wire.message import Message
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.fetch import FetchRequest
from ottla.wire.messages.metadata import MetadataResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequest

_Partition = FetchRequest.FetchTopic.FetchPartition
_Topics = OffsetFetchRequest.OffsetFetchRequestGroup.OffsetFetchRequestTopics


def texts(count: int) -> Message:
    return DescribeGroupsRequest(groups=["g"] * count)


def structs(count: int) -> Message:
    return FetchRequest(topics=[FetchRequest.FetchTopic(partitions=[_Partition()] * (count - 1))])


def numbers(count: int) -> Message:
    topics = [_Topics(name="t", partition_indexes=[0] * (count - 2))]
    return OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=topics)])


def small_arrays(count: int) -> Message:
    """Many arrays, none of them long."""
    each = FetchRequest.FetchTopic(partitions=[_Partition()])
    return FetchRequest(topics=[each] * (count // 2))


def subscribed(count: int) -> Message:
    return ConsumerProtocolSubscription(topics=["t"] * count)


@pytest.mark.parametrize("make", [texts, structs, numbers, small_arrays, subscribed])
def test_a_message_of_a_peer_with_too_many_elements_is_refused(make):
    fits = make(ELEMENTS_MAX)
    cls, version = type(fits), type(fits).versions[-1]
    in_python = compile_codec(cls, "decoder", version)
    for decode in (cls.decoder(version), in_python):
        data = fits.encode(version)
        assert decode(data, 0, len(data))[1] == len(data)
        data = make(ELEMENTS_MAX + 2).encode(version)
        with pytest.raises(ProtocolError, match=f"more than {ELEMENTS_MAX} elements"):
            decode(data, 0, len(data))


def test_an_answer_may_have_any_number():
    topic = MetadataResponse.MetadataResponseTopic(name="t")
    version = MetadataResponse.versions[-1]
    data = MetadataResponse(topics=[topic] * (ELEMENTS_MAX + 1)).encode(version)
    assert len(MetadataResponse.decode(data, version).topics) == ELEMENTS_MAX + 1
