"""
The internal topics in which coordinators keep their state. They are no topics of SeaweedMQ's, whose acknowledgements
promise too little for them: each partition is chains of objects in the filer.

    /topics/kafka/.meta/kgateway/state/TOPIC/kgateway.json      the topic file (topic_file.py)
    /topics/kafka/.meta/kgateway/state/TOPIC/INDEX/EPOCH/       a chain
    /topics/kafka/.meta/kgateway/state/TOPIC/INDEX/snapshot-OFFSET
"""

from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator, deferLater
from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import Precondition, no_precondition
from kgateway.broker.seaweed.chain.chain import Chain
from kgateway.broker.seaweed.chain.partition import ChainPartition, ChainSnapshots
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.layout.topic_file import Generation, GenerationPartition, TopicFile, read_topic_file
from kgateway.broker.seaweedmq.layout.topic_paths import ring_ranges
from kgateway.broker.seaweedmq.topics.catalog import TOPIC_FILE, StoredTopic
from kgateway.cluster.view import Topic
from kgateway.log_messages import STATE_TOPIC_NOT_STORED
from kgateway.wire.errors import KafkaError

_AGAIN_S = 1.0


class StateTopics:
    _log = Logger()

    def __init__(self, gateway: GatewayRuntime, filer: Filer, check_lease: Precondition = no_precondition) -> None:
        self._gateway = gateway
        self._check_lease = check_lease
        self._filer = filer  # which decides all chains
        self._folder = f"{gateway.folder}/state"
        self._in_turns = Cooperator(scheduler=partial(gateway.reactor.callLater, 0))

    async def all(self) -> list[StoredTopic]:
        found: list[StoredTopic] = []
        for folder in await self._filer.all_entries(self._folder):
            content = await self._filer.content(f"{self._folder}/{folder.name}/{TOPIC_FILE}")
            found += [] if content is None else [StoredTopic(folder.name, read_topic_file(content))]
        return found

    def stored(self, topic: Topic) -> StoredTopic:
        partitions = tuple(GenerationPartition(part, 0, 0) for part in ring_ranges(len(topic.partitions)))
        file = TopicFile(topic.id, (Generation(0, partitions),), topic.config.overrides, internal=True)
        return StoredTopic(topic.name, file)

    async def store_new(self, stored: StoredTopic) -> None:
        """
        Store a new topic, and retry until that succeeds, because it is in use already.
        """
        problem = ""
        while True:
            try:
                await self.store(stored)
            except (*CLUSTER_ERRORS, KafkaError) as error:
                if not problem:
                    self._log.warn(STATE_TOPIC_NOT_STORED, topic=stored.name, error=error)
                problem = str(error)
                await deferLater(self._gateway.reactor, _AGAIN_S)
            else:
                break

    async def store(self, stored: StoredTopic) -> None:
        path = f"{self._folder}/{stored.name}/{TOPIC_FILE}"
        await self._filer.write(path, stored.file.encoded(), self._check_lease)

    async def delete(self, name: str) -> None:
        await self._filer.delete(f"{self._folder}/{name}", recursive=True, precondition=self._check_lease)

    def fresh(self, topic: Topic, index: int, ready: Deferred[None]) -> ChainPartition:
        """
        A partition of a topic that has just been made; nothing is written to it before `ready` fires.
        """
        chain = self._chain(topic, index, topic.partitions[index].leader_epoch)
        return ChainPartition(topic, index, self._gateway.now_ms, chain, self._gateway.reactor, ready)

    async def existing(self, topic: Topic, index: int) -> ChainPartition:
        """
        A partition, once all earlier leaders are fenced.
        """
        epoch = topic.partitions[index].leader_epoch
        chain = self._chain(topic, index, epoch)
        partition = ChainPartition(topic, index, self._gateway.now_ms, chain, self._gateway.reactor)
        partition.begin_at((await self.snapshots(partition).load()).offset)
        for entry in await self._filer.all_entries(self._path(topic, index)):
            if entry.is_directory and int(entry.name) < epoch:
                before = self._chain(topic, index, int(entry.name))
                await before.end(str(epoch).encode(), partial(partition.add_object, before))
        return partition

    def snapshots(self, partition: ChainPartition) -> ChainSnapshots:
        path = self._path(partition.topic, partition.index)
        return ChainSnapshots(self._gateway.seaweed, path, self._in_turns, partition.forget)

    def _chain(self, topic: Topic, index: int, epoch: int) -> Chain:
        return Chain(self._filer, f"{self._path(topic, index)}/{epoch:010d}", self._gateway.seaweed.retries)

    def _path(self, topic: Topic, index: int) -> str:
        return f"{self._folder}/{topic.name}/{index}"
