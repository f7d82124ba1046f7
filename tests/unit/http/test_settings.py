import pytest

from ottla.http.settings import HTTP_SETTINGS, HttpSettings
from ottla.metadata.settings.error import SettingError


def test_defaults():
    settings = HttpSettings()
    assert settings.tls is None and settings.has_http2 and not settings.has_access_log
    assert settings.host == "127.0.0.1"
    assert settings.limits.timeout_s == 60 and settings.limits.idle_s == 30


def test_every_setting_has_an_effect():
    others = {
        "ottla.http.host": "::1", "ottla.http.access.log": "true", "http2.enabled": "false",
        "ssl.keystore.location": "a.pem", "ssl.key.password": "x", "ssl.truststore.location": "c.pem",
        "ssl.client.authentication": "REQUIRED", "ssl.enabled.protocols": "TLSv1.3",
    }  # fmt: skip
    base = {
        "ssl.keystore.location": "k.pem", "ssl.truststore.location": "t.pem",
        "ssl.client.authentication": "REQUESTED",
    }  # fmt: skip

    def seen(given):
        settings = HttpSettings(given)
        return settings.host, settings.has_access_log, settings.has_http2, settings.limits, settings.tls

    for setting in HTTP_SETTINGS:
        if setting.name != "ssl.keystore.type":
            assert seen(base | {setting.name: others.get(setting.name, "9999")}) != seen(base), setting.name


@pytest.mark.parametrize(
    "given",
    [
        {"ssl.keystor.location": "x"},
        {"ssl.keystore.type": "JKS"},
        {"ssl.client.authentication": "REQUIRED"},
        {"ssl.enabled.protocols": "SSLv3"},
        {"ssl.enabled.protocols": "TLSv1.2"},
        {"connector.connection.limit": "0"},
        {"idle.timeout.ms": "soon"},
    ],
)
def test_what_cannot_be_is_refused(given):
    with pytest.raises(SettingError):
        HttpSettings(given)


def test_the_password_is_not_shown():
    tls = HttpSettings({"ssl.keystore.location": "k.pem", "ssl.key.password": "hush"}).tls
    assert tls is not None and tls.key_password == "hush"
    assert "hush" not in repr(tls)
