"""A long request, cut into requests of some elements each, whose answers are put together.

A request of a megabyte names a hundred thousand partitions, groups or topics. Where each is answered for itself, the
handler is called for some of them in one turn of the loop, and for the next in another (`long_requests.py`).

S1  The answer is that of the whole request: lists are put together in the order of the request, and a topic that lies
    across a border of slices is one topic. Where slices differ in other fields, the first that has an error is right.
S2  Where a handler has to see what is named twice, as those do that refuse it, all its mentions are in one slice, and
    all of one topic follow each other. What is named more than twice is named twice then (`mentions.py`).
"""

import copy
from collections.abc import Callable, Generator, Iterator
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.api import Pending
from ottla.broker.mentions import MENTIONS_MAX
from ottla.wire.message import Message, fields_of

if TYPE_CHECKING:
    from ottla.broker.api import Handler

SLICE = 500
_SORTED_A_TURN = 5_000

# Elements of a request: those it begins with are the same in every slice, the last differ.
Unit = tuple[Any, ...]


class Cut(NamedTuple):
    """Where a request may be cut, and which part of the answer belongs to it.

    Both are paths of arrays, as in "topics.partitions". `keys` say what is named, array by array: the names of fields
    with commas, or nothing for an element that is a value itself; where there are none mentions are not looked at.
    """

    asked: str
    answered: str
    keys: tuple[str, ...] = ()


class InSlices:
    """How to serve a long request whose elements are independent: `size` of them in a turn of the loop.

    The cut is the first that the version of the request has.
    """

    __slots__ = ("cuts", "size")

    def __init__(self, cuts: tuple[Cut, ...], size: int) -> None:
        self.cuts = cuts
        self.size = size

    def __call__(
        self, handle: "Handler", request: Message, version: int, connection: Any, broker: Any
    ) -> Generator[None, None, Message | Pending | None]:
        """Call the handler for each slice, in a turn of its own, and return what they say together."""
        cut = next((each for each in self.cuts if _is_there(each.asked, request, version)), None)
        if cut is None:
            return handle(request, version, connection, broker)
        answers = _Answers(cut.answered.split("."))
        for piece in slices(request, cut, self.size):
            if piece is not None:
                part, continued = piece
                answers.expect(continued, handle(part, version, connection, broker))
            yield
        return answers.all_begun()


def in_slices(*cuts: Cut, size: int = SLICE) -> InSlices:
    """Declare where the requests of an API are cut."""
    return InSlices(cuts, size)


def undivided(
    handle: "Handler", request: Message, version: int, connection: Any, broker: Any
) -> Generator[None, None, Message | Pending | None]:
    """Serve a long request at once, where its elements are decided together; its answer is encoded in pieces."""
    return handle(request, version, connection, broker)
    yield


def slices(request: Message, cut: Cut, size: int) -> Iterator[tuple[Message, int] | None]:
    """Cut a request, and say of each slice how many of its arrays go on with an element of the slice before.

    None stands for a turn in which nothing was ready yet.
    """
    path = cut.asked.split(".")
    units: Iterator[Unit | None] = _units(request, path)
    if cut.keys:
        units = _regrouped(request, path, [_key(names) for names in cut.keys])
    held: list[Unit] = []
    last: Unit | None = None  # of the slice before
    name = _key(cut.keys[-1]) if cut.keys else None
    none = True
    for unit in units:
        if unit is None:
            yield None
            continue
        if len(held) >= size and not (len(unit) == len(path) and _is_mention(unit, held[-1], name)):
            yield _rebuilt(request, path, held), _in_common(last, held[0])
            none, last, held = False, held[-1], []
        held.append(unit)
    if held or none:
        yield _rebuilt(request, path, held), _in_common(last, held[0]) if held else 0


def _is_there(path: str, request: Message, version: int) -> bool:
    first = path.split(".", maxsplit=1)[0]
    field = next(each for each in fields_of(type(request)) if each.name == first)
    return version in field.versions and bool(getattr(request, first))


def _units(node: Any, path: list[str], above: Unit = ()) -> Iterator[Unit]:
    """Every element that may be in a slice of its own, with those it is in. One without any is such itself."""
    elements = getattr(node, path[0])
    if not elements:
        yield above
    elif len(path) == 1:
        for element in elements:
            yield (*above, element)
    else:
        for element in elements:
            yield from _units(element, path[1:], (*above, element))


def _regrouped(request: Message, path: list[str], keys: list[Callable[[Any], Any]]) -> Iterator[Unit | None]:
    """The same with all mentions of one thing behind each other, where it is named first, and no more than two."""
    by_parent: dict[Any, dict[Any, list[Unit]]] = {}
    parents: dict[Any, Unit] = {}
    for number, unit in enumerate(_units(request, path)):
        above = tuple([key(each) for key, each in zip(keys, unit[: len(path) - 1], strict=False)])
        first = parents.setdefault(above, unit[: len(path) - 1])
        named = keys[-1](unit[-1]) if len(unit) == len(path) else None
        mentions = by_parent.setdefault(above, {}).setdefault(named, [])
        if len(mentions) < MENTIONS_MAX:
            mentions.append((*first, *unit[len(path) - 1 :]))
        if number % _SORTED_A_TURN == _SORTED_A_TURN - 1:
            yield None
    for within in by_parent.values():
        for mentions in within.values():
            yield from mentions


def _key(names: str) -> Callable[[Any], Any]:
    if not names:
        return lambda element: element
    found = attrgetter(*names.split(","))

    def key(element: Any) -> Any:
        value = found(element)
        if type(value) is tuple:
            return tuple([frozenset(each) if type(each) is list else each for each in value])
        return value

    return key


def _is_mention(unit: Unit, before: Unit, name: Callable[[Any], Any] | None) -> bool:
    """Whether the same is named as before."""
    return (
        name is not None
        and len(unit) == len(before)
        and all(one is other for one, other in zip(unit[:-1], before[:-1], strict=True))
        and name(unit[-1]) == name(before[-1])
    )


def _in_common(last: Unit | None, first: Unit) -> int:
    """How many elements both are within."""
    count = 0
    for one, other in zip((last or ())[:-1], first[:-1], strict=False):
        if one is not other:
            break
        count += 1
    return count


def _rebuilt(node: Any, path: list[str], units: list[Unit], level: int = 0) -> Any:
    """A request, or an element of one, with no more than these in it."""
    made = copy.copy(node)
    if not units or len(units[0]) <= level:
        return made
    elements: list[Any] = []
    if level == len(path) - 1:
        elements = [unit[level] for unit in units]
    else:
        begin = 0
        while begin < len(units):
            element, end = units[begin][level], begin + 1
            while end < len(units) and units[end][level] is element:
                end += 1
            elements.append(_rebuilt(element, path, units[begin:end], level + 1))
            begin = end
    setattr(made, path[level], elements)
    return made


class _Answers:
    """The answers to the slices, until all are there."""

    __slots__ = ("_continued", "_failure", "_found", "_left", "_path", "_pending")

    def __init__(self, path: list[str]) -> None:
        self._path = path
        self._continued: list[int] = []
        self._found: list[Message | None] = []
        self._left = 0
        self._pending: Pending | None = None
        self._failure: Exception | None = None

    def expect(self, continued: int, reply: Any) -> None:
        """Take the reply to the next slice, now or once it is known."""
        number = len(self._found)
        self._continued.append(continued)
        self._found.append(None)
        self._left += 1
        if isinstance(reply, Pending):
            reply.then(partial(self._take, number), self._failed)
        else:
            self._take(number, reply)

    def _take(self, number: int, message: Message) -> None:
        self._found[number] = message
        self._left -= 1
        if not self._left and self._pending is not None:
            self._pending.resolve(self._joined())

    def _failed(self, error: Exception) -> None:
        if self._pending is None:
            self._failure = error
        else:
            self._pending.fail(error)

    def all_begun(self) -> Message | Pending:
        """Return the answer, or the promise of one."""
        if self._failure is not None:
            raise self._failure
        if not self._left:
            return self._joined()
        pending = self._pending = Pending()
        return pending

    def _joined(self) -> Message:
        messages = [each for each in self._found if each is not None]
        self._found = []
        whole: Message = next((each for each in messages if getattr(each, "error_code", 0)), messages[0])
        elements: list[Any] = getattr(messages[0], self._path[0])
        for message, continued in zip(messages[1:], self._continued[1:], strict=True):
            _go_on(elements, getattr(message, self._path[0]), self._path[1:], continued)
        setattr(whole, self._path[0], elements)
        if hasattr(whole, "throttle_time_ms"):
            whole.throttle_time_ms = max(each.throttle_time_ms for each in messages)  # type: ignore[attr-defined]
        return whole


def _go_on(elements: list[Any], more: list[Any], path: list[str], continued: int) -> None:
    """Put the elements of the next slice behind; the first may be the rest of the last."""
    if not (continued and path and elements and more and _is_rest(elements[-1], more[0], path[0])):
        elements += more
        return
    _go_on(getattr(elements[-1], path[0]), getattr(more[0], path[0]), path[1:], continued - 1)
    elements += more[1:]


def _is_rest(element: Any, more: Any, within: str) -> bool:
    return all(getattr(element, each) == getattr(more, each) for each in element.__slots__ if each != within)
