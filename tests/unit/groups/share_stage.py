"""Share groups on a shelf of their own, with topics that come and go, and a share coordinator that does as told."""

from ottla.groups.share.effects import DeleteState, InitializeState
from ottla.groups.share.groups import ShareGroups
from ottla.groups.shelf import Shelf
from ottla.groups.topics import TopicFacts
from ottla.metadata.settings.group import effective_group
from ottla.metadata.settings.layers import BrokerValues
from ottla.replicated.decision import Decision
from ottla.replicated.keyed import Client
from ottla.wire.messages.delete_share_group_state import DeleteShareGroupStateResponse
from ottla.wire.messages.initialize_share_group_state import InitializeShareGroupStateResponse
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.unit.replicated.journal import Bench

CLIENT = Client("client", "/127.0.0.1")
GROUP = "group"


def topic_id(name):
    return name.encode().ljust(16, b"-")


class Topics:
    def __init__(self, **partitions):
        self.version = 0
        self.facts = {}
        for name, count in partitions.items():
            self.create(name, count)

    def create(self, name, partitions):
        self.version += 1
        self.facts[name] = TopicFacts(name, topic_id(name), partitions)

    def delete(self, name):
        self.version += 1
        return self.facts.pop(name).id

    def find(self, name):
        return self.facts.get(name)

    def by_id(self, id):
        return next((facts for facts in self.facts.values() if facts.id == id), None)

    def names(self):
        return self.facts


class Machine:
    """Share groups as a machine of their own."""

    def __init__(self, topics, settings=None):
        values = BrokerValues({"node.id": "1", **(settings or {})})
        config = effective_group(values, {})
        self.shelf = Shelf(topics, values, lambda group_id, name: config[name], lambda: bytes(16))
        self.shares = ShareGroups(self.shelf)

    @property
    def deadline(self):
        return self.shelf.timers.next_deadline

    def apply(self, offset, record):
        self.shares.apply(record)

    def expire(self, now):
        records = ()
        for key in self.shelf.timers.due(now):
            assert key[0] == "share"
            records += self.shares.expire(key, now).records
        return Decision(None, records)


class Stage(Bench):
    def __init__(self, settings=None, **partitions):
        self.topics = Topics(**partitions)
        self.settings = settings
        super().__init__(Machine(self.topics, settings))
        self.shares = self.machine.shares

    @property
    def group(self):
        return self.machine.shelf.groups[GROUP]

    def beat(self, member, epoch=0, topics=None, *, group=GROUP, rack=None, client=CLIENT):
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, rack_id=rack, subscribed_topic_names=topics
        )
        return self.ask(self.shares.heartbeat, request, client)

    def coordinate(self, code=0):
        """Let the share coordinator answer all that it was asked; return the requests."""
        effects, self.effects = self.effects, []
        for effect in effects:
            if isinstance(effect, InitializeState):
                kind = InitializeShareGroupStateResponse.InitializeStateResult
                response = InitializeShareGroupStateResponse(
                    results=self._results(kind, effect.request, code)
                )
                self.ask(self.shares.state_initialized, GROUP, response, effect.token)
            else:
                assert isinstance(effect, DeleteState)
                kind = DeleteShareGroupStateResponse.DeleteStateResult
                response = DeleteShareGroupStateResponse(results=self._results(kind, effect.request, code))
                self.ask(self.shares.state_deleted, GROUP, response, effect.token)
        return [effect.request for effect in effects]

    def _results(self, kind, request, code):
        return [
            kind(
                topic_id=topic.topic_id,
                partitions=[
                    kind.PartitionResult(partition=part.partition, error_code=code)
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]

    def settle(self, member, topics):
        """Join, have the state made, and return the reply with the assignment."""
        reply = self.beat(member, 0, topics)
        self.coordinate()
        self.pass_time(1000)
        return self.beat(member, reply.member_epoch)

    def fresh(self):
        return self.replayed(Machine(self.topics, self.settings))


def assigned(reply):
    """The assignment in an answer, as {name: partitions}; None when it has none."""
    if reply.assignment is None:
        return None
    return {each.topic_id.decode().rstrip("-"): each.partitions for each in reply.assignment.topic_partitions}
