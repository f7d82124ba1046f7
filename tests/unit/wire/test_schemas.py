"""Every declaration against Kafka's own schema file, field by field and version by version.

The files are looked for in $OTTLA_KAFKA_SCHEMAS, or in shared/kafka-schemas beside the checkout.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.apis import APIS, NEVER
from ottla.wire.catalog import every_message
from ottla.wire.field import UNSET, version_range
from ottla.wire.message import Message, Struct, fields_of
from ottla.wire.primitive import Primitive

BESIDE = Path(__file__).parents[3].parent / "shared" / "kafka-schemas"
FOLDER = Path(os.environ.get("OTTLA_KAFKA_SCHEMAS", BESIDE))

pytestmark = pytest.mark.skipif(
    not (FOLDER / "requests").is_dir(), reason=f"no schema files in {FOLDER}; set OTTLA_KAFKA_SCHEMAS"
)

CLASSES = {cls.__name__: cls for cls in every_message()}
ZERO_VALUES = {"string": "", "bytes": b"", "bool": False, "float64": 0.0, "uuid": bytes(16)}


def load(path: Path) -> dict[str, Any]:
    text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
    schema: dict[str, Any] = json.loads(text)
    return schema


SCHEMAS = {
    schema["name"]: schema for path in sorted(FOLDER.rglob("*.json")) if (schema := load(path)).get("name")
}
LIVE = sorted(name for name, schema in SCHEMAS.items() if schema["validVersions"] != "none")


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("KRaft", "Kraft")).lower()


def versions_of(text: str | None) -> set[int]:
    return set(version_range(text or "none"))


def expected_default(spec: dict[str, Any], kind: str, array: bool, nullable: bool) -> Any:
    text = spec.get("default")
    if "tag" in spec and not array and kind[0].isupper() and not nullable:
        return None
    # Kafka reads a JSON null as no default at all; only the word "null" stands for one.
    if text is None or text == "":
        if kind == "records":
            return None if nullable else b""
        if array or kind[0].isupper():
            return UNSET
        return ZERO_VALUES.get(kind, 0)
    if text == "null":
        return None
    if kind == "bool":
        return str(text).lower() == "true"
    return text if kind == "string" else int(str(text), 0)


def check_struct(
    cls: type[Struct],
    specs: list[dict[str, Any]],
    live: set[int],
    structs: dict[str, list[dict[str, Any]]],
    path: str,
) -> None:
    fields = list(fields_of(cls))
    for spec in specs:
        present = versions_of(spec.get("versions", spec.get("taggedVersions"))) & live
        if not present:
            continue
        where = f"{path}.{spec['name']}"
        assert fields, f"{where} is not declared"
        field = fields.pop(0)
        assert field.name == snake(spec["name"]), where
        kind = spec["type"].removeprefix("[]")
        array = spec["type"].startswith("[]")
        nullable = versions_of(spec.get("nullableVersions")) & present
        assert field.array == array, where
        assert set(field.versions) & live == present, where
        assert set(field.nullable) & present == nullable, where
        assert versions_of(spec.get("taggedVersions")) & present == (
            set() if field.tag is None else present
        ), where
        assert field.tag == spec.get("tag"), where
        assert field.default == expected_default(spec, kind, array, bool(nullable)), where
        assert type(field.default) is type(expected_default(spec, kind, array, bool(nullable))), where
        assert field.flexible == (spec.get("flexibleVersions") != "none"), where
        if present != live:
            assert field.ignorable == (str(spec.get("ignorable", False)).lower() == "true"), where
        if isinstance(field.kind, Primitive):
            assert field.kind.name == kind, where
        else:
            assert field.kind.__name__ == kind, where
            check_struct(field.kind, spec.get("fields") or structs[kind], present, structs, where)
    assert not fields, f"{path} declares {[field.name for field in fields]}, which the schema does not have"


@pytest.mark.parametrize("name", LIVE)
def test_a_declaration_says_what_the_schema_says(name: str) -> None:
    schema = SCHEMAS[name]
    cls: type[Message] = CLASSES[name]
    live = versions_of(schema["validVersions"])
    flexible = versions_of(schema.get("flexibleVersions"))
    assert cls.api_key == schema.get("apiKey")
    assert set(cls.versions) == live
    assert cls.flexible == (min(flexible) if flexible else None)
    structs = {each["name"]: each["fields"] for each in schema.get("commonStructs", [])}
    check_struct(cls, schema["fields"], live, structs, name)


def test_nothing_is_declared_that_has_no_schema() -> None:
    assert set(CLASSES) == set(LIVE)


def test_only_the_requests_kafka_removed_are_left_out() -> None:
    gone = {name.removesuffix("Request").removesuffix("Response") for name in set(SCHEMAS) - set(LIVE)}
    assert gone == {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"}


def test_the_api_table_agrees_with_the_schemas() -> None:
    requests = {name: each for name, each in SCHEMAS.items() if each["type"] == "request" and name in LIVE}
    assert {api.name + "Request" for api in APIS} == set(requests)
    for api in APIS:
        schema = requests[api.name + "Request"]
        assert api.key == schema["apiKey"]
        assert api.versions == version_range(schema["validVersions"])
        assert api.listeners == set(schema["listeners"])
        assert api.unstable == schema.get("latestVersionUnstable", False)
        flexible = version_range(schema["flexibleVersions"])
        assert api.first_flexible == (flexible[0] if flexible else NEVER)
