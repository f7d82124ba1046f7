"""Old names of the public API. They keep working, and a DeprecationWarning names the new one.

D1  The warning points at the line of the caller.
D2  A type checker sees the new name only, or sees the old one marked as deprecated (PEP 702).
D3  A duration under its old name is in milliseconds. A number that stood in its old place, without a name, is too: it
    never turns into as many seconds.
"""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = [
    "OttlaDeprecationWarning",
    "deprecated",
    "rename_overridden",
    "renamed_durations",
    "renamed_field",
    "renamed_parameter",
    "renamed_timeouts",
    "warn_of_attribute",
]


class OttlaDeprecationWarning(DeprecationWarning):
    """A name of Ottla's public API is deprecated."""


F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

if TYPE_CHECKING:
    from typing_extensions import deprecated
else:

    def deprecated(message: str) -> Callable[[F], F]:
        """Mark a function as deprecated; every call warns. `message` names what to use."""

        def decorate(function: F) -> F:
            @functools.wraps(function)
            def call(*arguments: Any, **keywords: Any) -> Any:
                _warn(message)
                return function(*arguments, **keywords)

            call.__deprecated__ = message
            return call

        return decorate


def renamed_durations(*places: str, **names: str) -> Callable[[F], F]:
    """Accept durations under old names, in milliseconds: `renamed_durations(timeout_ms="timeout")`.

    `places` are the old names of parameters that could once be given without a name, behind those that still can.
    """

    def decorate(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        count_max = sum(each.kind is not each.KEYWORD_ONLY for each in parameters)

        def translated(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> dict[str, Any]:
            old_ones = dict(zip(places, arguments[count_max:], strict=False))
            old_ones |= {name: value for name, value in keywords.items() if name in names}
            translation = {name: value for name, value in keywords.items() if name not in names}
            for old, value in old_ones.items():
                new = names.get(old, old)
                if new in translation:
                    raise TypeError(f"{function.__qualname__}() got {new} twice")
                translation[new] = _in_seconds(value) if old in names else value
                unit = ", in seconds" if old in names else ""
                _warn(f"{function.__qualname__}({old}) is deprecated: use {new}={translation[new]!r}{unit}")
            return translation

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if count_max < len(arguments) <= count_max + len(places) or not names.keys().isdisjoint(keywords):
                keywords = translated(arguments, keywords)
                arguments = arguments[:count_max] + arguments[count_max + len(places) :]
            return function(*arguments, **keywords)

        return call  # type: ignore[return-value]

    return decorate


def renamed_parameter(old: str, new: str) -> Callable[[F], F]:
    """Accept a parameter under its old name as well."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if old in keywords:
                keywords[new] = keywords.pop(old)
                _warn(f"{function.__qualname__}({old}) is deprecated: use {new}")
            return function(*arguments, **keywords)

        return call  # type: ignore[return-value]

    return decorate


def renamed_field(old: str, new: str) -> Callable[[C], C]:
    """Accept a field of a dataclass under its old name as well."""

    def decorate(kind: C) -> C:
        type.__setattr__(kind, "__init__", renamed_parameter(old, new)(kind.__init__))  # type: ignore[misc]
        return kind

    return decorate


def rename_overridden(kind: type, **names: str) -> None:
    """Let a method that a new subclass overrides under its old name stand under the new one."""
    for old, new in names.items():
        if old in vars(kind):
            _warn(f"{kind.__qualname__}.{old} is deprecated: name it {new}", between=1)
            if new not in vars(kind):
                setattr(kind, new, vars(kind)[old])


def renamed_timeouts(kind: C) -> C:
    """Accept `timeout_ms` for `timeout` in every public method of a class."""
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            if "timeout" in inspect.signature(method).parameters:
                setattr(kind, name, renamed_durations(timeout_ms="timeout")(method))
    return kind


def warn_of_attribute(module: str, old: str, new: str) -> None:
    """Warn that a name of a module is deprecated; called by the module's `__getattr__`."""
    _warn(f"{module}.{old} is deprecated: use {module}.{new}", between=1)


def _warn(message: str, *, between: int = 0) -> None:
    """Warn at the line that called into this module; `between` is how many frames of ours are in between."""
    level, frame = 1, sys._getframe()
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, OttlaDeprecationWarning, stacklevel=level + between)


def _in_seconds(value: Any) -> Any:
    """Return milliseconds as seconds. Numbers below zero stood for none."""
    if value is None or isinstance(value, timedelta):
        return value
    return None if value < 0 else value / 1000
