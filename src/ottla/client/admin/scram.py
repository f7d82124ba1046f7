"""SCRAM credentials of users. A password never leaves this process: brokers are sent what is derived from it."""

import enum
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.client.admin.keyed_outcomes import results_or_raise
from ottla.client.admin.request_keys import names_of
from ottla.client.admin.request_router import RequestRouter, at_any_broker
from ottla.client.admin.response_errors import error_of
from ottla.client.deprecation import renamed_timeouts
from ottla.client.duration import Duration
from ottla.client.errors import ClientError
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from ottla.world.entropy import Entropy, RealEntropy

_ITERATIONS = 4096
_SALT_BYTES = 32


class ScramMechanism(enum.IntEnum):
    """The hash of a credential. The values are those of Kafka's protocol."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """The name of the hash in hashlib."""
        return {1: "sha256", 2: "sha512"}[self.value]


class ScramCredential(NamedTuple):
    """A credential of a user."""

    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A credential to set. Without a salt, a random one is used."""

    mechanism: ScramMechanism
    password: str | bytes = field(repr=False)
    iterations: int = _ITERATIONS
    salt: bytes | None = field(default=None, repr=False)


@renamed_timeouts
class Scram:
    """SCRAM credentials, as `admin.scram`. Every call raises Refused, TimedOut or, for several users, SomeFailed."""

    def __init__(self, router: RequestRouter, entropy: Entropy | None = None) -> None:
        self._router = router
        self._entropy: Entropy = entropy or RealEntropy()

    async def describe(
        self, users: str | Iterable[str] | None = None, *, timeout: Duration | None = None
    ) -> dict[str, tuple[ScramCredential, ...]]:
        """Return the credentials of all users, or of these."""
        kind = DescribeUserScramCredentialsRequest.UserName
        request = DescribeUserScramCredentialsRequest(
            users=None if users is None else [kind(name=name) for name in names_of(users)]
        )
        answer = await self._router.request_one(
            request, DescribeUserScramCredentialsResponse, "the SCRAM credentials", timeout
        )
        return results_or_raise(
            {
                each.user: error_of(each, f"user {each.user}")
                or tuple(
                    ScramCredential(ScramMechanism(info.mechanism), info.iterations)
                    for info in each.credential_infos
                )
                for each in answer.results
            }
        )

    async def alter(
        self,
        set: Mapping[str, NewCredential] | None = None,
        delete: Mapping[str, ScramMechanism] | None = None,
        *,
        timeout: Duration | None = None,
    ) -> None:
        """Set credentials of some users, and delete those of others."""
        kind = AlterUserScramCredentialsRequest
        new = {user: self._salted(user, each) for user, each in (set or {}).items()}
        gone = {
            user: kind.ScramCredentialDeletion(name=user, mechanism=each)
            for user, each in (delete or {}).items()
        }

        async def ask(node: int | None, keys: list[str]) -> dict[str, ClientError | None]:
            request = kind(
                deletions=[gone[key] for key in keys if key in gone],
                upsertions=[new[key] for key in keys if key in new],
            )
            answer = await self._router.send(node, request, AlterUserScramCredentialsResponse)
            return {each.user: error_of(each, f"user {each.user}") for each in answer.results}

        await self._router.request_each([*new, *gone], at_any_broker, ask, timeout)

    def _salted(
        self, user: str, new: NewCredential
    ) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
        salt = new.salt or bytes(self._entropy.below(256) for _ in range(_SALT_BYTES))
        password = new.password.encode() if isinstance(new.password, str) else new.password
        return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=user,
            mechanism=new.mechanism,
            iterations=new.iterations,
            salt=salt,
            salted_password=hashlib.pbkdf2_hmac(new.mechanism.hash_name, password, salt, new.iterations),
        )
