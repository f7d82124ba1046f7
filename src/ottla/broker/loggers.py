"""The loggers of this process under Kafka's names for levels, as the broker-logger resource shows and changes them.

These are Python's own loggers: `root` and every logger that a library or Ottla has made. Levels hold until the process
ends, as in Kafka, and are not written down.
"""

import logging
import re

from ottla.wire.errors import BrokerError, ErrorCode
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

ROOT = "root"
LEVELS = {"FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5}
SET, DELETE, APPEND, SUBTRACT = range(4)

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource


def levels() -> dict[str, str]:
    """Every logger with the level that counts for it, its own or an ancestor's."""
    known = logging.root.manager.loggerDict
    names = sorted(name for name, logger in known.items() if isinstance(logger, logging.Logger))
    found = {name: _level_name(logging.getLogger(name).getEffectiveLevel()) for name in names}
    return {ROOT: _level_name(logging.root.level)} | found


def alter(resource: Resource, node_id: int, *, validate_only: bool) -> None:
    """Change levels; BrokerError says why not, and then nothing is changed."""
    named = node_id_of(resource.resource_name, "Node id")
    if named != node_id:
        message = f"Unexpected node id. Expected {node_id}, but received {named}"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    known = levels()
    for change in resource.configs:
        _check(change.name, change.config_operation, change.value, known)
    if not validate_only:
        for change in resource.configs:
            level = LEVELS[change.value or ""] if change.config_operation == SET else logging.NOTSET
            logging.getLogger(None if change.name == ROOT else change.name).setLevel(level)


def node_id_of(name: str, what: str) -> int:
    """The number of a node that a resource is named by."""
    if not re.fullmatch(r"[+-]?\d{1,10}", name, re.ASCII) or not -(2**31) <= int(name) < 2**31:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"{what} must be an integer, but it is: {name}")
    return int(name)


def _check(name: str, operation: int, value: str | None, known: dict[str, str]) -> None:
    if operation in (APPEND, SUBTRACT):
        word = "APPEND" if operation == APPEND else "SUBTRACT"
        message = f"{word} operation is not allowed for the BROKER_LOGGER resource"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    if operation not in (SET, DELETE):
        message = f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    if name not in known:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == DELETE and name == ROOT:
        message = f"Removing the log level of the {ROOT} logger is not allowed"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    if operation == SET and value not in LEVELS:
        message = (
            f"Cannot set the log level of {name} to {value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}"
        )
        raise BrokerError(ErrorCode.INVALID_CONFIG, message)


def _level_name(level: int) -> str:
    return next((name for name, least in LEVELS.items() if level >= least), "TRACE")
