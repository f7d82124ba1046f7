"""A stage for streams groups: topics that can change, a machine, and threads that do as they are told."""

import itertools

from ottla.groups.machine import Groups
from ottla.groups.shelf import Shelf
from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.keyed import Client
from ottla.wire.errors import ErrorCode
from ottla.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Request
from tests.unit.groups.consumer_stage import Topics
from tests.unit.replicated.journal import Bench

CLIENT = Client("client", "/127.0.0.1")
GROUP = "group"
VOLATILE = {"refreshed", "configured", "_configured_for", "endpoint_epoch", "shutdown_by"}
Subtopology = Request.Topology.Subtopology
CopartitionGroup = Subtopology.CopartitionGroup


def info(name, partitions=0, replication=0, **configs):
    return Request.TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replication,
        topic_configs=[Request.KeyValue(key=key, value=value) for key, value in configs.items()],
    )


def subtopology(name, sources=(), changelogs=(), sinks=(), repartitions=(), together=()):
    """One subtopology; `together` lists pairs of places: of source topics, and of repartition topics."""
    return Subtopology(
        subtopology_id=name,
        source_topics=list(sources),
        state_changelog_topics=[info(each) for each in changelogs],
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(repartitions),
        copartition_groups=[
            CopartitionGroup(source_topics=list(first), repartition_source_topics=list(second))
            for first, second in together
        ],
    )


def topology(*subtopologies, epoch=0):
    return Request.Topology(epoch=epoch, subtopologies=list(subtopologies))


# One stateless and one stateful subtopology, both of which read topics that are there.
PLAIN = topology(subtopology("0", ["foo"]), subtopology("1", ["bar"], changelogs=["store"]))


def make_machine(topics, settings):
    """Return the groups of one partition, streams groups among them."""
    values = BrokerValues({"node.id": "1", **settings})
    chance = itertools.count(1)
    shelf = Shelf(
        topics, values, lambda group, name: values[f"group.{name}"], lambda: next(chance).to_bytes(16, "big")
    )
    return Groups(shelf)


def durable(machine):
    """Return what a machine must know again once it has read the log."""
    return {
        group.id: {name: getattr(group, name) for name in group.__slots__ if name not in VOLATILE}
        for group in machine.shelf.groups.values()
    }


class Stage(Bench):
    """A bench with topics, and words for what tests do most."""

    def __init__(self, settings=None, **topics):
        self.topics = Topics(**(topics or {"foo": 4, "bar": 2, "store": 2}))
        self.settings = {
            "group.streams.assignment.interval.ms": "0",
            "group.streams.initial.rebalance.delay.ms": "0",
            **(settings or {}),
        }
        super().__init__(make_machine(self.topics, self.settings))

    @property
    def group(self):
        return self.machine.shelf.groups[GROUP]

    def beat(self, client=CLIENT, group_id=GROUP, **fields):
        """Send a heartbeat as it is."""
        fields.setdefault("member_epoch", 0)
        fields.setdefault("member_id", "a")
        if fields["member_epoch"] == 0:
            for name in ("active_tasks", "standby_tasks", "warmup_tasks"):
                fields.setdefault(name, [])
            fields.setdefault("rebalance_timeout_ms", 5_000)
            fields.setdefault("topology", PLAIN)
            fields.setdefault("process_id", fields["member_id"])
        request = Request(group_id=group_id, **fields)
        heard = self.ask(self.machine.streams.heartbeat, request, client)
        self.missing = heard.missing
        return heard.response

    def refused(self, code, **fields):
        response = self.beat(**fields)
        assert ErrorCode(response.error_code) is code, response
        return response

    def describe(self, *group_ids, described=False):
        return self.machine.streams.describe(group_ids or (GROUP,), described=described)

    def fresh(self):
        """Return what another coordinator makes of the log."""
        return self.replayed(make_machine(self.topics, self.settings))

    def thread(self, member_id, **fields):
        return Thread(self, member_id, **fields)


def pairs(tasks):
    return {(each.subtopology_id, partition) for each in tasks for partition in each.partitions}


def ids(tasks):
    found = {}
    for name, partition in sorted(tasks):
        found.setdefault(name, []).append(partition)
    return [Request.TaskIds(subtopology_id=name, partitions=parts) for name, parts in found.items()]


class Thread:
    """A member that does as it is told: `granted` is what it was last given, `runs` what it runs; by role."""

    def __init__(self, stage, member_id, **fields):
        self.stage = stage
        self.id = member_id
        self.fields = fields
        self.process = fields.get("process_id", member_id)
        self.epoch = 0
        self.endpoint_epoch = 0
        self.runs = {"active": set(), "standby": set()}
        self.granted = {"active": set(), "standby": set()}
        self.error = ErrorCode.NONE
        self.response = None

    @property
    def active(self):
        return self.runs["active"]

    @property
    def standby(self):
        return self.runs["standby"]

    @property
    def statuses(self):
        return [status.status_code for status in self.response.status]

    def beat(self, *, quiet=False, **fields):
        """Send a heartbeat that says what it runs, unless it is quiet about that; the answer is only noted."""
        if self.epoch == 0:
            fields = {**self.fields, **fields}
        elif not quiet:
            fields.setdefault("active_tasks", ids(self.active))
            fields.setdefault("standby_tasks", ids(self.standby))
            fields.setdefault("warmup_tasks", [])
        response = self.stage.beat(
            member_id=self.id,
            member_epoch=self.epoch,
            endpoint_information_epoch=self.endpoint_epoch,
            **fields,
        )
        self.response = response
        self.error = ErrorCode(response.error_code)
        if self.error is ErrorCode.NONE:
            self.epoch = response.member_epoch
            self.endpoint_epoch = response.endpoint_information_epoch
            if response.active_tasks is not None:
                self.granted = {
                    "active": pairs(response.active_tasks),
                    "standby": pairs(response.standby_tasks),
                }
        elif self.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epoch = 0
            self.granted = {"active": set(), "standby": set()}
            self.obey()
        return response

    def obey(self):
        """Give up what is not granted any more, and begin to run what is new."""
        self.runs = {role: set(tasks) for role, tasks in self.granted.items()}

    def step(self, **fields):
        response = self.beat(**fields)
        self.obey()
        return response


def settle(threads, rounds=6):
    """Let all threads beat and obey for some rounds."""
    for _ in range(rounds):
        for each in threads:
            each.step()


def test_threads_that_obey_run_each_task_once():
    stage = Stage()
    threads = [stage.thread(name) for name in "abc"]
    settle(threads)
    assert (
        sum(len(each.active) for each in threads) == len(set().union(*(each.active for each in threads))) == 6
    )
