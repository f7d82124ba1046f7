"""Every message class of the package, for those who need them all: tests, fuzzers, reference pages."""

from importlib import import_module
from pkgutil import iter_modules

from ottla.wire import messages, records
from ottla.wire.header import RequestHeader, ResponseHeader
from ottla.wire.message import Message


def every_message() -> list[type[Message]]:
    """Import all declarations and list them, headers first, then by module and place."""
    found: list[type[Message]] = [RequestHeader, ResponseHeader]
    for package in (messages, records):
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            found += [
                each
                for each in vars(import_module(module.name)).values()
                if isinstance(each, type) and issubclass(each, Message) and each is not Message
            ]
    return found
