"""Named clusters, kept in `ottla/config.toml` under the user's settings (XDG_CONFIG_HOME, or ~/.config).

    current = "local"

    [profiles.local]
    bootstrap = "localhost:9092"

    [profiles.production]
    bootstrap = "kafka-1:9092,kafka-2:9092"
    output = "json"

    [profiles.production.settings]
    "client.id" = "operations"

F1  The file is replaced as a whole or not at all. What it says is checked when it is read, and said with its path.
"""

import json
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from ottla.cli.error import MISUSED, CommandError
from ottla.cli.output.printer import FORMS
from ottla.world.disk import RealDisk
from ottla.world.shell import settings_home, variable

NAME = re.compile(r"[A-Za-z0-9_.-]+")
# What a profile says itself; any other name is a client's setting.
OWN = ("bootstrap", "output")


@dataclass
class Profile:
    """How to reach a cluster, and how to show what it says."""

    bootstrap: str | None = None
    output: str | None = None
    settings: dict[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return what is set, as the file has it."""
        own = {name: getattr(self, name) for name in OWN if getattr(self, name) is not None}
        return own | ({"settings": dict(self.settings)} if self.settings else {})


@dataclass
class Profiles:
    """The file: profiles by name, and which of them counts when none is named."""

    path: str
    current: str | None = None
    named: dict[str, Profile] = field(default_factory=dict)

    def get(self, name: str) -> Profile:
        """Return a profile; CommandError when there is none of that name."""
        if name not in self.named:
            known = ", ".join(sorted(self.named))
            hint = f"there are {known}" if known else f"ottla profile set {name} bootstrap=localhost:9092"
            raise CommandError(f"there is no profile {name} in {self.path}", hint, exit_code=MISUSED)
        return self.named[name]

    def save(self) -> None:
        """Write the file."""
        disk = RealDisk()
        disk.make_dirs(self.path.rpartition("/")[0])
        disk.write_atomic(self.path, toml(self).encode())


def config_path() -> str:
    """Return where the file is: OTTLA_CONFIG, or in the user's settings."""
    return variable("OTTLA_CONFIG") or f"{settings_home()}/ottla/config.toml"


def read_profiles() -> Profiles:
    """Return what the file says; a missing one says nothing."""
    path = config_path()
    try:
        text = RealDisk().read_bytes(path).decode()
    except (FileNotFoundError, NotADirectoryError):
        return Profiles(path)
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not text", exit_code=MISUSED) from None
    try:
        return _profiles(path, tomllib.loads(text))
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise CommandError(f"{path}: {error}", exit_code=MISUSED) from None


def chosen_profile(name: str | None) -> Profile:
    """Return the profile that counts: the one named, that of OTTLA_PROFILE, the current one, or an empty one."""
    wanted = name or variable("OTTLA_PROFILE")
    profiles = read_profiles()
    if wanted is None and profiles.current is not None and profiles.current not in profiles.named:
        raise CommandError(
            f"{profiles.path}: current is {profiles.current}, and there is no such profile",
            "choose another with ottla profile use",
            exit_code=MISUSED,
        )
    wanted = wanted or profiles.current
    return profiles.get(wanted) if wanted is not None else Profile()


def _profiles(path: str, document: dict[str, Any]) -> Profiles:
    stray = sorted(set(document) - {"current", "profiles"})
    if stray:
        raise ValueError(f"{stray[0]} means nothing here; there are current and profiles")
    current = document.get("current")
    named = document.get("profiles", {})
    if not (current is None or isinstance(current, str)) or not isinstance(named, dict):
        raise ValueError("current is a text, and profiles a table")
    return Profiles(path, current, {name: _profile(name, each) for name, each in named.items()})


def _profile(name: str, document: Any) -> Profile:
    if not isinstance(document, dict):
        raise ValueError(f"profiles.{name} is not a table")
    stray = sorted(set(document) - {*OWN, "settings"})
    if stray:
        raise ValueError(
            f"{stray[0]} means nothing in profiles.{name}; there are {', '.join(OWN)} and settings"
        )
    settings = document.get("settings", {})
    if not isinstance(settings, dict):
        raise ValueError(f"profiles.{name}.settings is not a table")
    profile = Profile(settings={key: _setting_text(key, value) for key, value in settings.items()})
    for key in OWN:
        if key in document:
            assign(profile, key, _setting_text(key, document[key]))
    return profile


def _setting_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(_setting_text(name, each) for each in value)
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, dict):
        raise ValueError(f'{name} is a table; write names with dots in quotes, as in "client.id" = "me"')
    raise ValueError(f"{name} is neither text nor number")


def assign(profile: Profile, name: str, value: str | None) -> None:
    """Set one thing of a profile, or take it away; ValueError says what is wrong with it."""
    if name == "output" and value is not None and value not in FORMS:
        raise ValueError(f"output is {value}, and can be {', '.join(FORMS)}")
    if name in OWN:
        setattr(profile, name, value)
    elif value is None:
        profile.settings.pop(name, None)
    else:
        profile.settings[name] = value


def toml(profiles: Profiles) -> str:
    """Return the content of the file."""
    parts = [] if profiles.current is None else [f"current = {_quoted(profiles.current)}\n"]
    for name, profile in sorted(profiles.named.items()):
        head = f"profiles.{_key(name)}"
        lines = [
            f"{key} = {_quoted(getattr(profile, key))}" for key in OWN if getattr(profile, key) is not None
        ]
        parts.append("\n".join([f"[{head}]", *lines, ""]))
        if profile.settings:
            lines = [f"{_quoted(key)} = {_quoted(value)}" for key, value in profile.settings.items()]
            parts.append("\n".join([f"[{head}.settings]", *lines, ""]))
    return "\n".join(parts)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    # JSON's way to quote is TOML's as well, but for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
