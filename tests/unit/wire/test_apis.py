"""The table of APIs, and the header versions it rules."""

import subprocess
import sys

import pytest

from ottla.wire.apis import APIS, BY_KEY, BY_NAME, NEVER, Api


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_row_agrees_with_its_classes(api: Api) -> None:
    for cls in (api.request, api.response):
        assert cls.api_key == api.key
        assert cls.versions == api.versions
        assert (NEVER if cls.flexible is None else cls.flexible) == api.first_flexible


def test_rows_are_in_the_order_of_their_keys_and_unique() -> None:
    keys = [api.key for api in APIS]
    assert keys == sorted(set(keys))
    assert len(BY_NAME) == len(BY_KEY) == len(APIS) == 91


def test_an_unfinished_version_is_not_advertised() -> None:
    assert BY_NAME["InitProducerId"].versions[-1] == 6
    assert BY_NAME["InitProducerId"].stable_versions[-1] == 5
    assert BY_NAME["Produce"].stable_versions == BY_NAME["Produce"].versions


@pytest.mark.parametrize(
    ("name", "version", "request_header", "response_header"),
    [
        ("Produce", 8, 1, 0),
        ("Produce", 9, 2, 1),
        ("ApiVersions", 2, 1, 0),
        ("ApiVersions", 3, 2, 0),
        ("ApiVersions", 5, 2, 0),
        ("SaslHandshake", 1, 1, 0),
        ("OffsetDelete", 0, 1, 0),
        ("Vote", 0, 2, 1),
    ],
)
def test_header_versions(name: str, version: int, request_header: int, response_header: int) -> None:
    api = BY_NAME[name]
    assert api.request_header_version(version) == request_header
    assert api.response_header_version(version) == response_header


def test_knowing_the_apis_imports_no_message() -> None:
    program = (
        "import sys, ottla.wire.apis; print([m for m in sys.modules if m.startswith('ottla.wire.messages.')])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
