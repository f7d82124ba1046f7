"""The settings of HTTP services: under Kafka's and Confluent's names where those exist, else beginning with `ottla.`.

H1  Every setting here is obeyed. A name that is not here stops the start, and so does a value that is not allowed.
"""

from collections.abc import Mapping

from ottla.http.limits import Limits
from ottla.http.tls import Tls
from ottla.metadata.settings.definition import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    STRING,
    Password,
    Setting,
    Value,
    by_name,
)
from ottla.metadata.settings.error import ConflictingSettings, UnknownSetting
from ottla.metadata.settings.rule import ANY, at_least, one_of

_PROTOCOLS = {"TLSv1.2": "tls1.2", "TLSv1.3": "tls1.3"}

HTTP_SETTINGS: tuple[Setting, ...] = (
    Setting("ottla.http.host", STRING, "127.0.0.1", HIGH, ANY,
            "The address on which services listen; empty for every interface."),
    Setting("ottla.http.access.log", BOOLEAN, False, MEDIUM, ANY,
            "Whether each request is a line in the log, through the logger ottla.http.access."),
    Setting("http2.enabled", BOOLEAN, True, LOW, ANY,
            "Whether HTTP/2 is spoken beside HTTP/1.1, also without TLS to clients that begin with it."),
    Setting("idle.timeout.ms", LONG, 30_000, LOW, at_least(1),
            "How long a connection may be silent: before a request is whole, between requests, and while an answer "
            "waits to be taken."),
    Setting("shutdown.graceful.ms", INT, 5_000, LOW, at_least(0),
            "How long a stop waits for the requests that are under way."),
    Setting("connector.connection.limit", INT, 1_000, LOW, at_least(1),
            "Connections to a service at most; further ones are closed."),
    Setting("max.request.header.size", INT, 65_536, LOW, at_least(8_192),
            "Bytes of the head of a request at most; a larger one is refused with 431."),
    Setting("ottla.http.request.bytes.max", INT, 10 << 20, MEDIUM, at_least(1),
            "Bytes of the body of a request at most; a larger one is refused with 413."),
    Setting("ottla.http.held.bytes.max", LONG, 64 << 20, LOW, at_least(1),
            "Bytes of bodies that a service holds at most, over all requests; beyond it they are refused with 503."),
    Setting("ottla.http.requests.max", INT, 500, LOW, at_least(1),
            "Requests of a service at once; beyond it they are refused with 503."),
    Setting("ottla.http.request.timeout.ms", INT, 60_000, MEDIUM, at_least(1),
            "How long a request may take before its client gets 504."),
    Setting("ssl.keystore.type", STRING, "PEM", MEDIUM, one_of("PEM"),
            "The form of the files of keys and certificates."),
    Setting("ssl.keystore.location", STRING, None, HIGH, ANY,
            "The file with the key and the certificates of the services; where there is one, they speak HTTPS."),
    Setting("ssl.key.password", PASSWORD, None, HIGH, ANY,
            "The password of the key, where it has one."),
    Setting("ssl.truststore.location", STRING, None, HIGH, ANY,
            "The file with the authorities who vouch for the certificates of clients."),
    Setting("ssl.client.authentication", STRING, "NONE", MEDIUM, one_of("NONE", "REQUESTED", "REQUIRED"),
            "Whether clients show a certificate: not, if they have one, or always."),
    Setting("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), MEDIUM, ANY,
            "Versions of TLS that are spoken: TLSv1.2, TLSv1.3 or both."),
)  # fmt: skip

_BY_NAME = by_name(HTTP_SETTINGS)


class HttpSettings:
    """The typed value of every setting of the HTTP services."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        """SettingError says what is wrong with `given`."""
        values: dict[str, Value] = {name: setting.default_value for name, setting in _BY_NAME.items()}
        for name, text in (given or {}).items():
            if name not in _BY_NAME:
                raise UnknownSetting("HTTP service", name, _BY_NAME)
            values[name] = _BY_NAME[name].parse(text)
        self._values = values
        self.tls = self._tls()

    def _integer(self, name: str) -> int:
        value = self._values[name]
        assert isinstance(value, int)
        return value

    def _text(self, name: str) -> str | None:
        value = self._values[name]
        assert value is None or isinstance(value, str)
        return value.reveal() if isinstance(value, Password) else value

    @property
    def host(self) -> str:
        """The address on which services listen."""
        return self._text("ottla.http.host") or ""

    @property
    def has_access_log(self) -> bool:
        """Whether each request is a line in the log."""
        return bool(self._values["ottla.http.access.log"])

    @property
    def has_http2(self) -> bool:
        """Whether HTTP/2 is spoken."""
        return bool(self._values["http2.enabled"])

    @property
    def limits(self) -> Limits:
        """How much a client may take."""
        return Limits(
            body_bytes_max=self._integer("ottla.http.request.bytes.max"),
            held_bytes_max=self._integer("ottla.http.held.bytes.max"),
            head_bytes_max=self._integer("max.request.header.size"),
            connections_max=self._integer("connector.connection.limit"),
            requests_max=self._integer("ottla.http.requests.max"),
            timeout_s=self._integer("ottla.http.request.timeout.ms") / 1000,
            idle_s=self._integer("idle.timeout.ms") / 1000,
            stop_s=self._integer("shutdown.graceful.ms") / 1000,
        )

    def _tls(self) -> Tls | None:
        keystore = self._text("ssl.keystore.location")
        authorities = self._text("ssl.truststore.location")
        wanted = self._text("ssl.client.authentication")
        if wanted != "NONE" and not (keystore and authorities):
            raise ConflictingSettings(
                "certificates of clients cannot be checked without ssl.keystore.location and ssl.truststore.location",
                name="ssl.client.authentication",
            )
        protocols = self._values["ssl.enabled.protocols"]
        assert isinstance(protocols, tuple)
        if not protocols or not set(protocols) <= _PROTOCOLS.keys() or "TLSv1.3" not in protocols:
            raise ConflictingSettings(
                f"{','.join(protocols)} cannot be spoken",
                name="ssl.enabled.protocols",
                allowed="TLSv1.3, or TLSv1.2,TLSv1.3",
            )
        if keystore is None:
            return None
        return Tls(
            certificate=keystore,
            key=keystore,
            key_password=self._text("ssl.key.password"),
            authorities=authorities if wanted != "NONE" else None,
            needs_client_certificate=wanted == "REQUIRED",
            protocol_min=min(_PROTOCOLS[each] for each in protocols),
        )
