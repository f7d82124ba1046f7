"""Who may do what: access control entries, SCRAM credentials, delegation tokens and client quotas as values."""

from typing import NamedTuple

from ottla.wire.records.metadata import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)

QuotaEntity = frozenset[tuple[str, str | None]]


class Acl(NamedTuple):
    """One access control entry; its id is its key in the image."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> "Acl":
        """The entry a record describes."""
        return cls(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def record(self, id: bytes) -> AccessControlEntryRecord:
        """The record that makes this entry."""
        return AccessControlEntryRecord(id=id, **self._asdict())


class ScramCredential(NamedTuple):
    """What a broker keeps of a user's password; mechanism and user are its key in the image."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of(cls, record: UserScramCredentialRecord) -> "ScramCredential":
        """The credential a record describes."""
        return cls(record.salt, record.stored_key, record.server_key, record.iterations)

    def record(self, mechanism: int, user: str) -> UserScramCredentialRecord:
        """The record that makes this credential."""
        return UserScramCredentialRecord(name=user, mechanism=mechanism, **self._asdict())


class DelegationToken(NamedTuple):
    """A delegation token; its id is its key in the image."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int

    @classmethod
    def of(cls, record: DelegationTokenRecord) -> "DelegationToken":
        """The token a record describes."""
        return cls(
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )

    def record(self, token_id: str) -> DelegationTokenRecord:
        """The record that makes this token."""
        return DelegationTokenRecord(**{**self._asdict(), "renewers": list(self.renewers)}, token_id=token_id)


def quota_entity(record: ClientQuotaRecord) -> QuotaEntity:
    """The entity a quota is for: pairs of type and name, where None is the default of its type."""
    return frozenset((entity.entity_type, entity.entity_name) for entity in record.entity)


def quota_record(entity: QuotaEntity, key: str, value: float) -> ClientQuotaRecord:
    """The record that sets one quota."""
    parts = sorted(entity, key=lambda part: (part[0], part[1] or ""))
    return ClientQuotaRecord(
        entity=[ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        key=key,
        value=value,
        remove=False,
    )
