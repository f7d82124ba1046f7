"""Profiles: what the file says, who wins, and what `ottla profile` does to it."""

import argparse
import json
import tomllib
from pathlib import Path

import pytest

from ottla.cli.connection import Connection, output_form, pairs
from ottla.cli.error import FAILED, MISUSED, OK, CommandError
from ottla.cli.main import main
from ottla.cli.profiles import Profile, Profiles, read_profiles, toml

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Settings of nobody but the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("OTTLA_CONFIG", "OTTLA_PROFILE", "OTTLA_BOOTSTRAP"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "ottla" / "config.toml"


def options(**given: object) -> argparse.Namespace:
    nothing = {"bootstrap": None, "profile": None, "output": None, "settings": [], "first_settings": []}
    return argparse.Namespace(**nothing | given)


def test_set_use_list_show_delete(config: Path, capsys: Printed) -> None:
    assert main(["profile", "set", "local", "bootstrap=localhost:9092"]) == OK
    assert main(["profile", "set", "far", "bootstrap=a:1,b:2", "output=json", "client.id=me"]) == OK
    assert tomllib.loads(config.read_text()) == {
        "current": "local",
        "profiles": {
            "local": {"bootstrap": "localhost:9092"},
            "far": {"bootstrap": "a:1,b:2", "output": "json", "settings": {"client.id": "me"}},
        },
    }
    capsys.readouterr()
    assert main(["profile", "list"]) == OK
    assert capsys.readouterr().out.splitlines() == [
        "NAME   CURRENT  BOOTSTRAP       OUTPUT  SETTINGS",
        "far    no       a:1,b:2         json    client.id=me",
        "local  yes      localhost:9092  -       -",
    ]
    assert main(["profile", "use", "far"]) == OK
    # The profile's own form counts now.
    assert main(["profile", "show"]) == OK
    assert json.loads(capsys.readouterr().out) == {
        "name": "far",
        "bootstrap": "a:1,b:2",
        "output": "json",
        "settings": {"client.id": "me"},
    }
    assert main(["profile", "set", "far", "output=", "client.id="]) == OK
    assert read_profiles().named["far"] == Profile("a:1,b:2")
    assert main(["profile", "delete", "far"]) == OK
    assert read_profiles() == Profiles(str(config), None, {"local": Profile("localhost:9092")})
    assert main(["profile", "show"]) == FAILED


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["use", "nowhere"], "there is no profile nowhere"),
        (["show", "nowhere"], "there is no profile nowhere"),
        (["delete", "nowhere"], "there is no profile nowhere"),
        (["set", "a b", "bootstrap=x:1"], "a b is no name"),
        (["set", "a", "bootstrap"], "is not key=value"),
        (["set", "a", "output=xml"], "output is xml"),
        (["set", "a", "clientid=me"], "clientid"),
        (["set", "a", "bogus=1"], "docs/reference/client-settings.md lists all there are"),
        (["set", "a", "bootstrap=nonsense"], "Invalid value nonsense"),
        (["set", "a", "bootstrap=http://x:1"], "which is a web address"),
        (["set", "a", "linger.ms=soon"], "Invalid value soon for configuration linger.ms"),
    ],
)
def test_what_cannot_be(arguments: list[str], complaint: str, config: Path, capsys: Printed) -> None:
    assert main(["profile", *arguments]) == MISUSED
    assert complaint in capsys.readouterr().err
    assert not config.exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("current = 1", "current is a text"),
        ("nonsense", "config.toml: "),
        ("colour = 'red'", "colour means nothing"),
        ("[profiles.a]\nhost = 'x'", "host means nothing in profiles.a"),
        ("[profiles.a.settings]\nclient.id = 'x'", "in quotes"),
        ("[profiles.a]\noutput = 'xml'", "output is xml"),
        ("current = 'gone'", "there is no such profile"),
        ("[profiles.a]\nsettings = 1", "is not a table"),
    ],
)
def test_a_file_that_says_something_else(content: str, complaint: str, config: Path, capsys: Printed) -> None:
    config.parent.mkdir()
    config.write_text(content)
    with pytest.raises(CommandError, match=complaint) as refused:
        Connection(options())
    assert refused.value.exit_code == MISUSED
    assert str(config) in str(refused.value)


def test_what_is_said_more_closely_wins(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Connection(options()).bootstrap == "localhost:9092"
    main(["profile", "set", "one", "bootstrap=one:1", "linger.ms=7", "client.id=mine"])
    main(["profile", "set", "two", "bootstrap=two:2", "output=yaml"])
    assert Connection(options()).bootstrap == "one:1"
    assert Connection(options(profile="two")).bootstrap == "two:2"
    assert output_form(options(profile="two")) == "yaml"
    assert output_form(options(profile="two", output="json")) == "json"
    monkeypatch.setenv("OTTLA_PROFILE", "two")
    assert Connection(options()).bootstrap == "two:2"
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "environment:3")
    assert Connection(options(profile="one")).bootstrap == "environment:3"
    assert Connection(options(settings=["bootstrap.servers=x:4"])).bootstrap == "x:4"
    assert Connection(options(bootstrap="b:5", settings=["bootstrap.servers=x:4"])).bootstrap == "b:5"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("PLAINTEXT://a:1", "a:1"),
        ("plaintext://a:1, b:2", "a:1,b:2"),
        ("INTERNAL://[::1]:1", "[::1]:1"),
        ("a:1,", "a:1"),
    ],
)
def test_an_address_may_name_its_protocol(given: str, meant: str) -> None:
    assert Connection(options(bootstrap=given)).bootstrap == meant


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"bootstrap": ""}, "-b is empty"),
        ({"bootstrap": " , "}, "-b is empty"),
        ({"settings": ["bootstrap.servers="]}, "-X bootstrap.servers is empty"),
        ({"bootstrap": "http://a:1"}, "-b is http://a:1, which is a web address"),
        ({"bootstrap": "b:2,HTTPS://a:1"}, "which is a web address"),
        ({"bootstrap": "SASL_SSL://a:1"}, "which asks for security"),
    ],
)
def test_what_is_no_address(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint) as refused:
        Connection(options(**given))
    assert refused.value.exit_code == MISUSED and refused.value.hint


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "")
    assert Connection(options()).bootstrap == "localhost:9092"


def test_each_client_takes_what_is_for_it() -> None:
    main(["profile", "set", "one", "linger.ms=7", "client.id=mine"])
    connection = Connection(options(first_settings=["retries=3"], settings=["client.id=closer"]))
    producing = connection.settings("producer", linger_ms=9, acks=None)
    assert {"linger.ms": 9, "client.id": "closer", "retries": "3"}.items() <= producing.items()
    assert "acks" not in producing
    assert "linger.ms" not in connection.settings("admin")
    # What is said for this command goes through, for its client to refuse.
    assert Connection(options(settings=["linger.ms=1"])).settings("admin")["linger.ms"] == "1"


def test_names_and_values_of_any_kind_survive(config: Path) -> None:
    profiles = Profiles(
        str(config), "a.b", {"a.b": Profile('h"1', None, {"sasl.jaas.config": 'x\\y "z"\x7f\n'})}
    )
    assert tomllib.loads(toml(profiles))["profiles"]["a.b"]["settings"] == {
        "sasl.jaas.config": 'x\\y "z"\x7f\n'
    }
    profiles.save()
    assert read_profiles() == profiles


def test_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    monkeypatch.setenv("OTTLA_CONFIG", str(tmp_path / "other.toml"))
    assert main(["profile", "set", "x", "bootstrap=x:1"]) == OK
    assert (tmp_path / "other.toml").exists() and not config.exists()


@pytest.mark.parametrize("text", ["a", "=b", ""])
def test_a_setting_is_a_pair(text: str) -> None:
    with pytest.raises(CommandError, match="is not key=value"):
        pairs("-X", [text])
