"""
Keeps the ledgers of all partitions in a topic of SeaweedMQ: `offset-mappings` in the namespace `kafka-system`.

Rows are published in blocks, now and then and at the end, never for each message. What an end without warning leaves
unpublished is in the log files of its partition, from which it is made again; so nothing waits for an acknowledgement
here. The topic is made when it is first needed, read once at the start, and is a partition like any other, except that
nobody keeps a ledger of it.
"""

from collections.abc import Collection, Sequence
from itertools import islice

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweedmq.forms.by_name import FORMS
from kgateway.broker.seaweedmq.forms.form import Message
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.kept_topic import FORMAT
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.ledger_records import TOPIC, Owner, Replay, message, parts
from kgateway.broker.seaweedmq.link import Link
from kgateway.broker.seaweedmq.making import Making
from kgateway.broker.seaweedmq.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.partition_ledger import Known, PartitionLedger
from kgateway.broker.seaweedmq.topics import Stored, Topics
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import EARLIEST_OFFSET, Origin
from kgateway.cluster.view import NO_NODE, NewTopic, PartitionState, Topic
from kgateway.records.batch import Batch
from kgateway.records.builder import BatchBuilder
from kgateway.wire.errors import KafkaError
from kgateway.wire.malformed import Malformed
from kgateway.wire.uuids import Uuid

_KEEP_S = 5.0
_SOON_ROWS = 4096  # of one partition
_PARTS_AT_ONCE = 16
_FORM = "plain"


class KeptLedgers:
    """
    Of one owner of the topics.
    """

    _log = Logger()

    def __init__(self, topics: Topics, making: Making, clock: IReactorTime, epoch: int) -> None:
        self._topics = topics
        self._making = making
        self._clock = clock
        self._epoch = epoch
        self._known: dict[Owner, Known] = {}
        self._open: dict[Owner, PartitionLedger] = {}
        self._changed: dict[Owner, None] = {}
        self._partition: SeaweedMQPartition | None = None
        self._later: IDelayedCall | None = None
        self._keeping: Deferred[None] | None = None
        self._lost = False

    async def load(self, topic_ids: Collection[Uuid]) -> None:
        """
        Read what was kept of these topics.
        """
        stored = await self._topics.find(TOPIC)
        if stored is None:
            return
        history, replay = self._making.history(stored, 0), Replay()
        await history.refresh()
        try:
            async for _, piece in history.messages(EARLIEST_OFFSET):
                for entry in piece:
                    replay.add(entry.key, entry.value)
        except Malformed as error:
            self._log.error("{topic} cannot be read on: {error}", topic=TOPIC, error=error)
        for fault in replay.unread:
            self._log.warn("{topic}: {fault}", topic=TOPIC, fault=fault)
        for owner, found in replay.found.items():
            if owner.topic_id in topic_ids:
                self._known[owner] = Known(found.ledger, found.ledger.settled)

    def of(self, topic_id: Uuid, link: Link) -> PartitionLedger:
        """
        The ledger of a partition that is being opened.
        """
        owner = Owner(topic_id, link.index)
        if owner in self._open:
            self._open[owner].close()
        newest = link.history.folders[-1]
        known = self._known.setdefault(owner, Known(Ledger(link.form.batched, newest.unix_time_ns, newest.part)))
        name = f"{link.topic}-{link.index}"
        ledger = PartitionLedger(known, name, link.history, link.form, link.clock, lambda: self._has_rows(owner))
        self._open[owner] = ledger
        return ledger

    def forget(self, topic_id: Uuid) -> None:
        """
        A topic is there no more.
        """
        for owner in [owner for owner in self._known if owner.topic_id == topic_id]:
            del self._known[owner]
            self._changed.pop(owner, None)
            ledger = self._open.pop(owner, None)
            if ledger:
                ledger.close()

    async def settle(self) -> None:
        """
        Keep all there is, and see to it that it is in files.
        """
        for ledger in self._open.values():
            ledger.settle()
        self._cancel()
        try:
            await self._keep()
            if self._partition and self._partition.has_grown:
                await self._partition.pause()
                await self._partition.save()
        except (*CLUSTERS_ERRORS, KafkaError) as error:
            self._log.warn("the ledgers are not kept to their ends: {error}", error=error)

    def lose(self, why: KafkaError) -> None:
        """
        None of them is ours any more.
        """
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
        if self._keeping:
            self._keeping.cancel()

    def _has_rows(self, owner: Owner) -> None:
        """
        There is something to keep of a ledger.
        """
        self._changed[owner] = None
        if self._known[owner].unkept >= _SOON_ROWS:
            self._keep_now()
        else:
            self._keep_in(_KEEP_S)

    def _keep_in(self, seconds: float) -> None:
        if self._later is None and not self._lost:
            self._later = self._clock.callLater(seconds, self._keep_now)

    def _keep_now(self) -> None:
        if self._later:
            if self._later.active():
                self._later.cancel()
            self._later = None
        if self._keeping is None and not self._lost:
            self._keeping = Deferred.fromCoroutine(self._keep()).addErrback(self._not_kept)
            self._keeping.addCallback(self._has_kept)  # at once, where it had nothing to wait for

    def _has_kept(self, _: None) -> None:
        self._keeping = None
        if self._changed:
            self._keep_in(_KEEP_S)

    def _not_kept(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            failure.trap(*CLUSTERS_ERRORS, KafkaError)
            self._log.info("the ledgers are kept later: {why}", why=failure.getErrorMessage())

    async def _keep(self) -> None:
        while self._changed:
            partition = await self._opened()
            owner = next(iter(self._changed))
            known = self._known[owner]
            found = list(islice(parts(known.ledger, self._epoch, known.first_unkept), _PARTS_AT_ONCE))
            appended = partition.append(_batch([message(owner, part) for part in found]), Origin.COORDINATOR)
            appended.leave(appended.stored, appended.safe)  # a lost partition is noticed, and all is kept again
            known.first_unkept = min(found[-1].stop, known.ledger.settled)
            del self._changed[owner]
            if known.first_unkept < known.ledger.settled:
                self._changed[owner] = None
            await deferLater(self._clock, 0)

    async def _opened(self) -> SeaweedMQPartition:
        if self._partition and self._partition.lost:  # what was published last may be lost, too
            for known in self._known.values():
                known.first_unkept = known.ledger.rows.first
        elif self._partition:
            return self._partition
        stored = await self._topics.find(TOPIC)
        if stored:
            self._partition = await self._making.existing(self._topic(stored), stored, 0)
        else:
            config = TopicConfig.of({**FORMS[_FORM].needs, FORMAT: _FORM})
            stored = await self._topics.create(Uuid.random(), NewTopic(TOPIC, 1, config), config.overrides)
            self._partition = self._making.fresh(self._topic(stored), stored, 0)
        return self._partition

    def _topic(self, stored: Stored) -> Topic:
        led = PartitionState(NO_NODE, self._epoch, (), ())
        return Topic(stored.kept.id, TOPIC, (led,), TopicConfig.of(stored.kept.configs))


def _batch(messages: Sequence[Message]) -> Batch:
    builder = BatchBuilder()
    for key, value in messages:
        builder.append(key, bytes(value), timestamp=0)
    return builder.batch()
