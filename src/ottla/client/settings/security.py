"""TLS and SASL as a client has them: the broker's own rows, except where Kafka rates them otherwise for clients."""

from dataclasses import replace

from ottla.metadata.settings.broker.oauth import OAUTH_SETTINGS
from ottla.metadata.settings.broker.security import SECURITY_SETTINGS as BROKER_SETTINGS
from ottla.metadata.settings.definition import (
    ANY,
    BOOLEAN,
    HIGH,
    LOW,
    MEDIUM,
    STRING,
    Importance,
    Setting,
    Update,
)
from ottla.metadata.settings.rule import ListOf, OneOf, Rule, between

_BROKERS_ONLY = frozenset(
    {
        "authorizer.class.name",
        "connections.max.reauth.ms",
        "principal.builder.class",
        "sasl.enabled.mechanisms",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.server.callback.handler.class",
        "sasl.server.max.receive.size",
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
        "ssl.client.auth",
        "ssl.principal.mapping.rules",
    }
)

_IMPORTANCE: dict[str, Importance] = {
    "sasl.kerberos.kinit.cmd": LOW,
    "sasl.kerberos.min.time.before.relogin": LOW,
    "sasl.kerberos.ticket.renew.jitter": LOW,
    "sasl.kerberos.ticket.renew.window.factor": LOW,
    "sasl.login.refresh.buffer.seconds": LOW,
    "sasl.login.refresh.min.period.seconds": LOW,
    "sasl.login.refresh.window.factor": LOW,
    "sasl.login.refresh.window.jitter": LOW,
    "ssl.cipher.suites": LOW,
    "ssl.key.password": HIGH,
    "ssl.keymanager.algorithm": LOW,
    "ssl.keystore.certificate.chain": HIGH,
    "ssl.keystore.key": HIGH,
    "ssl.keystore.location": HIGH,
    "ssl.keystore.password": HIGH,
    "ssl.trustmanager.algorithm": LOW,
    "ssl.truststore.certificates": HIGH,
    "ssl.truststore.location": HIGH,
    "ssl.truststore.password": HIGH,
}

_RULE: dict[str, Rule] = {
    "sasl.login.refresh.buffer.seconds": between(0, 3600),
    "sasl.login.refresh.min.period.seconds": between(0, 900),
    "sasl.login.refresh.window.factor": between(0.5, 1.0),
    "sasl.login.refresh.window.jitter": between(0.0, 0.25),
    "sasl.oauthbearer.expected.audience": ListOf(),
    "ssl.cipher.suites": ListOf(),
    "ssl.enabled.protocols": ListOf(),
}

SECURITY_SETTINGS: tuple[Setting, ...] = (
    Setting("security.protocol", STRING, "PLAINTEXT", MEDIUM,
            OneOf(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"), ignore_case=True),
            "How brokers are spoken to: in the open or by TLS, with or without SASL."),
    Setting("sasl.mechanism", STRING, "GSSAPI", MEDIUM, ANY,
            "SASL mechanism with which the client says who it is."),
    Setting("sasl.oauthbearer.header.urlencode", BOOLEAN, False, LOW, ANY,
            "Whether client id and secret are URL-encoded in the Authorization header."),
    *(
        replace(
            setting,
            update=Update.READ_ONLY,
            importance=_IMPORTANCE.get(setting.name, setting.importance),
            valid=_RULE.get(setting.name, setting.valid),
        )
        for setting in (*BROKER_SETTINGS, *OAUTH_SETTINGS)
        if setting.name not in _BROKERS_ONLY and not setting.name.startswith("delegation.")
    ),
)
