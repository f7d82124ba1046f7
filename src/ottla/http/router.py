"""Finds the row of a table that answers a request.

R1  Paths are compared segment by segment before anything is decoded, so `/subjects/a%2Fb` has two segments and the
    second is `a/b`.
R2  A segment that stands in the table goes before a parameter. A slash at the end means nothing.
R3  A path that is not in the table is 404; one that is there for other methods is 405 and names those.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

from ottla.http.error import HttpError
from ottla.http.route import Route

S = TypeVar("S")


@dataclass(slots=True)
class _Node(Generic[S]):
    """What follows a part of a path."""

    literal: dict[str, "_Node[S]"] = field(default_factory=dict)
    parameter: "_Node[S] | None" = None
    routes: dict[str, tuple[Route[S], tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match(Generic[S]):
    """The row that answers, and the values of its parameters."""

    route: Route[S]
    parameters: dict[str, str]


class Router(Generic[S]):
    """A table of routes, made ready to be searched."""

    def __init__(self, routes: Iterable[Route[S]]) -> None:
        self._root: _Node[S] = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route[S]) -> None:
        node, names = self._root, []
        for segment in _segments(route.path):
            if segment.startswith("{") and segment.endswith("}"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literal.setdefault(segment, _Node())
        assert route.method not in node.routes, f"{route.method} {route.path} stands in the table twice"
        node.routes[route.method] = (route, tuple(names))

    def find(self, method: str, raw_path: bytes) -> Match[S]:
        """Return the row for a method and an undecoded path; HttpError 400, 404 or 405 where there is none."""
        segments = [_decoded(each) for each in _segments(raw_path.decode("latin-1"))]
        found = self._walk(self._root, segments, 0, [])
        if found is None:
            raise HttpError(404)
        node, values = found
        route = node.routes.get(method) or (node.routes.get("GET") if method == "HEAD" else None)
        if route is None:
            raise HttpError(405, headers={"allow": ", ".join(_methods(node))})
        return Match(route[0], dict(zip(route[1], values, strict=True)))

    def methods(self, raw_path: bytes) -> tuple[str, ...]:
        """Return what a path may be asked; HttpError 404 when it is not in the table."""
        segments = [_decoded(each) for each in _segments(raw_path.decode("latin-1"))]
        found = self._walk(self._root, segments, 0, [])
        if found is None:
            raise HttpError(404)
        return _methods(found[0])

    def _walk(
        self, node: _Node[S], segments: list[str], at: int, values: list[str]
    ) -> tuple[_Node[S], list[str]] | None:
        if at == len(segments):
            return (node, values) if node.routes else None
        segment = segments[at]
        literal = node.literal.get(segment)
        if literal is not None:
            found = self._walk(literal, segments, at + 1, values)
            if found is not None:
                return found
        if node.parameter is not None and segment:
            return self._walk(node.parameter, segments, at + 1, [*values, segment])
        return None


def _segments(path: str) -> list[str]:
    return path.removeprefix("/").removesuffix("/").split("/") if path.strip("/") else []


def _decoded(segment: str) -> str:
    if "%" not in segment and segment.isascii():
        return segment
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise HttpError(400, "the path is not UTF-8") from None


def _methods(node: _Node[S]) -> tuple[str, ...]:
    methods = {*node.routes, "OPTIONS"}
    if "GET" in methods:
        methods.add("HEAD")
    return tuple(sorted(methods))
