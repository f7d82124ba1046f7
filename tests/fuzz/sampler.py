"""Requests of every API, filled with values that go deep and values from the edges of their types.

S1  A request is well formed: its version can express every value, so what follows is the handler's affair.
S2  What an administrator may do, and what would end the test instead of testing the broker, is left out; each such
    case is
    a line of `_tame`, with its reason.
S3  Addresses are of the loopback, since a broker may connect to where a registration says.
"""

from typing import Any

from ottla.metadata.settings.topic import TOPIC
from ottla.wire.errors import ProtocolError
from ottla.wire.field import Field
from ottla.wire.message import Message
from ottla.wire.primitive import Primitive
from tests.fuzz.batches import BatchPool
from tests.fuzz.known import EVERY_GROUP, GROUPS, PASSING, TRANSACTIONAL_IDS, Known
from tests.peers.connection import request_frame
from tests.unit.wire.samples import Sampler

NODE_ID = 1
BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
ODD_STRINGS = ("", ".", "..", "a" * 249, "a" * 250, "a" * 3000, "é\0\n", "\U0001f600", "-1", "a.*", "(((", "\\", "1")
SMALL_WAITS = (0, 0, 0, 1, 5, 20, -1, -(2**31))
_CONSUMER_PROTOCOL = (
    b"\0\0\0\0\0\1\0\x0afuzz-plain\xff\xff\xff\xff",
    b"\0\1\0\0\0\1\0\x0afuzz-plain\xff\xff\xff\xff\0\0\0\0",
    b"\0\3\x7f\xff\xff\xff",
    b"",
    b"\xff" * 30,
)
_FEATURES = ("group.version", "transaction.version", "share.version", "streams.version", "absent", "")
# Of the broker: those that change neither its limits nor what it keeps.
_BROKER_SETTINGS = ("log.cleaner.threads", "log.cleaner.backoff.ms", "absent", "node.id", "num.io.threads")
_NEVER_SET = frozenset({"min.insync.replicas"})


class ExtremeSampler(Sampler):
    """Fills requests; most fields plausibly, others with extremes, so that no odd value hides behind another."""

    def __init__(self, seed: int, known: Known, now_ms: int) -> None:
        super().__init__(seed)
        self.known = known
        self.batches = BatchPool(seed, now_ms)
        self._topic_settings = tuple(name for name in TOPIC if name not in _NEVER_SET)
        self._key = -1
        self._oddness = 0.1
        self._producer = (0, 0)
        self._nested = 0

    def request(self, cls: type[Message], version: int) -> Message:
        """A request that the version can express."""
        chance = self.random
        self._key = cls.api_key or 0
        self._oddness = chance.choice((0.0, 0.05, 0.2, 0.6))
        self._producer = chance.choice(self.known.producers)
        message = self.message(cls, version)
        if cls.flexible is not None and version >= cls.flexible and chance.random() < 0.05:
            message.unknown_tags = {chance.choice((60, 9999, 2**31 - 1)): chance.randbytes(chance.choice((0, 5, 300)))}
        self._tame(message, version)
        return message

    def frame(self, cls: type[Message], version: int, correlation_id: int) -> bytes:
        """A whole request on the wire."""
        for _ in range(5):
            try:
                client_id = "fuzz" if self.random.random() < 0.9 else self.random.choice((None, "", "x" * 2000))
                return request_frame(self.request(cls, version), version, correlation_id, client_id)
            except ProtocolError:
                continue  # a value that only other versions have
        return request_frame(cls(), version, correlation_id)

    def value(self, field: Field, version: int) -> Any:
        kind = field.kind
        if not isinstance(kind, Primitive):
            return self.struct(kind, version)
        odd = self.random.random() < self._oddness
        match kind.name:
            case "bool":
                return self.random.random() < 0.5
            case "float64":
                return self.random.choice((0.0, -1.0, float("inf"), float("nan")))
            case "uuid":
                return self._uuid(field.name, odd)
            case "string":
                return self._string(field.name, odd)
            case "bytes":
                return self._bytes(field.name)
            case "records":
                return self._records()
            case "uint16":
                return self.random.choice((0, 1, 9, 65535))
            case "uint32":
                return self.random.choice((0, 1, 2**32 - 1))
        return self._number(field.name, BITS[kind.name], odd)

    # One kind each

    def _uuid(self, name: str, odd: bool) -> bytes:
        chance = self.random
        if odd:
            return chance.choice((bytes(16), b"\xff" * 16, chance.randbytes(16), bytes(15) + b"\1"))
        if name in ("topic_id", "topic_ids"):
            return self.known.topic_id(chance)
        return chance.choice((self.known.directory_id, bytes(16), bytes(15) + b"\2"))

    def _string(self, name: str, odd: bool) -> str:
        chance, known = self.random, self.known
        if name == "host":
            return "127.0.0.1"  # S3
        if odd:
            return chance.choice(ODD_STRINGS)
        match name:
            case "group_id" | "group_ids" | "groups" | "groups_names":
                kinds = dict.fromkeys((68, 69), "consumer") | dict.fromkeys((76, 77, 78, 79), "share") | {88: "streams"}
                kind = kinds.get(self._key)
                if kind is None and self._key in (83, 84, 85, 86, 87, 90, 91, 92):
                    kind = "share"
                names = GROUPS[kind] if kind and chance.random() < 0.9 else EVERY_GROUP
                return chance.choice(names)
            case "member_id":
                return chance.choice(known.members) if known.members and chance.random() < 0.8 else ""
            case "group_instance_id" | "instance_id":
                return chance.choice(("static-1", "static-2"))
            case "transactional_id" | "transactional_ids" | "v3_and_below_transactional_id":
                return chance.choice(TRANSACTIONAL_IDS)
            case "key" | "coordinator_keys":
                return chance.choice((*EVERY_GROUP, *TRANSACTIONAL_IDS))
            case "cluster_id":
                return known.cluster_id
            case "protocol_type":
                return chance.choice(("consumer", "consumer", "connect"))
            case "protocol_name":
                return chance.choice(("range", "sticky"))
            case "server_assignor":
                return chance.choice(("uniform", "range"))
            case "feature":
                return chance.choice(_FEATURES)
            case "path":
                return chance.choice(("/", "/tmp", "absent"))
            case "subscribed_topic_regex" | "transactional_id_pattern" | "source_topic_regex":
                return chance.choice(("fuzz-.*", ".*", "(a+)+$", "[", "", "a{1000}"))
            case "state_filters" | "states_filter" | "types_filter":
                return chance.choice(("Ongoing", "Stable", "Empty", "consumer", "share", "absent"))
            case "rack" | "rack_id":
                return chance.choice(("", "rack-1"))
            case "resource_name":
                return chance.choice((known.topic(chance), *EVERY_GROUP[:4], "1", "", "absent"))
            case "configuration_keys":
                return chance.choice((*self._topic_settings, *_BROKER_SETTINGS))
            case "value":
                return chance.choice(("1", "0", "-1", "compact", "delete", "gzip", "zstd", "true", "x", str(2**63 - 1)))
            case "name" if self._key == 11:
                return chance.choice(("range", "sticky"))
            case "name" if self._key in (53, 54, 62, 70, 80, 82):
                return chance.choice(("CONTROLLER", "PLAINTEXT"))
            case "name" | "topic" | "topic_name" | "topic_names" | "subscribed_topic_names":
                if self._key in (1, 52, 53, 54, 55, 59) and chance.random() < 0.8:
                    return "__cluster_metadata"
                if chance.random() < 0.03 and self._key not in (19, 20, 21, 33, 37, 44, 45):
                    return chance.choice(("__consumer_offsets", "__transaction_state", "__share_group_state"))
                return known.topic(chance)
        return chance.choice(("a", "b", "fuzz-plain", "subtopology-0"))

    def _bytes(self, name: str) -> bytes:
        chance = self.random
        if name == "request_data":
            return self._inner_request()
        if name in ("metadata", "assignment"):
            return chance.choice(_CONSUMER_PROTOCOL)
        return chance.choice((b"", b"\0", b"\x7f\0\0\1", chance.randbytes(30), b"x" * 5000))

    def _inner_request(self) -> bytes:
        """What an Envelope carries: a request of another API, whole or cut."""
        from ottla.broker.controller_face import CONTROLLER_TABLE

        chance = self.random
        if self._nested or chance.random() < 0.2:
            return chance.randbytes(chance.randrange(40))
        api = chance.choice([each for each in CONTROLLER_TABLE if each.key != 58])
        key, oddness = self._key, self._oddness
        self._nested += 1
        frame = self.frame(api.request, chance.choice(api.versions), 7)[4:]
        self._nested -= 1
        self._key, self._oddness = key, oddness
        return frame if chance.random() < 0.8 else frame[: chance.randrange(len(frame) + 1)]

    def _records(self) -> bytes:
        chance = self.random
        if chance.random() < 0.15:
            return self.batches.of_producer(chance, self._producer, chance.random() < 0.6)
        return self.batches.pick(chance)

    def _number(self, name: str, bits: int, odd: bool) -> int:
        chance, known = self.random, self.known
        edge = 1 << bits
        if odd:
            return chance.choice((0, 1, -1, -2, 2, edge - 1, -edge, edge - 2, edge >> 1, chance.randrange(-edge, edge)))
        match name:
            case "acks":
                return chance.choice((-1, -1, 1, 1, 0))
            case "max_wait_ms":
                return chance.choice(SMALL_WAITS)
            case "timeout_ms":
                return chance.choice((0, 1, 1000, 30_000, -1))
            case "min_bytes":
                return chance.choice((0, 1, 1, 1000))
            case "max_bytes" | "partition_max_bytes":
                return chance.choice((1 << 20, 1 << 16, 1, 0, 100, 5 << 20))
            case "max_records" | "batch_size":
                return chance.choice((1, 10, 500))
            case "isolation_level":
                return chance.choice((0, 1))
            case "session_id":
                return chance.choice((0, 0, *known.fetch_sessions)) if chance.random() < 0.8 else 0
            case "session_epoch" | "share_session_epoch":
                return chance.choice((0, 0, -1, 1, 2, 3))
            case "fetch_offset" | "offset" | "first_offset" | "committed_offset" | "start_offset" | "last_offset":
                return chance.choice((0, 0, 1, 5, *known.offsets)) if chance.random() < 0.9 else -1
            case "timestamp":
                return chance.choice((-1, -2, -3, -4, -5, -6, 0, 1, 2**62, 1_700_000_000_000))
            case "producer_id" | "v3_and_below_producer_id":
                return self._producer[0]
            case "producer_epoch" | "v3_and_below_producer_epoch":
                return self._producer[1] if chance.random() < 0.8 else self._producer[1] + 1
            case "member_epoch" | "generation_id" | "generation_id_or_member_epoch" | "epoch":
                return chance.choice((0, 0, -1, *known.epochs))
            case "current_leader_epoch" | "leader_epoch" | "last_fetched_epoch" | "committed_leader_epoch":
                return chance.choice((0, 0, -1, 1))
            case "session_timeout_ms" | "rebalance_timeout_ms":
                return chance.choice((6000, 10_000, 45_000))
            case "transaction_timeout_ms":
                return chance.choice((1, 1000, 60_000))
            case "num_partitions" | "count":
                return chance.choice((1, 2, 3, -1, 4))
            case "replication_factor":
                return chance.choice((1, 1, -1, 2))
            case "resource_type" | "resource_types":
                return chance.choice((2, 2, 2, 4, 8, 16, 32))
            case "config_operation":
                return chance.choice((0, 0, 1, 2, 3))
            case "replica_id":
                return chance.choice((-1, -1, -1, 1, 2, -2))
            case "broker_id" | "controller_id" | "voter_id" | "candidate_id" | "leader_id":
                return chance.choice((1, 2, 3))
            case "acknowledge_types":
                return chance.choice((0, 1, 2, 3, 4))
            case "key_type" | "endpoint_type" | "election_type" | "upgrade_type" | "transaction_version":
                return chance.choice((0, 1, 2))
        return chance.choice((0, 0, 0, 1, 1, 2, -1))

    # S2

    def _tame(self, message: Any, version: int) -> None:
        """Take out of a request what would rightly end or change the test itself."""
        chance = self.random
        match self._key:
            case 19:  # as many partitions as one asks for is what an administrator gets
                for topic in message.topics or ():
                    if topic.name not in PASSING and chance.random() < 0.9:
                        topic.name = chance.choice(PASSING)
                    if 5 < topic.num_partitions <= 10_000:
                        topic.num_partitions = 2
            case 20:  # topics of the test stay, or there is nothing left to be fuzzed
                for topic in getattr(message, "topics", None) or ():
                    topic.name = None if topic.name is None else chance.choice((*PASSING, "absent"))
                    if topic.topic_id not in [self.known.topic_ids.get(name) for name in PASSING]:
                        topic.topic_id = bytes(16)
                if getattr(message, "topic_names", None):
                    message.topic_names = [chance.choice((*PASSING, "absent")) for _ in message.topic_names]
            case 37:
                for topic in message.topics or ():
                    if topic.count > 5:
                        topic.name, topic.count = "passing-0", chance.choice((5, 2**31 - 1))
            case 33 | 44:
                self._tame_configs(message)
            case 57:  # a lower level turns groups or transactions off, for everybody
                if version >= 1:
                    message.validate_only = True
                else:
                    kept = [each for each in message.feature_updates if each.feature not in _FEATURES[:4]]
                    message.feature_updates = kept
            case 62 | 63 | 64 | 67 | 73:  # this node's own registration, and its ending
                if message.broker_id == NODE_ID:
                    message.broker_id = 2
            case 70:
                if message.controller_id == NODE_ID:
                    message.controller_id = 2
            case 81:
                if message.voter_id == NODE_ID:
                    message.voter_id = 2

    def _tame_configs(self, message: Any) -> None:
        chance = self.random
        for resource in message.resources or ():
            match resource.resource_type:
                case 2:
                    if resource.resource_name not in PASSING:
                        resource.resource_name = chance.choice(PASSING)
                    names = self._topic_settings
                case 4 | 8:  # a broker's limits, and what it writes to its log
                    names = _BROKER_SETTINGS if resource.resource_type == 4 else ("absent",)
                case _:
                    names = (
                        *("consumer.session.timeout.ms", "share.record.lock.duration.ms"),
                        *("interval.ms", "metrics", "x"),
                    )
            for config in resource.configs or ():
                config.name = chance.choice(names)
