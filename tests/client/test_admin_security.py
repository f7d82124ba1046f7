"""Access rules, quotas, SCRAM credentials and delegation tokens through the admin client.

Ottla serves none of these yet, and says so; on Apache Kafka they work.
"""

from collections.abc import Callable, Iterator

import pytest

from ottla.client.admin import (
    ANY,
    Acl,
    AclFilter,
    Admin,
    NewCredential,
    Operation,
    PatternType,
    Permission,
    Principal,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    entity,
)
from ottla.client.errors import Refused, SomeFailed, Unsupported
from ottla.wire.errors import ErrorCode
from tests.client.conftest import SETTINGS
from tests.client.waiting import until
from tests.compat.absence import need_kafka
from tests.peers.kafka import KafkaServer
from tests.peers.server import Server

GUARDED = SETTINGS | {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Apache Kafka with an authorizer."""
    need_kafka()
    with KafkaServer(tmp_path_factory.mktemp("guarded"), GUARDED) as running:
        yield running.bootstrap


def test_access_rules(guarded: str, run: Callable[..., None]) -> None:
    reads = Acl(ResourceType.TOPIC, "orders", "User:ann", Operation.READ)
    prefix = Acl(
        ResourceType.GROUP,
        "app-",
        "User:bob",
        Operation.ALL,
        Permission.DENY,
        "10.0.0.1",
        PatternType.PREFIXED,
    )

    async def main() -> None:
        async with Admin(guarded) as admin:
            assert await admin.acls.describe() == ()
            await admin.acls.create([reads, prefix])
            rules = await until(admin.acls.describe, lambda found: len(found) == 2)
            assert set(rules) == {reads, prefix}
            assert await admin.acls.describe(AclFilter(principal="User:ann")) == (reads,)
            applies = AclFilter(ResourceType.GROUP, "app-7", pattern_type=PatternType.MATCH)
            assert await admin.acls.describe(applies) == (prefix,)
            both = [AclFilter.of(reads), AclFilter(operation=Operation.WRITE)]
            assert await admin.acls.delete(both) == {both[0]: (reads,), both[1]: ()}
            await until(admin.acls.describe, lambda found: found == (prefix,))
            await admin.acls.delete(AclFilter())
            with pytest.raises(Refused) as caught:
                await admin.acls.create(Acl(ResourceType.TOPIC, "", "User:ann", Operation.READ))
            assert caught.value.code is ErrorCode.INVALID_REQUEST

    run(main())


def test_without_an_authorizer_there_are_no_rules(server: Server, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            with pytest.raises((Refused, Unsupported)) as caught:
                await admin.acls.describe()
            if isinstance(caught.value, Refused):
                assert caught.value.code is ErrorCode.SECURITY_DISABLED

    run(main())


def test_scram_credentials(guarded: str, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(guarded) as admin:
            new = {
                "ann": NewCredential(ScramMechanism.SCRAM_SHA_256, "secret"),
                "bob": NewCredential(
                    ScramMechanism.SCRAM_SHA_512, b"secret", iterations=8192, salt=b"salt" * 4
                ),
            }
            assert "secret" not in repr(new)
            await admin.scram.alter(new)
            found = await until(admin.scram.describe, lambda found: len(found) == 2)
            assert found == {
                "ann": (ScramCredential(ScramMechanism.SCRAM_SHA_256, 4096),),
                "bob": (ScramCredential(ScramMechanism.SCRAM_SHA_512, 8192),),
            }
            with pytest.raises(Refused) as caught:
                await admin.scram.alter(
                    {"eve": NewCredential(ScramMechanism.SCRAM_SHA_256, "x", iterations=1)}
                )
            assert caught.value.code is ErrorCode.UNACCEPTABLE_CREDENTIAL
            await admin.scram.alter(delete={"ann": ScramMechanism.SCRAM_SHA_256})
            await until(admin.scram.describe, lambda found: found.keys() == {"bob"})
            with pytest.raises(SomeFailed) as several:
                await admin.scram.describe(["ann", "bob"])
            error = several.value.errors["ann"]
            assert isinstance(error, Refused) and error.code is ErrorCode.RESOURCE_NOT_FOUND

    run(main())


def test_quotas(guarded: str, run: Callable[..., None]) -> None:
    ann, everybody = entity(user="ann", client_id="app"), entity(user=None)

    async def main() -> None:
        async with Admin(guarded) as admin:
            assert await admin.quotas.describe() == {}
            await admin.quotas.alter({ann: {"producer_byte_rate": 1000}}, validate_only=True)
            await admin.quotas.alter(
                {
                    ann: {"producer_byte_rate": 1000, "consumer_byte_rate": 2.5e6},
                    everybody: {"request_percentage": 50},
                }
            )
            wanted = {
                ann: {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2.5e6},
                everybody: {"request_percentage": 50.0},
            }
            assert await until(admin.quotas.describe, lambda found: len(found) == 2) == wanted
            assert (await admin.quotas.describe({"user": "ann"})).keys() == {ann}
            assert (await admin.quotas.describe({"user": None})).keys() == {everybody}
            assert (await admin.quotas.describe({"user": ANY})).keys() == {ann, everybody}
            assert (await admin.quotas.describe({"user": ANY}, strict=True)).keys() == {everybody}
            await admin.quotas.alter({ann: {"producer_byte_rate": None, "consumer_byte_rate": None}})
            await until(admin.quotas.describe, lambda found: found.keys() == {everybody})
            with pytest.raises(Refused) as caught:
                await admin.quotas.alter({everybody: {"no_such_quota": 1}})
            assert caught.value.code is ErrorCode.INVALID_REQUEST

    run(main())


def test_tokens_are_for_those_who_have_shown_who_they_are(guarded: str, run: Callable[..., None]) -> None:
    ann = Principal("User", "ann")

    async def main() -> None:
        async with Admin(guarded) as admin:
            for asked in (
                admin.tokens.create(owner=ann, renewers=[ann], lifetime_max=1),
                admin.tokens.renew(b"hmac", period=1),
                admin.tokens.expire(b"hmac"),
                admin.tokens.describe([ann]),
            ):
                with pytest.raises(Refused) as caught:
                    await asked
                assert caught.value.code in {
                    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
                    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
                }

    run(main())


def test_what_ottla_does_not_serve_is_said_at_once(server: Server, run: Callable[..., None]) -> None:
    async def main() -> None:
        async with Admin(server.bootstrap) as admin:
            asked = [
                admin.acls.describe(),
                admin.quotas.describe(),
                admin.scram.describe(),
                admin.tokens.describe(),
            ]
            for each in asked:
                try:
                    await each
                except Unsupported as error:
                    assert server.name == "ottla" and "not at all" in str(error)
                except Refused:
                    assert server.name == "kafka"

    run(main())
