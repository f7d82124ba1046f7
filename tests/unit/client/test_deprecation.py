"""Old names work, and the warning names the new one and points at the caller."""

import asyncio
import inspect
import warnings
from datetime import timedelta
from typing import Any

import pytest

from ottla.client import Consumer, Producer, RebalanceListener, ShareConsumer, blocking
from ottla.client.admin import Topics, TransactionDescription, Transactions
from ottla.client.deprecation import OttlaDeprecationWarning, renamed_durations, renamed_parameter


class Reader:
    @renamed_durations("timeout_ms", "max_records", timeout_ms="timeout")
    def poll(self, *, timeout: Any = 1.0, max_records: int | None = None) -> Any:
        return timeout, max_records

    @renamed_parameter("times_ms", "times")
    @renamed_durations("timeout_ms", timeout_ms="timeout")
    def find(self, times: Any, *, timeout: Any = None) -> Any:
        return times, timeout


@pytest.mark.parametrize(
    ("call", "result", "message"),
    [
        (
            lambda r: r.poll(timeout_ms=500),
            (0.5, None),
            r"Reader.poll\(timeout_ms\) .*: use timeout=0.5, in seconds",
        ),
        (lambda r: r.poll(timeout_ms=None), (None, None), "use timeout=None"),
        (lambda r: r.poll(500), (0.5, None), "use timeout=0.5"),
        (lambda r: r.poll(500, max_records=3), (0.5, 3), "use timeout=0.5"),
        (lambda r: r.poll(timedelta(seconds=2)), (timedelta(seconds=2), None), "use timeout="),
        (lambda r: r.find({1: 2}, 500), ({1: 2}, 0.5), "use timeout=0.5"),
        (lambda r: r.find(times_ms={1: 2}), ({1: 2}, None), "times_ms.*: use times"),
    ],
)
def test_an_old_parameter_works_and_warns_at_the_caller(call: Any, result: Any, message: str) -> None:
    with pytest.warns(OttlaDeprecationWarning, match=message) as caught:
        assert call(Reader()) == result
    assert {each.filename for each in caught} == {__file__}


def test_several_old_places() -> None:
    with pytest.warns(OttlaDeprecationWarning) as caught:
        assert Reader().poll(500, 3) == (0.5, 3)  # type: ignore[misc]
    assert [str(each.message).partition(": ")[2] for each in caught] == [
        "use timeout=0.5, in seconds",
        "use max_records=3",
    ]


def test_new_parameters_do_not_warn_and_mistakes_are_type_errors() -> None:
    assert Reader().poll(timeout=2, max_records=1) == (2, 1)
    with pytest.raises(TypeError):
        Reader().poll(1, 2, 3)  # type: ignore[misc]
    with pytest.raises(TypeError, match="twice"):
        Reader().poll(timeout=1, timeout_ms=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Reader().poll(timeout_s=1)  # type: ignore[call-arg]


def test_signatures_show_new_names_alone() -> None:
    assert str(inspect.signature(Consumer.poll)) == (
        "(self, *, timeout: float | datetime.timedelta | None = 1.0, max_records: int | None = None)"
        " -> list[ottla.client.record.Record]"
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in (Consumer, ShareConsumer, blocking.Consumer, blocking.ShareConsumer)
        for name in ("close", "poll", "commit")
    ]
    + [
        (Producer, "close"),
        (Topics, "create"),
        (Topics, "list"),
        (Transactions, "list"),
    ],
)
def test_every_client_takes_timeout_ms(kind: type, name: str) -> None:
    async def call() -> None:
        method: Any = getattr(kind, name)
        with pytest.warns(
            OttlaDeprecationWarning, match=rf"{kind.__name__}.{name}\(timeout_ms\) .*use timeout=0.01"
        ):
            # An object that is not open fails, but after the parameter was understood.
            await method(object.__new__(kind), *(["t"] if name == "create" else []), timeout_ms=10)

    with pytest.raises(AttributeError):
        asyncio.run(call())


def test_a_listener_with_old_names_is_called() -> None:
    with pytest.warns(
        OttlaDeprecationWarning, match=r"Old.on_revoked is deprecated: name it on_partitions_revoked"
    ) as caught:

        class Old(RebalanceListener):
            def on_revoked(self, partitions: Any) -> Any:
                return "revoked"

    assert caught[0].filename == __file__
    assert Old().on_partitions_revoked([]) == "revoked"
    assert Old().on_partitions_lost([]) == "revoked"

    class New(RebalanceListener):
        def on_partitions_assigned(self, partitions: Any) -> Any:
            return "assigned"

    with pytest.warns(OttlaDeprecationWarning, match="use on_partitions_assigned"):
        assert New().on_assigned([]) == "assigned"  # type: ignore[comparison-overlap]


def test_an_old_property_warns() -> None:
    described = TransactionDescription("t", 1, "Ongoing", 1, 0, 45.0, None, frozenset())
    with pytest.warns(OttlaDeprecationWarning, match="use timeout, in seconds") as caught:
        assert described.timeout_ms == 45_000
    assert caught[0].filename == __file__


def test_old_names_of_streams() -> None:
    import ottla.streams

    for old in ("Tumbling", "Hopping", "Sliding", "Session"):
        with pytest.warns(
            OttlaDeprecationWarning, match=f"ottla.streams.{old} is deprecated: use .*{old}Window"
        ):
            assert getattr(ottla.streams, old) is getattr(ottla.streams, f"{old}Window")
    with pytest.warns(OttlaDeprecationWarning) as caught:
        from ottla.streams import Session  # noqa: F401
    assert {each.filename for each in caught} == {__file__}
    assert "Session" not in ottla.streams.__all__


def test_it_is_a_deprecation_warning_that_one_may_ignore() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert Reader().poll(500) == (0.5, None)  # type: ignore[misc]
