"""What a program gives, and the typed values that come of it."""

import logging

import pytest

from ottla.client.serializer import JSON
from ottla.client.settings import ClientSettings, resolve
from ottla.metadata.settings.error import ConflictingSettings, InvalidValue, SettingError, UnknownSetting


def given(kind: str, **keywords: object) -> ClientSettings:
    needed = {"group_id": "g"} if kind == "share" else {}
    return resolve(kind, "localhost:9092", None, needed | keywords)


def test_values_come_as_python_has_them_or_as_text() -> None:
    settings = resolve(
        "producer",
        ["a:1", "b:2"],
        {"linger.ms": " 7 ", "enable.idempotence": "FALSE", "batch.size": 1},
        {"batch_size": 2, "max_block_ms": None},
    )
    assert settings["bootstrap.servers"] == ("a:1", "b:2")
    assert settings["linger.ms"] == 7
    assert settings["enable.idempotence"] is False
    assert settings["batch.size"] == 2, "a keyword goes first"
    assert settings["max.block.ms"] == 60_000, "None is not given"
    assert settings.given == {"bootstrap.servers", "linger.ms", "enable.idempotence", "batch.size"}
    assert len(settings) == len(list(settings))


def test_addresses_come_from_anywhere() -> None:
    for settings in (
        resolve("consumer", "a:1, [::1]:2"),
        resolve("consumer", None, {"bootstrap.servers": "a:1,[::1]:2"}),
        resolve("consumer", None, None, {"bootstrap_servers": ["a:1", "[::1]:2"]}),
    ):
        assert settings["bootstrap.servers"] == ("a:1", "[::1]:2")


@pytest.mark.parametrize("wrong", ["localhost", "a:b", "", [], ["a:1", "a:1"]])
def test_an_address_is_host_and_port(wrong: str | list[str]) -> None:
    with pytest.raises(SettingError):
        resolve("producer", wrong)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("linger_ms", -1),
        ("linger_ms", "x"),
        ("linger_ms", 1.5),
        ("linger_ms", True),
        ("linger_ms", 2**63),
        ("batch_size", 2**31),
        ("enable_idempotence", 1),
        ("compression_type", "brotli"),
        ("compression_type", 5),
        ("compression_gzip_level", 10),
        ("acks", 2),
        ("acks", True),
        ("client_id", 5),
        ("sasl_login_refresh_window_factor", 0.4),
        ("sasl_login_refresh_window_factor", "much"),
        ("metric_reporters", [1]),
        ("value_serializer", "avro"),
        ("value_serializer", 5),
    ],
)
def test_a_value_that_cannot_be_is_refused(name: str, value: object) -> None:
    with pytest.raises(SettingError) as caught:
        given("producer", **{name: value})
    assert caught.value.name == name.replace("_", ".")


def test_an_unknown_name_brings_the_nearest() -> None:
    with pytest.raises(UnknownSetting) as caught:
        given("producer", lingr_ms=1)
    assert caught.value.hint == "did you mean linger.ms?"
    assert caught.value.__notes__ == ["hint: did you mean linger.ms?"]


def test_a_setting_of_another_client_is_named_as_such() -> None:
    with pytest.raises(SettingError, match="a producer has no setting group.id: it is for consumer"):
        given("producer", group_id="g")


def test_what_has_no_effect_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tools that configure logging in this process may have silenced it.
    monkeypatch.setattr(logging.getLogger("ottla.client"), "disabled", False)
    with caplog.at_level(logging.WARNING, "ottla.client"):
        given("producer", metric_reporters="x.Y", sasl_kerberos_kinit_cmd="k", ssl_provider=None)
    assert [record.getMessage() for record in caplog.records] == [
        "without effect in this client: metric.reporters, sasl.kerberos.kinit.cmd"
    ]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "ottla.client"):
        given("producer", metrics_num_samples=2, linger_ms=1)
        resolve("producer", "a:1", {"config.providers.file.class": "x"})
    assert [record.getMessage() for record in caplog.records] == [
        "without effect in this client: config.providers"
    ]


def test_words_in_any_case_are_spelled_in_one() -> None:
    settings = given("consumer", group_protocol="ConSumer", metadata_recovery_strategy="NONE", group_id="g")
    assert (settings["group.protocol"], settings["metadata.recovery.strategy"]) == ("consumer", "none")
    assert given("consumer", security_protocol="plaintext")["security.protocol"] == "PLAINTEXT"
    assert given("share", share_acquire_mode="record_limit")["share.acquire.mode"] == "RECORD_LIMIT"


def test_tls_and_sasl_are_refused_in_clear_words() -> None:
    for protocol in ("SSL", "SASL_PLAINTEXT", "sasl_ssl"):
        with pytest.raises(ConflictingSettings, match="not there yet"):
            given("admin", security_protocol=protocol)


def test_objects_stay_what_they_are() -> None:
    def choose() -> None: ...

    class Assignor:
        pass

    settings = given("producer", partitioner=choose, interceptors=choose, on_delivery=choose)
    assert settings["partitioner.class"] is choose
    assert settings["interceptor.classes"] == (choose,)
    assert settings["on.delivery"] is choose
    java = "org.apache.kafka.clients.consumer.StickyAssignor"
    mine = Assignor()
    settings = given("consumer", group_id="g", partition_assignment_strategy=[mine, java, "range"])
    assert settings["partition.assignment.strategy"] == (mine, "sticky", "range")
    assert given("consumer", partition_assignment_strategy="range, roundrobin")[
        "partition.assignment.strategy"
    ] == ("range", "roundrobin")
    with pytest.raises(SettingError, match="duplicated"):
        given("consumer", partition_assignment_strategy="range,range")


def test_serializers_are_ready_to_be_called() -> None:
    settings = given("producer", key_serializer="string", value_serializer=JSON)
    assert settings["key.serializer"].call("é") == "é".encode()
    assert settings["value.serializer"].call({"a": 1}) == b'{"a":1}'
    assert given("consumer")["value.deserializer"] is None


def test_clients_have_names() -> None:
    assert given("producer", client_id="me")["client.id"] == "me"
    assert given("producer", transactional_id="t")["client.id"] == "producer-t"
    assert given("consumer", group_id="g", group_instance_id="i")["client.id"] == "consumer-g-i"
    first, second = given("admin")["client.id"], given("admin")["client.id"]
    assert first.startswith("adminclient-") and first != second
    assert given("share")["client.id"].startswith("consumer-g-")


def test_secrets_are_not_printed() -> None:
    assert "hush" not in repr(given("producer", sasl_jaas_config="hush"))


def test_backoff_that_somebody_chose_does_not_grow() -> None:
    assert given("admin", reconnect_backoff_ms=5)["reconnect.backoff.max.ms"] == 5
    assert given("admin", reconnect_backoff_ms=5, reconnect_backoff_max_ms=9)["reconnect.backoff.max.ms"] == 9
    assert given("admin", retry_backoff_ms=5000)["retry.backoff.ms"] == 1000


def test_acknowledgements_are_a_number() -> None:
    assert [given("producer", acks=acks)["acks"] for acks in ("all", "-1", -1, 0, "1")] == [-1, -1, -1, 0, 1]


@pytest.mark.parametrize("hindrance", [{"acks": 1}, {"retries": 0}])
def test_idempotence_gives_way_unless_it_was_chosen(hindrance: dict[str, object]) -> None:
    assert given("producer")["enable.idempotence"] is True
    assert given("producer", **hindrance)["enable.idempotence"] is False
    with pytest.raises(ConflictingSettings):
        given("producer", enable_idempotence=True, **hindrance)
    with pytest.raises(ConflictingSettings):
        given("producer", transactional_id="t", **hindrance)


def test_idempotence_bounds_what_is_in_flight() -> None:
    with pytest.raises(ConflictingSettings, match="5 requests in flight, not 6"):
        given("producer", max_in_flight_requests_per_connection=6)
    assert given("producer", max_in_flight_requests_per_connection=6, enable_idempotence=False)


def test_delivery_takes_no_less_than_one_try() -> None:
    with pytest.raises(ConflictingSettings):
        given("producer", delivery_timeout_ms=30_004)
    assert given("producer", delivery_timeout_ms=30_005)
    assert given("producer", linger_ms=100_000)["delivery.timeout.ms"] == 130_000


def test_two_phases_know_no_timeout() -> None:
    with pytest.raises(ConflictingSettings):
        given("producer", transaction_two_phase_commit_enable=True, transaction_timeout_ms=5)


def test_a_consumer_without_a_group_commits_nothing() -> None:
    assert given("consumer")["enable.auto.commit"] is False
    assert given("consumer", group_id="g")["enable.auto.commit"] is True
    with pytest.raises(ConflictingSettings):
        given("consumer", enable_auto_commit=True)
    with pytest.raises(InvalidValue):
        given("consumer", group_id="")


@pytest.mark.parametrize(
    ("kind", "protocol", "unfit"),
    [
        ("consumer", "consumer", {"session_timeout_ms": 9000}),
        ("consumer", "consumer", {"heartbeat_interval_ms": 3000}),
        ("consumer", "consumer", {"partition_assignment_strategy": "range"}),
        ("consumer", "consumer", {"share_acquire_mode": "record_limit"}),
        ("consumer", "classic", {"group_remote_assignor": "range"}),
        ("consumer", "classic", {"share_acknowledgement_mode": "explicit"}),
        ("consumer", "classic", {"heartbeat_interval_ms": 45_000}),
        ("consumer", "classic", {"group_instance_id": ".."}),
        ("consumer", "classic", {"auto_offset_reset": "smallest"}),
        ("consumer", "classic", {"auto_offset_reset": "by_duration:P-1D"}),
        ("share", None, {"auto_offset_reset": "earliest"}),
        ("share", None, {"enable_auto_commit": False}),
        ("share", None, {"group_protocol": "consumer"}),
        ("share", None, {"group_id": ""}),
    ],
)
def test_a_group_takes_what_its_protocol_knows(
    kind: str, protocol: str | None, unfit: dict[str, object]
) -> None:
    fit: dict[str, object] = {"group_id": "g", "group_protocol": protocol}
    assert given(kind, **fit)
    with pytest.raises(SettingError):
        given(kind, **(fit | unfit))


def test_a_share_consumer_is_in_a_group() -> None:
    with pytest.raises(InvalidValue):
        given("share", group_id=None)


def test_an_offset_reset_may_be_a_duration() -> None:
    for value in ("earliest", "latest", "none", "by_duration:PT1H30M"):
        assert given("consumer", auto_offset_reset=value)["auto.offset.reset"] == value


def test_an_admin_client_speaks_to_brokers_or_to_controllers() -> None:
    assert resolve("admin", None, {"bootstrap.controllers": "a:1"})["bootstrap.servers"] == ()
    for both in ({}, {"bootstrap.servers": "a:1", "bootstrap.controllers": "a:1"}):
        with pytest.raises(ConflictingSettings):
            resolve("admin", None, both)


def test_a_call_of_an_admin_client_takes_no_less_than_one_request() -> None:
    assert given("admin", request_timeout_ms=90_000)["default.api.timeout.ms"] == 90_000
    with pytest.raises(ConflictingSettings):
        given("admin", default_api_timeout_ms=1000)
