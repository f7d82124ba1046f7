"""What a refused setting says: the name, the value, and what would have been allowed.

The first line is worded as Kafka words it, since it travels to clients in AlterConfigs and CreateTopics answers.
`allowed` and `hint` are for a person at a terminal. No hint is worked out before somebody reads it: clients never see
one, and finding the nearest name takes a thousand times longer than finding out that there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class SettingError(ValueError):
    """A setting cannot have this value; `str()` is the message a Kafka client would see."""

    def __init__(self, message: str, *, name: str, allowed: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.name = name
        self.allowed = allowed
        self._hint = hint

    @property
    def hint(self) -> str:
        """What to do about it; empty when there is nothing to say."""
        return self._hint


class InvalidValue(SettingError):
    """A known setting was given a value that its type or its rule refuses."""

    def __init__(self, name: str, value: object, reason: str, allowed: str = "", hint: str = "") -> None:
        message = f"Invalid value {value} for configuration {name}"
        super().__init__(f"{message}: {reason}" if reason else message, name=name, allowed=allowed, hint=hint)
        self.value = value


class UnknownSetting(SettingError):
    """No setting has this name; the hint gives the closest one that exists."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"Unknown {kind} config name: {name}", name=name)
        self._known = known

    @property
    def hint(self) -> str:
        """The closest name that exists."""
        return closest(self.name, self._known)


class ConflictingSettings(SettingError):
    """Each value is fine alone, but not together with the others."""


class MistakenRequest(SettingError):
    """What was asked cannot be asked at all: Kafka answers it with INVALID_REQUEST rather than INVALID_CONFIG."""


def closest(name: str, known: Iterable[str]) -> str:
    """A sentence with the nearest known name, or an empty string when nothing is near."""
    # Imported here because nobody needs it until something is wrong.
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""
