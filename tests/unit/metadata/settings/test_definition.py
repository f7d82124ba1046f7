"""Parsing and printing of single values, as Kafka's ConfigDef does it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.metadata.settings.definition import (
    ANY,
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MEDIUM,
    PASSWORD,
    SHORT,
    STRING,
    Password,
    Setting,
    Type,
    double_text,
)
from ottla.metadata.settings.error import InvalidValue, SettingError
from ottla.metadata.settings.rule import (
    GzipLevel,
    ListOf,
    OffsetReset,
    OneOf,
    Rule,
    Servers,
    ThrottledReplicas,
    Voters,
    at_least,
    between,
    list_of,
)


def setting(kind: Type, valid: Rule = ANY) -> Setting:
    return Setting("x", kind, None, MEDIUM, valid, "Doc.")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (BOOLEAN, "false", False),
        (INT, " +7 ", 7),
        (INT, "-2147483648", -(2**31)),
        (SHORT, "32767", 32767),
        (LONG, "9223372036854775807", 2**63 - 1),
        (DOUBLE, "1e3", 1000.0),
        (DOUBLE, ".5d", 0.5),
        (STRING, "  a b ", "a b"),
        (LIST, "", ()),
        (LIST, "a , b,c", ("a", "b", "c")),
        (LIST, "a,", ("a", "")),
        (PASSWORD, "s", Password("s")),
    ],
)
def test_parse(kind: Type, text: str, value: object) -> None:
    assert setting(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (BOOLEAN, "yes", "Expected value to be either true or false"),
        (INT, "2147483648", "Not a number of type INT"),
        (INT, "1_000", "Not a number of type INT"),
        (INT, "٣", "Not a number of type INT"),
        (INT, "", "Not a number of type INT"),
        (SHORT, "40000", "Not a number of type SHORT"),
        (LONG, "1.0", "Not a number of type LONG"),
        (LONG, "9" * 10_000, "Not a number of type LONG"),
        (DOUBLE, "much", "Not a number of type DOUBLE"),
    ],
)
def test_refused_text(kind: Type, text: str, reason: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        setting(kind).parse(text)
    assert str(refused.value) == f"Invalid value {text} for configuration x: {reason}"
    assert refused.value.allowed


@pytest.mark.parametrize(
    ("kind", "rule", "good", "bad"),
    [
        (INT, at_least(1), "1", "0"),
        (INT, between(-1, 3), "3", "4"),
        (DOUBLE, between(0, 1), "1.0", "1.01"),
        (INT, GzipLevel(), "-1", "0"),
        (STRING, OneOf(("a", "b")), "a", "A"),
        (STRING, OneOf(("ES256",), ignore_case=True), "es256", "es"),
        (LIST, list_of("compact", "delete"), "delete,compact", "delete,delete"),
        (LIST, list_of("compact", "delete"), "", "keep"),
        (LIST, ListOf(empty=False), "a", ""),
        (LIST, ListOf(), "a,b", "a,,b"),
        (LIST, ThrottledReplicas(), "0:1,1:2", "0-1"),
        (LIST, ThrottledReplicas(), "*", "*,0:1"),
        (LIST, Voters(), "1@localhost:9093,2@[::1]:9093", "localhost:9093"),
        (LIST, Servers(), "localhost:9093", "localhost"),
        (STRING, OffsetReset(), "by_duration:P1DT2H", "by_duration:-PT1H"),
        (STRING, OffsetReset(), "earliest", "by_duration:P"),
    ],
)
def test_rules(kind: Type, rule: Rule, good: str, bad: str) -> None:
    setting(kind, rule).parse(good)
    with pytest.raises(SettingError):
        setting(kind, rule).parse(bad)


def test_bounds_are_named_as_kafka_names_them() -> None:
    with pytest.raises(InvalidValue, match="^Invalid value 0 for configuration x: Value must be at least 1$"):
        setting(INT, at_least(1)).parse("0")
    with pytest.raises(InvalidValue, match="Value must be no more than 3$"):
        setting(INT, between(0, 3)).parse("4")


def test_a_password_is_never_printed() -> None:
    secret = setting(PASSWORD).parse("hunter2")
    assert isinstance(secret, Password)
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == setting(PASSWORD).text(secret) == "hunter2"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.05, "0.05"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (-12345678.9, "-1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_print_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text


@given(st.floats(allow_nan=False))
def test_doubles_survive_printing(value: float) -> None:
    assert setting(DOUBLE).parse(double_text(value)) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_survive_printing(value: int) -> None:
    text = setting(LONG).text(value)
    assert text is not None
    assert setting(LONG).parse(text) == value


@given(st.sampled_from(list(Type)), st.text())
def test_only_a_setting_error_comes_out(kind: Type, text: str) -> None:
    try:
        setting(kind).parse(text)
    except SettingError as error:
        assert error.name == "x"
