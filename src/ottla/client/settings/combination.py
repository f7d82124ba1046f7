"""Settings that are fine alone but not together, and those that follow from others, as Kafka's clients have them.

Each function takes all values, and the names that were given, and changes the values in place or raises.
"""

import itertools
import logging
import re
from typing import Any

from ottla.metadata.settings.definition import INT_MAX
from ottla.metadata.settings.error import ConflictingSettings, InvalidValue

Values = dict[str, Any]
Given = frozenset[str]

LOGGER = logging.getLogger("ottla.client")

_IDEMPOTENT_IN_FLIGHT_MAX = 5
_MEMBER = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")
_producers, _consumers, _admins = itertools.count(1), itertools.count(1), itertools.count(1)

_SHARE_ONLY = ("share.acknowledgement.mode", "share.acquire.mode")
_NOT_FOR: dict[str, tuple[str, ...]] = {
    "classic": ("group.remote.assignor", *_SHARE_ONLY),
    "consumer": (
        "partition.assignment.strategy",
        "heartbeat.interval.ms",
        "session.timeout.ms",
        *_SHARE_ONLY,
    ),
}
_NOT_FOR_SHARE: tuple[str, ...] = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "isolation.level",
    "partition.assignment.strategy",
    "interceptor.classes",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol",
    "group.remote.assignor",
)


def combine(kind: str, values: Values, given: Given) -> None:
    """Check and refine the values of one kind of client."""
    _combine_connection(values, given)
    if kind == "producer":
        _combine_acknowledgements(values, given)
        _combine_delivery(values, given)
        _combine_transactions(values, given)
    elif kind == "admin":
        _combine_admin(values, given)
    else:
        _combine_group(kind, values, given)
    values["client.id"] = values["client.id"] or _client_id(kind, values)


def _client_id(kind: str, values: Values) -> str:
    if kind == "producer":
        return f"producer-{values['transactional.id'] or next(_producers)}"
    if kind == "admin":
        return f"adminclient-{next(_admins)}"
    return f"consumer-{values['group.id']}-{values['group.instance.id'] or next(_consumers)}"


def _refused(message: str, name: str, hint: str = "") -> ConflictingSettings:
    return ConflictingSettings(message, name=name, hint=hint)


def _combine_connection(values: Values, given: Given) -> None:
    if values["security.protocol"] != "PLAINTEXT":
        hint = "leave security.protocol at PLAINTEXT, and point the client at a plaintext listener"
        raise _refused("TLS and SASL are not there yet", "security.protocol", hint)
    if "reconnect.backoff.ms" in given and "reconnect.backoff.max.ms" not in given:
        # A pause that was set explicitly does not grow, unless its limit was set too.
        values["reconnect.backoff.max.ms"] = values["reconnect.backoff.ms"]
    for name in ("retry.backoff", "socket.connection.setup.timeout"):
        if values[f"{name}.ms"] > values[f"{name}.max.ms"]:
            LOGGER.warning("%s.ms is above %s.max.ms, which holds from the start", name, name)
            values[f"{name}.ms"] = values[f"{name}.max.ms"]


def _combine_acknowledgements(values: Values, given: Given) -> None:
    acks = values["acks"] = -1 if values["acks"] == "all" else int(values["acks"])
    if values["enable.idempotence"]:
        chosen = "enable.idempotence" in given
        if values["retries"] == 0:
            if chosen:
                raise _refused("enable.idempotence needs retries above 0", "retries")
            values["enable.idempotence"] = False
        if acks != -1:
            if chosen:
                raise _refused("enable.idempotence needs acks=all", "acks")
            values["enable.idempotence"] = False
        in_flight = values["max.in.flight.requests.per.connection"]
        if in_flight > _IDEMPOTENT_IN_FLIGHT_MAX:
            message = f"enable.idempotence allows {_IDEMPOTENT_IN_FLIGHT_MAX} requests in flight, not {in_flight}"
            hint = "lower max.in.flight.requests.per.connection, or set enable.idempotence=false"
            raise _refused(message, "max.in.flight.requests.per.connection", hint)


def _combine_delivery(values: Values, given: Given) -> None:
    least_ms = min(values["linger.ms"] + values["request.timeout.ms"], INT_MAX)
    if values["delivery.timeout.ms"] < least_ms:
        if "delivery.timeout.ms" in given:
            message = "delivery.timeout.ms must not be below linger.ms + request.timeout.ms"
            raise _refused(message, "delivery.timeout.ms", f"give it at least {least_ms}")
        LOGGER.warning("delivery.timeout.ms is %d, which linger.ms and request.timeout.ms make", least_ms)
        values["delivery.timeout.ms"] = least_ms


def _combine_transactions(values: Values, given: Given) -> None:
    if "transactional.id" in given and not values["enable.idempotence"]:
        raise _refused("a transactional.id needs enable.idempotence", "transactional.id")
    if values["transaction.two.phase.commit.enable"] and "transaction.timeout.ms" in given:
        message = "with transaction.two.phase.commit.enable no transaction times out"
        raise _refused(message, "transaction.timeout.ms", "leave transaction.timeout.ms out")


def _combine_group(kind: str, values: Values, given: Given) -> None:
    group, member = values["group.id"], values["group.instance.id"]
    if group == "":
        raise InvalidValue("group.id", "''", "it may not be empty", hint="leave it out to read without a group")
    if member is not None and not _MEMBER.fullmatch(member):
        reason = "it may have 249 letters, digits, '.', '_' and '-'"
        raise InvalidValue("group.instance.id", member, reason)
    if kind == "share":
        unfit, what = _NOT_FOR_SHARE, "a share consumer"
        values["group.protocol"] = "share"
        values["enable.auto.commit"] = False
        if group is None:
            raise InvalidValue("group.id", None, "a share consumer is always in a group")
    else:
        protocol = values["group.protocol"]
        unfit, what = _NOT_FOR[protocol], f"group.protocol={protocol}"
        if group is None:
            if "enable.auto.commit" in given and values["enable.auto.commit"]:
                raise _refused("enable.auto.commit needs a group.id", "enable.auto.commit")
            values["enable.auto.commit"] = False
        if protocol == "classic" and values["heartbeat.interval.ms"] >= values["session.timeout.ms"]:
            message = "heartbeat.interval.ms must be below session.timeout.ms"
            raise _refused(message, "heartbeat.interval.ms")
    mistaken = [name for name in unfit if name in given]
    if mistaken:
        raise _refused(f"{', '.join(mistaken)} cannot be set with {what}", mistaken[0])


def _combine_admin(values: Values, given: Given) -> None:
    servers, controllers = values["bootstrap.servers"], values["bootstrap.controllers"]
    if bool(servers) == bool(controllers):
        message = "give bootstrap.servers or bootstrap.controllers" + (", not both" if servers else "")
        raise _refused(message, "bootstrap.servers", "bootstrap.servers is host:port, as in localhost:9092")
    if values["default.api.timeout.ms"] < values["request.timeout.ms"]:
        if "default.api.timeout.ms" in given:
            message = "default.api.timeout.ms must not be below request.timeout.ms"
            raise _refused(message, "default.api.timeout.ms")
        values["default.api.timeout.ms"] = values["request.timeout.ms"]
