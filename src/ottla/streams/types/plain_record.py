"""Which dataclasses and NamedTuples do nothing but keep what they are given.

Of such a class Spark can make one, and look into one, without Python. Any other is made by Python, and functions that
make one or look into one are called: its `__new__`, `__init__`, `__post_init__` or a property may change everything.
"""

import dataclasses
from functools import cache
from typing import Any

# The file name of code that the standard library makes of a text, as it does for dataclasses and NamedTuples.
_GENERATED = "<string>"


def is_record(given: type) -> bool:
    """Return whether a class is a dataclass or a NamedTuple."""
    return dataclasses.is_dataclass(given) or (issubclass(given, tuple) and hasattr(given, "_fields"))


@cache
def is_plain_record(given: type) -> bool:
    """Return whether making one of a class keeps what it is given, and does nothing besides."""
    if type(given).__call__ is not type.__call__:
        return False
    looking_up: Any = given.__getattribute__
    if looking_up not in (object.__getattribute__, tuple.__getattribute__):
        return False
    if dataclasses.is_dataclass(given):
        return _is_plain_dataclass(given)
    return is_record(given) and _is_plain_named_tuple(given)


def _is_plain_dataclass(given: Any) -> bool:
    owner = next(each for each in given.__mro__ if "__dataclass_fields__" in each.__dict__)
    made = owner.__dict__.get("__init__")
    if given.__new__ is not object.__new__ or hasattr(given, "__post_init__"):
        return False
    if not owner.__dataclass_params__.init or given.__init__ is not made or not _is_generated(made):
        return False
    # A frozen one refuses to be changed, but not while it is made.
    frozen = owner.__dataclass_params__.frozen and _is_generated(given.__setattr__)
    if given.__setattr__ is not object.__setattr__ and not frozen:
        return False
    return not any(_is_computed(getattr(given, each.name, None)) for each in dataclasses.fields(given))


def _is_plain_named_tuple(given: Any) -> bool:
    owner = next(each for each in given.__mro__ if "_fields" in each.__dict__)
    if owner.__bases__ != (tuple,) or given._fields is not owner._fields:
        return False
    if given.__new__ is not owner.__new__ or not _is_generated(owner.__new__):
        return False
    if given.__init__ is not object.__init__ or given.__iter__ is not tuple.__iter__:
        return False
    return all(getattr(given, each) is owner.__dict__[each] for each in owner._fields)


def _is_generated(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename == _GENERATED


def _is_computed(found: Any) -> bool:
    """Whether an attribute of a class stands before what its objects keep under that name; slots keep, too."""
    return hasattr(type(found), "__set__") and type(found).__name__ != "member_descriptor"
