"""
ListOffsets: the offset of a record by its timestamp, or of an end of the log.

 - v0: a list of offsets, of the requested length; Kafka 4 no longer offers it, and kafkajs still sends it
 - v2: read_committed: the latest offset is the last stable one
 - v4: leader epochs are checked, and the response has the epoch of the offset (KIP-320)
 - v5: OFFSET_NOT_AVAILABLE, which older clients know as LEADER_NOT_AVAILABLE (KIP-207)
 - v7 v8 v9 v11: timestamps -3 to -6

There is no tiered storage: the earliest local offset is the log start offset, and there are no tiered offsets.
"""

from bisect import bisect_left
from collections import Counter

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.partition import Isolation, TimestampAndOffset
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgateway.records.batch import NO_TIMESTAMP
from kgateway.topic_lookup import as_kafka_error, check_leader_epoch, isolation, topic_named
from kgateway.wire.errors import ErrorCode, KafkaError

Asked = ListOffsetsRequest.Topic.Partition
Answer = ListOffsetsResponse.Topic.Partition

LATEST = -1
EARLIEST = -2
LARGEST_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_NOT_TIERED = -6

_SINCE = {LATEST: 0, EARLIEST: 0, LARGEST_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_NOT_TIERED: 11}
_ENDS = (LATEST, EARLIEST, EARLIEST_LOCAL)
_CONSUMER = -1


@api(
    ListOffsetsRequest,
    ListOffsetsResponse,
    versions="0-11",
    advertised="1-11",
    needs=Operation.DESCRIBE.on(Resource.TOPIC),
)
async def list_offsets(request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    search = Search(request, context)
    # All are started before the first is waited for.
    started = [(topic.name, search.in_topic(topic)) for topic in request.topics]
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.Topic(
                name=name, partitions=[await answer if isinstance(answer, Deferred) else answer for answer in answers]
            )
            for name, answers in started
        ]
    )


class Search:
    def __init__(self, request: ListOffsetsRequest, context: Context) -> None:
        self._context = context
        self._isolation = isolation(request.isolation_level)
        self._from_consumer = request.replica_id == _CONSUMER
        self._mentions = Counter(
            (topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions
        )

    def in_topic(self, asked: ListOffsetsRequest.Topic) -> list[Answer | Deferred[Answer]]:
        try:
            self._context.demand(Operation.DESCRIBE, Resource.TOPIC, asked.name)
            topic = topic_named(self._context, asked.name)
        except Exception as error:
            return [self._refused(error, asked.name, partition) for partition in asked.partitions]
        return [self._in_partition(topic, partition) for partition in asked.partitions]

    def _in_partition(self, topic: Topic, asked: Asked) -> Answer | Deferred[Answer]:
        try:
            self._check(topic, asked)
            partition = self._context.broker.partition(topic.id, asked.partition_index)
            check_leader_epoch(partition, asked.current_leader_epoch)
            found = self._find(partition, asked.timestamp)
        except Exception as error:
            return self._refused(error, topic.name, asked)
        if isinstance(found, Deferred):
            return found.addCallback(self._answer, partition, asked).addErrback(self._failed, topic.name, asked)
        return self._answer(found, partition, asked)

    def _check(self, topic: Topic, asked: Asked) -> None:
        if self._mentions[topic.name, asked.partition_index] > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the request names the partition more than once")
        version = self._context.version
        if asked.timestamp < 0 and version < _SINCE.get(asked.timestamp, version + 1):
            reason = f"ListOffsets v{version} has no meaning for the timestamp {asked.timestamp}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)

    def _find(
        self, partition: IPartition, timestamp: int
    ) -> TimestampAndOffset | Deferred[TimestampAndOffset | None] | None:
        if timestamp == LATEST:
            return TimestampAndOffset(self._end(partition), NO_TIMESTAMP, partition.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return TimestampAndOffset(partition.log_start, NO_TIMESTAMP, _first_epoch(partition))
        if timestamp in (LATEST_TIERED, EARLIEST_NOT_TIERED):
            return None
        return partition.find_max_time() if timestamp == LARGEST_TIMESTAMP else partition.find_time(timestamp)

    def _end(self, partition: IPartition) -> int:
        if not self._from_consumer:
            return partition.log_end
        return partition.last_stable if self._isolation is Isolation.READ_COMMITTED else partition.high_watermark

    def _answer(self, found: TimestampAndOffset | None, partition: IPartition, asked: Asked) -> Answer:
        end = self._end(partition)
        if found and asked.timestamp not in _ENDS and found.offset >= end:
            found = None
        answer = Answer(partition_index=asked.partition_index, error_code=ErrorCode.NONE)
        if self._context.version == 0:
            answer.old_style_offsets = _old_style(found, partition.log_start, end, asked)
        elif found:
            answer.offset, answer.timestamp, answer.leader_epoch = found
        return answer

    def _failed(self, failure: Failure, name: str, asked: Asked) -> Answer:
        return self._refused(failure.value, name, asked)

    def _refused(self, error: BaseException | None, name: str, asked: Asked) -> Answer:
        subject = f"{name}-{asked.partition_index}"
        refusal = as_kafka_error(error, subject)
        if refusal.code is ErrorCode.OFFSET_NOT_AVAILABLE and self._context.version < 5:
            refusal = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, refusal.message)
        return Answer(partition_index=asked.partition_index, error_code=self._context.refuse(refusal, subject))


def _first_epoch(partition: IPartition) -> int:
    """
    The epoch of the first record: the first epoch that ends after it. Of an empty log, the current epoch.
    """

    def ends_after(epoch: int) -> bool:
        end = partition.epoch_end(epoch)
        return end is not None and end.end_offset > partition.log_start

    return bisect_left(range(partition.leader_epoch), True, key=ends_after)


def _old_style(found: TimestampAndOffset | None, log_start: int, end: int, asked: Asked) -> list[int]:
    """
    Offsets before which all records are older, the latest first. Kafka had the starts of segments; the only one of
    those that never changes is the start of the log.
    """
    offsets = {found.offset if found else end, log_start}
    return sorted(offsets, reverse=True)[: max(0, asked.max_num_offsets)]
