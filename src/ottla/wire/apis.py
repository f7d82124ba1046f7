"""Every API of the protocol: its key, name and versions, where it is served, and the classes behind it.

The classes are imported when asked for, so that knowing an API costs nothing.

Kafka 4 removed LeaderAndIsr (4), StopReplica (5), UpdateMetadata (6) and ControlledShutdown (7); they have no
version left and no row here.
"""

from importlib import import_module
from typing import NamedTuple, cast

from ottla.wire.field import version_range
from ottla.wire.message import Message

NEVER = 32768
"""A first flexible version above all versions: the API has no flexible one."""

BROKER = frozenset({"broker"})
CONTROLLER = frozenset({"controller"})
BOTH = BROKER | CONTROLLER


class Api(NamedTuple):
    """One API. `unstable` says that its latest version is not finished, and not to be advertised."""

    key: int
    name: str
    span: str
    first_flexible: int
    listeners: frozenset[str]
    unstable: bool = False

    @property
    def versions(self) -> range:
        """Every version the schemas know."""
        return version_range(self.span)

    @property
    def stable_versions(self) -> range:
        """The versions fit to be advertised."""
        versions = self.versions
        return versions[:-1] if self.unstable else versions

    @property
    def module(self) -> str:
        """The name of the module that declares the two messages."""
        words = "".join(f"_{each.lower()}" if each.isupper() else each for each in self.name)
        return f"ottla.wire.messages.{words.lstrip('_')}"

    @property
    def request(self) -> type[Message]:
        """The class of the request."""
        return cast(type[Message], getattr(import_module(self.module), self.name + "Request"))

    @property
    def response(self) -> type[Message]:
        """The class of the response."""
        return cast(type[Message], getattr(import_module(self.module), self.name + "Response"))

    def request_header_version(self, version: int) -> int:
        """Which version of RequestHeader leads a request of this API at this version."""
        return 2 if version >= self.first_flexible else 1

    def response_header_version(self, version: int) -> int:
        """Which version of ResponseHeader leads a response.

        That of ApiVersions never changes: whoever asks does not know yet what the broker speaks.
        """
        return 1 if version >= self.first_flexible and self.key != 18 else 0


APIS = (
    Api(0, "Produce", "3-13", 9, BROKER),
    Api(1, "Fetch", "4-18", 12, BOTH),
    Api(2, "ListOffsets", "1-11", 6, BROKER),
    Api(3, "Metadata", "0-13", 9, BROKER),
    Api(8, "OffsetCommit", "2-10", 8, BROKER),
    Api(9, "OffsetFetch", "1-10", 6, BROKER),
    Api(10, "FindCoordinator", "0-6", 3, BROKER),
    Api(11, "JoinGroup", "0-9", 6, BROKER),
    Api(12, "Heartbeat", "0-4", 4, BROKER),
    Api(13, "LeaveGroup", "0-5", 4, BROKER),
    Api(14, "SyncGroup", "0-5", 4, BROKER),
    Api(15, "DescribeGroups", "0-6", 5, BROKER),
    Api(16, "ListGroups", "0-5", 3, BROKER),
    Api(17, "SaslHandshake", "0-1", NEVER, BOTH),
    Api(18, "ApiVersions", "0-5", 3, BOTH),
    Api(19, "CreateTopics", "2-7", 5, BOTH),
    Api(20, "DeleteTopics", "1-6", 4, BOTH),
    Api(21, "DeleteRecords", "0-2", 2, BROKER),
    Api(22, "InitProducerId", "0-6", 2, BROKER, unstable=True),
    Api(23, "OffsetForLeaderEpoch", "2-4", 4, BROKER),
    Api(24, "AddPartitionsToTxn", "0-5", 3, BROKER),
    Api(25, "AddOffsetsToTxn", "0-4", 3, BROKER),
    Api(26, "EndTxn", "0-5", 3, BROKER),
    Api(27, "WriteTxnMarkers", "1-2", 1, BROKER),
    Api(28, "TxnOffsetCommit", "0-6", 3, BROKER),
    Api(29, "DescribeAcls", "1-3", 2, BOTH),
    Api(30, "CreateAcls", "1-3", 2, BOTH),
    Api(31, "DeleteAcls", "1-3", 2, BOTH),
    Api(32, "DescribeConfigs", "1-4", 4, BOTH),
    Api(33, "AlterConfigs", "0-2", 2, BOTH),
    Api(34, "AlterReplicaLogDirs", "1-2", 2, BROKER),
    Api(35, "DescribeLogDirs", "1-5", 2, BROKER),
    Api(36, "SaslAuthenticate", "0-2", 2, BOTH),
    Api(37, "CreatePartitions", "0-3", 2, BOTH),
    Api(38, "CreateDelegationToken", "1-3", 2, BOTH),
    Api(39, "RenewDelegationToken", "1-2", 2, BOTH),
    Api(40, "ExpireDelegationToken", "1-2", 2, BOTH),
    Api(41, "DescribeDelegationToken", "1-3", 2, BOTH),
    Api(42, "DeleteGroups", "0-3", 2, BROKER),
    Api(43, "ElectLeaders", "0-2", 2, BOTH),
    Api(44, "IncrementalAlterConfigs", "0-1", 1, BOTH),
    Api(45, "AlterPartitionReassignments", "0-1", 0, BOTH),
    Api(46, "ListPartitionReassignments", "0", 0, BOTH),
    Api(47, "OffsetDelete", "0", NEVER, BROKER),
    Api(48, "DescribeClientQuotas", "0-1", 1, BROKER),
    Api(49, "AlterClientQuotas", "0-1", 1, BOTH),
    Api(50, "DescribeUserScramCredentials", "0", 0, BOTH),
    Api(51, "AlterUserScramCredentials", "0", 0, BOTH),
    Api(52, "Vote", "0-2", 0, CONTROLLER),
    Api(53, "BeginQuorumEpoch", "0-1", 1, CONTROLLER),
    Api(54, "EndQuorumEpoch", "0-1", 1, CONTROLLER),
    Api(55, "DescribeQuorum", "0-2", 0, BOTH),
    Api(56, "AlterPartition", "2-3", 0, CONTROLLER),
    Api(57, "UpdateFeatures", "0-2", 0, BOTH),
    Api(58, "Envelope", "0", 0, CONTROLLER),
    Api(59, "FetchSnapshot", "0-1", 0, CONTROLLER),
    Api(60, "DescribeCluster", "0-2", 0, BOTH),
    Api(61, "DescribeProducers", "0", 0, BROKER),
    Api(62, "BrokerRegistration", "0-4", 0, CONTROLLER),
    Api(63, "BrokerHeartbeat", "0-2", 0, CONTROLLER),
    Api(64, "UnregisterBroker", "0", 0, BOTH),
    Api(65, "DescribeTransactions", "0", 0, BROKER),
    Api(66, "ListTransactions", "0-2", 0, BROKER),
    Api(67, "AllocateProducerIds", "0", 0, CONTROLLER),
    Api(68, "ConsumerGroupHeartbeat", "0-1", 0, BROKER),
    Api(69, "ConsumerGroupDescribe", "0-1", 0, BROKER),
    Api(70, "ControllerRegistration", "0", 0, CONTROLLER),
    Api(71, "GetTelemetrySubscriptions", "0", 0, BROKER),
    Api(72, "PushTelemetry", "0", 0, BROKER),
    Api(73, "AssignReplicasToDirs", "0", 0, CONTROLLER),
    Api(74, "ListConfigResources", "0-1", 0, BROKER),
    Api(75, "DescribeTopicPartitions", "0", 0, BROKER),
    Api(76, "ShareGroupHeartbeat", "1", 0, BROKER),
    Api(77, "ShareGroupDescribe", "1", 0, BROKER),
    Api(78, "ShareFetch", "1-2", 0, BROKER),
    Api(79, "ShareAcknowledge", "1-2", 0, BROKER),
    Api(80, "AddRaftVoter", "0-1", 0, BOTH),
    Api(81, "RemoveRaftVoter", "0", 0, BOTH),
    Api(82, "UpdateRaftVoter", "0", 0, CONTROLLER),
    Api(83, "InitializeShareGroupState", "0", 0, BROKER),
    Api(84, "ReadShareGroupState", "0", 0, BROKER),
    Api(85, "WriteShareGroupState", "0-1", 0, BROKER),
    Api(86, "DeleteShareGroupState", "0", 0, BROKER),
    Api(87, "ReadShareGroupStateSummary", "0-1", 0, BROKER),
    Api(88, "StreamsGroupHeartbeat", "0-1", 0, BROKER),
    Api(89, "StreamsGroupDescribe", "0-1", 0, BROKER),
    Api(90, "DescribeShareGroupOffsets", "0-1", 0, BROKER),
    Api(91, "AlterShareGroupOffsets", "0", 0, BROKER),
    Api(92, "DeleteShareGroupOffsets", "0", 0, BROKER),
    Api(93, "StreamsGroupTopologyDescriptionUpdate", "0", 0, BROKER),
    Api(94, "UnregisterController", "0", 0, BOTH),
)

BY_KEY = {api.key: api for api in APIS}
BY_NAME = {api.name: api for api in APIS}
