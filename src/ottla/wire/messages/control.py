"""Control records of the metadata quorum, and of transactions."""

from ottla.wire.field import since
from ottla.wire.message import Message, Struct
from ottla.wire.primitive import Int16, Int32, Int64, String, UInt16, Uuid


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """Control record that opens a quorum leader's epoch: the leader, the voters, who voted for it."""

    class Voter(Struct):
        voter_id: Int32
        voter_directory_id: Uuid = since(1)

    version: Int16
    leader_id: Int32
    voters: list[Voter]
    granting_voters: list[Voter]


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """Control record that opens a snapshot."""

    version: Int16
    last_contained_log_timestamp: Int64


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """Control record that closes a snapshot."""

    version: Int16


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """Control record that sets the version of the quorum protocol."""

    version: Int16
    kraft_version: Int16


class VotersRecord(Message, versions="0", flexible="0+"):
    """Control record that sets the voters of the quorum."""

    class Voter(Struct):
        class Endpoint(Struct):
            name: String
            host: String
            port: UInt16

        class KRaftVersionFeature(Struct):
            min_supported_version: Int16
            max_supported_version: Int16

        voter_id: Int32
        voter_directory_id: Uuid
        endpoints: list[Endpoint]
        kraft_version_feature: KRaftVersionFeature

    version: Int16
    voters: list[Voter]


class ControlRecordTypeSchema(Message, versions="0"):
    """The type in the key of a control record."""

    type: Int16


class EndTxnMarker(Message, versions="0"):
    """The value of a control record that commits or aborts a transaction."""

    coordinator_epoch: Int32
