"""
Transaction markers: the control records that end a transaction in each of its partitions.

`MarkerWriter` writes them into partitions of this gateway, both for the coordinator here and for the handler of
WriteTxnMarkers. So its listeners hear of every transaction that ends in a partition here, whichever gateway coordinates
it. `MarkerSender` has every partition of a transaction marked, wherever its leader is, however often that must be
tried: a partition that is not available is tried again, with growing pauses; one that was deleted needs no marker.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from typing import NamedTuple

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.logger import Logger

from kgateway.cluster.partition import Origin
from kgateway.context import GatewayParts
from kgateway.coordination.slicing import batched, by_turns, pause, shield
from kgateway.interfaces import Cancel, IPartition
from kgateway.log_messages import MARKER_LISTENER_FAILED, NO_MARKER_YET
from kgateway.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kgateway.plurals import counted
from kgateway.records.control import Marker, marker_batch
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.records import by_topic
from kgateway.transactions.state import EPOCH_EACH, ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError

PIECE = 50  # partitions in a turn; a few milliseconds
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
_VERSION = WriteTxnMarkersRequest.__spec__.versions[-1]
_Marker = WriteTxnMarkersRequest.Marker
_Outcomes = dict[TopicPartition, ErrorCode]

# Retriable besides the codes that Kafka calls so.
_RETRIABLE = {ErrorCode.BROKER_NOT_AVAILABLE}
# The partition has heard of a later coordinator or epoch: this coordinator must not go on.
_OVERRULED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
# The partition is marked, or its log can hold no transaction.
_DONE = {ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}


class MarkerEntry(NamedTuple):
    producer: ProducerIdAndEpoch
    commits: bool
    coordinator_epoch: int
    transaction_version: int


# Called with a partition in which a producer's transaction has ended, the producer's id, and whether it commits.
Listener = Callable[[TopicPartition, int, bool], None]


class MarkerWriter:
    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._broker = gateway.broker
        self._now_ms = gateway.now_ms
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Cancel:
        """
        Call the listener for each marker that is committed.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def write(self, partition: TopicPartition, marker: MarkerEntry) -> Deferred[None] | None:
        """
        Write a marker. Returns `None` if it is committed by then, else a Deferred that fires when it is. Raises a
        KafkaError if it cannot be written.
        """
        topic = self._broker.view().topics.get(partition.topic)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {partition.topic}")
        log = self._broker.partition(topic.id, partition.index)
        _check_not_late(log, partition, marker)
        batch = marker_batch(*marker.producer, Marker(marker.commits, marker.coordinator_epoch), self._now_ms())
        appended = log.append(batch, Origin.COORDINATOR)
        appended.ignore(appended.stored)
        if appended.committed is None:
            self._notify(partition, marker)
            return None
        return appended.committed.addCallback(lambda _: self._notify(partition, marker))

    def _notify(self, partition: TopicPartition, marker: MarkerEntry) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(partition, marker.producer.producer_id, marker.commits)
            except Exception:  # the marker is written all the same
                self._log.failure(MARKER_LISTENER_FAILED, partition=partition)


def _check_not_late(log: IPartition, partition: TopicPartition, marker: MarkerEntry) -> None:
    """
    Refuse a marker that is a repetition and would end the next transaction, which has its epoch (KIP-1228).
    """
    if marker.transaction_version >= EPOCH_EACH and log.producers().has_open(*marker.producer):
        reason = f"{partition.topic}-{partition.index} has a later transaction of {marker.producer} open"
        raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, reason)


class MarkerSender:
    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._broker = gateway.broker
        self._clock = gateway.clock
        self._markers = gateway.service(MarkerWriter)

    async def send(
        self, partitions: Iterable[TopicPartition], marker: MarkerEntry, done: Callable[[Set[TopicPartition]], None]
    ) -> None:
        """
        Return when every partition has the marker. `done` is called with each group of partitions that has it. A
        KafkaError if a partition has a marker of a later coordinator.
        """
        left = set(partitions)
        for pause_s in pauses():
            failed: _Outcomes = {}
            async for piece in by_turns(batched(sorted(left), PIECE), self._clock):
                outcomes = await self._attempt(piece, marker)
                _check(outcomes, marker)
                marked = {partition for partition, code in outcomes.items() if code in _DONE}
                left -= marked
                done(marked)
                failed |= {partition: code for partition, code in outcomes.items() if partition not in marked}
            if not left:
                return
            self._log_failed(failed, marker)
            await pause(self._clock, pause_s)

    def _log_failed(self, failed: _Outcomes, marker: MarkerEntry) -> None:
        retriable = {partition for partition, code in failed.items() if code.retriable or code in _RETRIABLE}
        partition = next((partition for partition in failed if partition not in retriable), next(iter(failed)))
        log = self._log.info if partition in retriable else self._log.error
        first = {"producer": marker.producer, "topic": partition.topic, "index": partition.index}
        log(NO_MARKER_YET, partitions=counted(len(failed), "partition"), error=failed[partition].name, **first)

    async def _attempt(self, partitions: Iterable[TopicPartition], marker: MarkerEntry) -> _Outcomes:
        by_leader = defaultdict[int | None, list[TopicPartition]](list)
        for partition in partitions:
            by_leader[self._leader_of(partition)].append(partition)
        asked = [Deferred.fromCoroutine(self._write_at(leader, those, marker)) for leader, those in by_leader.items()]
        try:
            found = await gatherResults(asked, consumeErrors=True)
        except FirstError as first:
            first.subFailure.raiseException()
        return {partition: code for outcomes in found for partition, code in outcomes.items()}

    def _leader_of(self, partition: TopicPartition) -> int | None:
        topic = self._broker.view().topics.get(partition.topic)
        if topic is None or partition.index >= len(topic.partitions):
            return None  # it was deleted
        return topic.partitions[partition.index].leader_id

    async def _write_at(self, leader: int | None, partitions: list[TopicPartition], marker: MarkerEntry) -> _Outcomes:
        if leader is None:
            return dict.fromkeys(partitions, ErrorCode.NONE)
        if leader == self._broker.node_id:
            started = [(partition, self._write(partition, marker)) for partition in partitions]
            return {partition: code if isinstance(code, ErrorCode) else await code for partition, code in started}
        return await self._ask(leader, partitions, marker)

    def _write(self, partition: TopicPartition, marker: MarkerEntry) -> Deferred[ErrorCode] | ErrorCode:
        try:
            committed = self._markers.write(partition, marker)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE if committed is None else Deferred.fromCoroutine(_code_of(shield(committed)))

    async def _ask(self, leader: int, partitions: list[TopicPartition], marker: MarkerEntry) -> _Outcomes:
        node = self._broker.view().node(leader)
        if node is None:
            return dict.fromkeys(partitions, ErrorCode.LEADER_NOT_AVAILABLE)
        try:
            answer = await self._broker.peers.ask(node, _request(partitions, marker), _VERSION)
        except KafkaError as error:
            return dict.fromkeys(partitions, error.code)
        assert isinstance(answer, WriteTxnMarkersResponse)
        return dict.fromkeys(partitions, ErrorCode.LEADER_NOT_AVAILABLE) | _outcomes(answer)


def pauses() -> Iterator[float]:
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _check(outcomes: _Outcomes, marker: MarkerEntry) -> None:
    for partition, code in outcomes.items():
        if code in _OVERRULED:
            raise KafkaError(code, f"{partition.topic}-{partition.index} accepts no marker of {marker.producer}")


async def _code_of(committed: Deferred[None]) -> ErrorCode:
    try:
        await committed
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def _request(partitions: list[TopicPartition], marker: MarkerEntry) -> WriteTxnMarkersRequest:
    entry = _Marker(
        producer_id=marker.producer.producer_id,
        producer_epoch=marker.producer.epoch,
        transaction_result=marker.commits,
        topics=[
            _Marker.Topic(name=topic.topic, partition_indexes=topic.partition_ids) for topic in by_topic(partitions)
        ],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
    return WriteTxnMarkersRequest(markers=[entry])


def _outcomes(answer: WriteTxnMarkersResponse) -> _Outcomes:
    return {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
