"""Settings of topics, brokers, groups and metrics subscriptions through the admin client."""

from collections.abc import Callable

import pytest

from ottla.client.admin import (
    Admin,
    Append,
    MetricsSubscription,
    Resource,
    ResourceKind,
    Subtract,
)
from ottla.client.errors import Refused, SomeFailed
from ottla.metadata.settings.definition import Type
from ottla.metadata.settings.layers import Source
from ottla.wire.errors import ErrorCode
from tests.client.waiting import until


def test_settings_of_a_topic(bootstrap: str, topic: str, run: Callable[..., None]) -> None:
    resource = Resource.topic(topic)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            described = (await admin.configs.describe(resource))[resource]
            entry = described["retention.ms"]
            assert entry.is_default and entry.value == "604800000" and entry.type is Type.LONG
            assert entry.synonyms == () and not entry.documentation
            changes = {"retention.ms": 1000, "cleanup.policy": Append("compact"), "preallocate": True}
            await admin.configs.alter({resource: changes}, validate_only=True)
            await admin.configs.alter({resource: changes})

            async def now() -> dict[str, str | None]:
                names = ["retention.ms", "cleanup.policy", "preallocate"]
                found = await admin.configs.describe(resource, names=names)
                return {name: each.value for name, each in found[resource].items()}

            wanted = {"retention.ms": "1000", "cleanup.policy": "delete,compact", "preallocate": "true"}
            assert await until(now, lambda found: found == wanted) == wanted
            found = await admin.configs.describe(
                [resource], names=["cleanup.policy"], synonyms=True, documentation=True
            )
            entry = found[resource]["cleanup.policy"]
            assert entry.source is Source.TOPIC_CONFIG and not entry.is_default and entry.documentation
            assert [(each.name, each.source) for each in entry.synonyms] == [
                ("cleanup.policy", Source.TOPIC_CONFIG),
                ("log.cleanup.policy", Source.DEFAULT_CONFIG),
            ]
            await admin.configs.alter(
                {
                    resource: {
                        "retention.ms": None,
                        "cleanup.policy": Subtract(["compact"]),
                        "preallocate": None,
                    }
                }
            )
            wanted = {"retention.ms": "604800000", "cleanup.policy": "delete", "preallocate": "false"}
            assert await until(now, lambda found: found == wanted) == wanted

    run(main())


def test_settings_of_brokers(bootstrap: str, run: Callable[..., None]) -> None:
    one, every = Resource.broker(1), Resource.broker()

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            described = await admin.configs.describe([one, every])
            assert described[one]["node.id"].value == "1" and described[one]["node.id"].is_read_only
            name = "log.cleaner.threads"
            await admin.configs.alter({every: {name: 2}})

            async def now() -> tuple[str | None, Source]:
                entry = (await admin.configs.describe(one, names=[name]))[one][name]
                return entry.value, entry.source

            wanted = ("2", Source.DYNAMIC_DEFAULT_BROKER_CONFIG)
            assert await until(now, lambda found: found == wanted) == wanted
            await admin.configs.alter({every: {name: None}})
            with pytest.raises(Refused) as caught:
                await admin.configs.alter({one: {"node.id": 2}})
            assert caught.value.code is ErrorCode.INVALID_REQUEST
            with pytest.raises(Refused, match="no such broker"):
                await admin.configs.describe(Resource.broker(77))

    run(main())


def test_log_levels_of_a_broker(bootstrap: str, run: Callable[..., None]) -> None:
    resource = Resource.broker_logger(1)

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            levels = (await admin.configs.describe(resource))[resource]
            assert levels["root"].value in {"INFO", "WARN", "OFF", "ERROR"}
            await admin.configs.alter({resource: {"root": "ERROR"}})
            assert (await admin.configs.describe(resource))[resource]["root"].value == "ERROR"
            await admin.configs.alter({resource: {"root": levels["root"].value}})

    run(main())


def test_settings_of_a_group_and_what_has_settings(
    bootstrap: str, topic: str, run: Callable[..., None]
) -> None:
    group, name = Resource.group(topic), "consumer.session.timeout.ms"

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            assert (await admin.configs.describe(group))[group][name].is_default
            await admin.configs.alter({group: {name: 50_000}})

            async def now() -> str | None:
                return (await admin.configs.describe(group))[group][name].value

            assert await until(now, lambda value: value == "50000") == "50000"
            everything = await admin.configs.resources()
            assert {group, Resource.topic(topic), Resource.broker(1)} <= set(everything)
            assert group in await admin.configs.resources([ResourceKind.GROUP])
            assert Resource.topic(topic) not in await admin.configs.resources([ResourceKind.GROUP])

    run(main())


def test_subscriptions_to_client_metrics(bootstrap: str, topic_name: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(bootstrap) as admin:
            assert topic_name not in await admin.client_metrics.list()
            wanted = MetricsSubscription(("org.apache.kafka.producer.",), ("client_id=app.*",), 60_000)
            await admin.client_metrics.set(topic_name, wanted)
            await until(admin.client_metrics.list, lambda names: topic_name in names)
            assert (await admin.client_metrics.describe(topic_name))[topic_name] == wanted
            await admin.client_metrics.delete(topic_name)
            await until(admin.client_metrics.list, lambda names: topic_name not in names)

    run(main())


def test_what_is_refused_says_so(bootstrap: str, topic: str, run: Callable[..., None]) -> None:
    there, missing = Resource.topic(topic), Resource.topic(f"{topic}-none")

    async def main() -> None:
        async with Admin(bootstrap) as admin:
            with pytest.raises(Refused) as caught:
                await admin.configs.alter({there: {"retention.ms": "soon"}})
            assert caught.value.code is ErrorCode.INVALID_CONFIG
            with pytest.raises(SomeFailed) as several:
                await admin.configs.describe([there, missing])
            assert several.value.results.keys() == {there}
            error = several.value.errors[missing]
            assert isinstance(error, Refused) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            with pytest.raises(SomeFailed) as several:
                await admin.configs.alter({there: {"retention.ms": 5}, missing: {"retention.ms": 5}})
            assert several.value.errors.keys() == {missing}

    run(main())
