"""
The internal topics in which coordinators keep their state. They are no topics of SeaweedMQ's, whose answers promise too
little for them: each partition is chains of objects in the filer.

    /topics/kafka/.meta/kgateway/state/TOPIC/kgateway.json      what a topic keeps (kept_topic.py)
    /topics/kafka/.meta/kgateway/state/TOPIC/INDEX/EPOCH/       a chain
    /topics/kafka/.meta/kgateway/state/TOPIC/INDEX/snapshot-OFFSET
"""

from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator, deferLater
from twisted.logger import Logger

from kgateway.broker.seaweed.chain import Chain
from kgateway.broker.seaweed.chain_partition import ChainPartition
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.filer_snapshots import FilerSnapshots
from kgateway.broker.seaweed.retrying import Demand, demand_nothing
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.kept_topic import Generation, KeptTopic, Stretch, read_kept_topic
from kgateway.broker.seaweedmq.layout import ring_ranges
from kgateway.broker.seaweedmq.site import Site
from kgateway.broker.seaweedmq.topics import KEPT, Stored
from kgateway.cluster.view import Topic
from kgateway.wire.errors import KafkaError

_AGAIN_S = 1.0


class StateTopics:
    """
    Those of one namespace.
    """

    _log = Logger()

    def __init__(self, site: Site, filer: Filer, demand_ownership: Demand = demand_nothing) -> None:
        self._site = site
        self._demand_ownership = demand_ownership
        self._filer = filer  # which decides all chains
        self._folder = f"{site.folder}/state"
        self._in_turns = Cooperator(scheduler=partial(site.reactor.callLater, 0))

    async def all(self) -> list[Stored]:
        """
        Those there are.
        """
        found: list[Stored] = []
        for folder in await self._filer.all_entries(self._folder):
            content = await self._filer.content(f"{self._folder}/{folder.name}/{KEPT}")
            found += [] if content is None else [Stored(folder.name, read_kept_topic(content))]
        return found

    def stored(self, topic: Topic) -> Stored:
        """
        What is kept of a topic.
        """
        stretches = tuple(Stretch(part, 0, 0) for part in ring_ranges(len(topic.partitions)))
        kept = KeptTopic(topic.id, (Generation(0, stretches),), topic.config.overrides, internal=True)
        return Stored(topic.name, kept)

    async def keep_new(self, stored: Stored) -> None:
        """
        Write that a topic is there, however often that must be tried: it is in use by then.
        """
        problem = ""
        while True:
            try:
                await self.keep(stored)
            except (*CLUSTERS_ERRORS, KafkaError) as error:
                if not problem:
                    self._log.warn("{topic} is not kept yet: {error}", topic=stored.name, error=error)
                problem = str(error)
                await deferLater(self._site.reactor, _AGAIN_S)
            else:
                break

    async def keep(self, stored: Stored) -> None:
        """
        Write that a topic is there.
        """
        path = f"{self._folder}/{stored.name}/{KEPT}"
        await self._filer.write(path, stored.kept.written(), self._demand_ownership)

    async def delete(self, name: str) -> None:
        """
        Remove a topic with all there is in it.
        """
        await self._filer.delete(f"{self._folder}/{name}", recursive=True, demand=self._demand_ownership)

    def fresh(self, topic: Topic, index: int, ready: Deferred[None]) -> ChainPartition:
        """
        A partition of a topic that is made just now; nothing is written to it before that is `ready`.
        """
        chain = self._chain(topic, index, topic.partitions[index].leader_epoch)
        return ChainPartition(topic, index, self._site.now_ms, chain, self._site.reactor, ready)

    async def existing(self, topic: Topic, index: int) -> ChainPartition:
        """
        A partition, once all who had it before can write to it no more.
        """
        epoch = topic.partitions[index].leader_epoch
        chain = self._chain(topic, index, epoch)
        partition = ChainPartition(topic, index, self._site.now_ms, chain, self._site.reactor)
        partition.begin_at((await self.snapshots(partition).load()).offset)
        for entry in await self._filer.all_entries(self._path(topic, index)):
            if entry.is_directory and int(entry.name) < epoch:
                before = self._chain(topic, index, int(entry.name))
                await before.end(str(epoch).encode(), partial(partition.take, before))
        return partition

    def snapshots(self, partition: ChainPartition) -> FilerSnapshots:
        """
        Where the snapshots of a partition are.
        """
        path = self._path(partition.topic, partition.index)
        return FilerSnapshots(self._site.seaweed, path, self._in_turns, partition.forget)

    def _chain(self, topic: Topic, index: int, epoch: int) -> Chain:
        return Chain(self._filer, f"{self._path(topic, index)}/{epoch:010d}", self._site.seaweed.retrying)

    def _path(self, topic: Topic, index: int) -> str:
        return f"{self._folder}/{topic.name}/{index}"
