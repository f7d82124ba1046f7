"""Two independent codecs as judges: kio at every version it knows, kafka-python building from values."""

import importlib
import io
from typing import Any

import pytest

from ottla.wire.apis import APIS, BY_NAME, Api
from ottla.wire.message import Message, Struct, fields_of
from tests.unit.wire.samples import Sampler

kio_index = pytest.importorskip("kio.index")
kio_serial = pytest.importorskip("kio.serial")
kio_constants = pytest.importorskip("kio.static.constants")


# kio 0.6 was generated from schemas somewhat older than ours.
KIO_LACKS = {
    ("ApiVersions", 5),
    ("TxnOffsetCommit", 6),
    ("DeleteGroups", 3),
    ("StreamsGroupHeartbeat", 1),
    ("StreamsGroupDescribe", 1),
    ("StreamsGroupTopologyDescriptionUpdate", 0),
    ("UnregisterController", 0),
}


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_kio_writes_what_it_read_from_us(api: Api) -> None:
    kinds = kio_constants.EntityType
    for kind, cls in ((kinds.request, api.request), (kinds.response, api.response)):
        for version in cls.versions:
            if (api.name, version) in KIO_LACKS:
                continue
            module = kio_index.load_payload_module(api.key, version, kind)
            theirs = getattr(module, cls.__name__)
            read, write = kio_serial.entity_reader(theirs), kio_serial.entity_writer(theirs)
            sampler = Sampler(api.key * 1000 + version)
            for _ in range(3):
                data = sampler.message(cls, version).encode(version)
                entity, size = read(data, 0)
                out = io.BytesIO()
                write(out, entity)
                assert (size, out.getvalue()) == (len(data), data), f"{cls.__name__} v{version}"


KAFKA_PYTHON = {
    "kafka.protocol.producer": [
        "Produce",
        "InitProducerId",
        "EndTxn",
        "AddPartitionsToTxn",
        "AddOffsetsToTxn",
    ],
    "kafka.protocol.consumer": [
        *("Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch", "OffsetForLeaderEpoch"),
        *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"),
    ],
    "kafka.protocol.metadata": ["Metadata", "FindCoordinator", "ApiVersions"],
    "kafka.protocol.admin": [
        *("CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords", "DescribeConfigs"),
        *("DescribeGroups", "ListGroups", "DeleteGroups", "DescribeAcls", "CreateAcls", "DeleteAcls"),
    ],
}
PAIRS = [
    (home, name + kind)
    for home, names in KAFKA_PYTHON.items()
    for name in names
    for kind in ("Request", "Response")
]
# Beyond these, kafka-python has its own idea of authorized operations.
LAST = {"MetadataResponse": 7, "DescribeGroupsResponse": 2}


def rebuilt(struct: Struct, theirs: Any, version: int) -> Any:
    """The same values in kafka-python's containers, field by field and by name."""
    values = {}
    for field in fields_of(type(struct)):
        value = getattr(struct, field.name)
        if version not in field.versions or (field.tag is not None and value in (None, field.default, [])):
            continue
        if field.is_struct and value is not None:
            inner = getattr(theirs, field.kind.__name__)
            value = (
                [rebuilt(item, inner, version) for item in value]
                if field.array
                else rebuilt(value, inner, version)
            )
        elif not field.is_struct and field.kind.name == "uuid":
            uuid = importlib.import_module("uuid").UUID
            value = [uuid(bytes=item) for item in value] if field.array else uuid(bytes=value)
        values[field.name] = value
    return theirs(version=version, **values)


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("home", "name"), PAIRS, ids=[name for _, name in PAIRS])
def test_kafka_python_encodes_the_same_values_to_the_same_bytes(home: str, name: str) -> None:
    theirs = getattr(importlib.import_module(home), name)
    api = BY_NAME[name.removesuffix("Request").removesuffix("Response")]
    cls: type[Message] = api.request if name.endswith("Request") else api.response
    for version in cls.versions:
        if version > LAST.get(name, theirs.max_version):
            break
        sampler = Sampler(api.key * 1000 + version)
        for _ in range(3):
            message = sampler.message(cls, version)
            expected = bytes(rebuilt(message, theirs, version).encode(version=version))
            assert message.encode(version) == expected, f"{name} v{version}: {message}"
