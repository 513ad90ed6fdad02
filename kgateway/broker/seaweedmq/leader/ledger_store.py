"""
Stores the ledgers of all partitions in a topic of SeaweedMQ: `offset-mappings` in the namespace `kafka-system`.

Rows are published in blocks, now and then and at a stop, never for each message. What a crash leaves unpublished is
made again from the log files of its partition, so nothing waits for an acknowledgement here. The topic is created when
it is first needed, and read once at the start. Its only partition is like any other, except that it has no ledger.
"""

from collections.abc import Collection, Sequence
from itertools import islice

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.registry import FORMAT, FORMATS
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.ledger.records import TOPIC, LedgerKey, message, parts
from kgateway.broker.seaweedmq.partitions.factory import PartitionFactory
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.partitions.partition_context import PartitionContext
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger, StoredLedger, replay_ledgers
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic, TopicCatalog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NO_NODE, NewTopic, PartitionState, Topic
from kgateway.log_messages import LEDGER_FAULT, LEDGERS_NOT_SAVED
from kgateway.records.batch import Batch
from kgateway.records.builder import BatchBuilder
from kgateway.wire.errors import KafkaError
from kgateway.wire.uuids import Uuid

_STORE_S = 5.0
_SOON_ROWS = 4096  # of one partition
_PARTS_AT_ONCE = 16
_FORM = "plain"


class LedgerStore:
    _log = Logger()

    def __init__(self, topics: TopicCatalog, factory: PartitionFactory, clock: IReactorTime, epoch: int) -> None:
        self._topics = topics
        self._factory = factory
        self._clock = clock
        self._epoch = epoch
        self._known: dict[LedgerKey, StoredLedger] = {}
        self._open: dict[LedgerKey, PartitionLedger] = {}
        self._changed: dict[LedgerKey, None] = {}
        self._partition: SeaweedMQPartition | None = None
        self._later: IDelayedCall | None = None
        self._storing: Deferred[None] | None = None
        self._lost = False

    async def load(self, topic_ids: Collection[Uuid]) -> None:
        """
        Read the stored ledgers of these topics.
        """
        stored = await self._topics.adopt(TOPIC)
        if stored is None:
            return
        replay = await replay_ledgers(self._factory.partition_files(stored, 0))
        for fault in replay.unread:
            self._log.warn(LEDGER_FAULT, topic=TOPIC, fault=fault)
        for key, found in replay.found.items():
            if key.topic_id in topic_ids:
                self._known[key] = StoredLedger(found.ledger, found.ledger.first_unfinished)

    def ledger(self, topic_id: Uuid, context: PartitionContext) -> PartitionLedger:
        key = LedgerKey(topic_id, context.index)
        if key in self._open:
            self._open[key].close()
        newest = context.files.folders[-1]
        known = self._known.setdefault(
            key, StoredLedger(Ledger(context.format.batched, newest.unix_time_ns, newest.part))
        )
        name = f"{context.topic}-{context.index}"
        ledger = PartitionLedger(known, name, context.files, context.format, context.clock, lambda: self._has_rows(key))
        self._open[key] = ledger
        return ledger

    def forget(self, topic_id: Uuid) -> None:
        for key in [key for key in self._known if key.topic_id == topic_id]:
            del self._known[key]
            self._changed.pop(key, None)
            ledger = self._open.pop(key, None)
            if ledger:
                ledger.close()

    async def flush(self) -> None:
        """
        Store all rows, and bring them into files.
        """
        for ledger in self._open.values():
            ledger.flush()
        self._cancel()
        try:
            await self._store()
            if self._partition and self._partition.has_grown:
                await self._partition.pause()
                await self._partition.save()
        except (*CLUSTER_ERRORS, KafkaError) as error:
            self._log.warn(LEDGERS_NOT_SAVED, error=error)

    def lose(self, why: KafkaError) -> None:
        self._lost = True
        self._cancel()
        for ledger in self._open.values():
            ledger.close()
        self._open.clear()
        if self._partition:
            self._partition.lose(why)

    def _cancel(self) -> None:
        if self._later:
            self._later.cancel()
            self._later = None
        if self._storing:
            self._storing.cancel()

    def _has_rows(self, key: LedgerKey) -> None:
        self._changed[key] = None
        if self._known[key].unstored >= _SOON_ROWS:
            self._keep_now()
        else:
            self._keep_in(_STORE_S)

    def _keep_in(self, seconds: float) -> None:
        if self._later is None and not self._lost:
            self._later = self._clock.callLater(seconds, self._keep_now)

    def _keep_now(self) -> None:
        if self._later:
            if self._later.active():
                self._later.cancel()
            self._later = None
        if self._storing is None and not self._lost:
            self._storing = Deferred.fromCoroutine(self._store()).addErrback(self._not_stored)
            self._storing.addCallback(self._stored)  # at once if it had nothing to wait for

    def _stored(self, _: None) -> None:
        self._storing = None
        if self._changed:
            self._keep_in(_STORE_S)

    def _not_stored(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            failure.trap(*CLUSTER_ERRORS, KafkaError)
            self._log.info("ledgers will be saved later: {why}", why=failure.getErrorMessage())

    async def _store(self) -> None:
        while self._changed:
            partition = await self._opened()
            key = next(iter(self._changed))
            known = self._known[key]
            found = list(islice(parts(known.ledger, self._epoch, known.first_unstored), _PARTS_AT_ONCE))
            appended = partition.append(_batch([message(key, part) for part in found]), Origin.COORDINATOR)
            appended.ignore(
                appended.stored, appended.committed
            )  # a lost partition is noticed, and everything is stored again
            known.first_unstored = min(found[-1].stop, known.ledger.first_unfinished)
            del self._changed[key]
            if known.first_unstored < known.ledger.first_unfinished:
                self._changed[key] = None
            await deferLater(self._clock, 0)

    async def _opened(self) -> SeaweedMQPartition:
        if self._partition and self._partition.lost:  # what was published last may be lost, too
            for known in self._known.values():
                known.first_unstored = known.ledger.rows.first
        elif self._partition:
            return self._partition
        stored = await self._topics.adopt(TOPIC)
        if stored:
            self._partition = await self._factory.existing(self._topic(stored), stored, 0)
        else:
            config = TopicConfig.of({**FORMATS[_FORM].needs, FORMAT: _FORM})
            stored = await self._topics.create(Uuid.random(), NewTopic(TOPIC, 1, config), config.overrides)
            self._partition = self._factory.fresh(self._topic(stored), stored, 0)
        return self._partition

    def _topic(self, stored: StoredTopic) -> Topic:
        led = PartitionState(NO_NODE, self._epoch, (), ())
        return Topic(stored.file.id, TOPIC, (led,), TopicConfig.of(stored.file.configs))


def _batch(messages: Sequence[Message]) -> Batch:
    builder = BatchBuilder()
    for key, value in messages:
        builder.append(key, bytes(value), timestamp=0)
    return builder.batch()
