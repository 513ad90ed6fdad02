"""
What the gateway has that owns the topics of a cluster, for as long as it does: the topics as they are kept, their
partitions, and what is told of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.patience import end_of
from kgateway.broker.seaweedmq.forms.needed import with_form
from kgateway.broker.seaweedmq.openings import Openings, Partition
from kgateway.broker.seaweedmq.owned_states import OwnedStates
from kgateway.broker.seaweedmq.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.parts import Parts
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic, Topic
from kgateway.coordinating.places import STATE_TOPICS
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_OPENED_AT_ONCE = 8  # partitions
_MADE_ANEW = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "SeaweedMQ has made the partitions of the topic anew")


class Owned:
    """
    Under one epoch.
    """

    _log = Logger()

    def __init__(self, parts: Parts, epoch: int, topic_defaults: Mapping[str, str]) -> None:
        self.epoch = epoch
        self.openings = Openings(self._open)
        self.states = OwnedStates(parts.states, self.openings, parts.offsets)
        self._parts = parts
        self._topic_defaults = topic_defaults
        self._stored: dict[Uuid, Stored] = {}
        self._followed: dict[Uuid, Deferred[None]] = {}  # topics that somebody else has changed just now

    async def load(self) -> list[Stored]:
        """
        All topics there are.
        """
        found = [*await self._parts.topics.all(), *await self._parts.states.all()]
        self._stored = {each.kept.id: each for each in found}
        await self._parts.ledgers.load(self._stored)
        return found

    def known(self) -> list[Stored]:
        """
        All topics by now: others may have made or changed some since they were loaded.
        """
        return list(self._stored.values())

    def open_all(self, topics: Iterable[Topic]) -> Deferred[None]:
        """
        Open the partitions of these topics, a few at a time; fires when all were tried.
        """
        places = iter([(topic, index) for topic in topics for index in range(len(topic.partitions))])
        work = [Deferred.fromCoroutine(self._open_each(places)) for _ in range(_OPENED_AT_ONCE)]
        return gatherResults(work).addCallback(lambda _: None)

    async def _open_each(self, places: Iterator[tuple[Topic, int]]) -> None:
        for topic, index in places:
            if topic.id in self._stored:  # else it was deleted meanwhile
                with suppress(KafkaError):  # the log has the reason
                    await self.openings.opened(topic, index)

    async def names(self) -> list[str]:
        """
        What there is a folder of in the cluster, as for a topic.
        """
        return await self._parts.topics.names()

    async def is_there(self, topic: Topic) -> bool:
        """
        Whether the cluster has the topic still, and not another one in its place.
        """
        seen = await self._parts.topics.seen(topic.name)
        return seen is not None and seen.stored.kept.id == topic.id

    def look_again(self) -> None:
        """
        Files may have grown, and nobody has told.
        """
        for partition in self._served():
            partition.look_again()

    def _served(self) -> list[SeaweedMQPartition]:
        return [each for each in self.openings.open.values() if isinstance(each, SeaweedMQPartition)]

    async def find(self, name: str) -> Stored | None:
        """
        A topic that somebody else has made just now; `None` where it is known already.
        """
        if any(each.name == name for each in self._stored.values()):
            return None
        stored = await self._parts.topics.find(name)
        if stored is None or any(each.name == name for each in self._stored.values()):
            return None
        self._stored[stored.kept.id] = stored
        return stored

    async def is_made_anew(self, topic: Topic) -> bool:
        """
        Whether somebody else has given the topic another number of partitions.
        """
        stored = self._stored.get(topic.id)
        return stored is not None and await self._parts.topics.is_made_anew(stored)

    async def follow(self, topic: Topic) -> Stored:
        """
        Take over what somebody else has made of the topic.
        """
        stored = self._stored[topic.id]
        followed = self._followed[topic.id] = Deferred()
        self.openings.forget(topic, _MADE_ANEW)
        try:
            taken = self._stored[topic.id] = await self._parts.topics.take_over(stored)
        finally:
            del self._followed[topic.id]
            followed.callback(None)
        return taken

    def config(self, stored: Stored) -> TopicConfig:
        """
        What is set for a topic.
        """
        return TopicConfig.of(stored.kept.configs, self._topic_defaults)

    def with_form(self, config: TopicConfig) -> TopicConfig:
        """
        The config with the form among what is set, and what that needs.
        """
        return with_form(config, self._topic_defaults)

    def add_state_topic(self, topic: Topic) -> None:
        """
        An internal topic, at once.
        """
        self._stored[topic.id] = self.states.add(topic)

    async def create(self, topic: Topic, new: NewTopic) -> None:
        """
        Make a topic in the cluster.
        """
        stored = self._stored[topic.id] = await self._parts.topics.create(topic.id, new, topic.config.overrides)
        for index in range(len(topic.partitions)):
            self.openings.add(self._parts.making.fresh(topic, stored, index))

    async def grow(self, topic: Topic, grown: Topic) -> None:
        """
        Give a topic its new partitions in the cluster. What is produced meanwhile is published afterwards.
        """
        before = [await self._opened(topic, index) for index in range(len(topic.partitions))]
        ends = [await partition.pause() for partition in before]
        stored = self._stored[topic.id]
        try:
            stored = self._stored[topic.id] = await self._parts.topics.grow(stored, len(grown.partitions), ends)
        finally:
            for partition in before:
                self._parts.making.regrown(partition, stored)
        for partition in before:
            partition.become(grown)
        for index in range(len(before), len(grown.partitions)):
            self.openings.add(self._parts.making.fresh(grown, stored, index))

    async def configure(self, topic: Topic) -> TopicConfig:
        """
        Keep the config that the topic has now, and let its partitions have it; what it is with its form.
        """
        is_state = topic.name in STATE_TOPICS.values()
        config = topic.config if is_state else self.with_form(topic.config)
        stored = self._stored[topic.id]
        if config.overrides == stored.kept.configs:
            return config
        stored = stored._replace(kept=replace(stored.kept, configs=config.overrides))
        await (self.states if is_state else self._parts.topics).keep(stored)
        self._stored[topic.id] = stored
        for partition in self.openings.of(topic):
            partition.become(replace(partition.topic, config=config))
        return config

    async def delete(self, topic: Topic) -> None:
        """
        Remove a topic from the cluster.
        """
        self.forget(topic)
        if topic.name in STATE_TOPICS.values():
            await self.states.delete(topic.name)
        else:
            await self._parts.topics.delete(topic.name)

    def forget(self, topic: Topic) -> None:
        """
        The topic is there no more.
        """
        self.states.forget(topic)
        self.openings.forget(topic)
        self._parts.ledgers.forget(topic.id)
        self._parts.making.forget(topic)
        self._stored.pop(topic.id, None)

    def lose(self, why: KafkaError) -> None:
        """
        None of it is ours any more.
        """
        self.states.lose()
        self.openings.lose(why)
        self._parts.ledgers.lose(why)

    async def settle(self) -> None:
        """
        See to it that all that was produced is in files, and that the next start has little to look at.
        """
        settling = [Deferred.fromCoroutine(self._settle(each)).addBoth(self._settled, each) for each in self._served()]
        await gatherResults([*settling, self.states.settle()])
        await self._parts.ledgers.settle()

    async def _settle(self, partition: SeaweedMQPartition) -> None:
        if partition.has_grown:
            self._parts.demand_ownership()  # else the files may end with what another one has published
            await partition.pause()
            await partition.save()

    def _settled(self, outcome: Failure | None, partition: SeaweedMQPartition) -> None:
        if outcome or partition.unsafe_count:
            why = outcome.getErrorMessage() if outcome else "no broker has taken them"
            place, count = f"{partition.topic.name}-{partition.index}", partition.unsafe_count
            told = "{place}: {count} records at its end are not known to be in files: {why}"
            self._log.warn(told, place=place, count=count, why=why)

    async def _opened(self, topic: Topic, index: int) -> SeaweedMQPartition:
        opened = await self.openings.opened(topic, index)
        assert isinstance(opened, SeaweedMQPartition)
        return opened

    async def _open(self, topic: Topic, index: int) -> Partition:
        if topic.id in self._followed:
            await end_of(self._followed[topic.id])
        stored = self._stored[topic.id]
        partition = await self._existing(topic, stored, index)
        if self._stored.get(topic.id, stored) is not stored:  # it was changed meanwhile
            partition.become(replace(topic, config=self.config(self._stored[topic.id])))
        return partition

    async def _existing(self, topic: Topic, stored: Stored, index: int) -> Partition:
        if topic.name in STATE_TOPICS.values():
            return await self._parts.states.existing(topic, index)
        return await self._parts.making.existing(topic, stored, index)
