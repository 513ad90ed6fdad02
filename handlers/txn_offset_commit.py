"""
TxnOffsetCommit: commits offsets of a group as part of a producer's transaction.

 - v2: committed_leader_epoch (KIP-320)
 - v3: the generation and member that commits (KIP-447)
 - v4: TRANSACTION_ABORTABLE (KIP-890)
 - v5: the group becomes part of the transaction without AddOffsetsToTxn

All offsets of a request are one batch.
"""

from collections.abc import Iterator

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.group import NO_GENERATION
from kgateway.groups.offsets import check_metadata
from kgateway.groups.shard import GroupEntry
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kgateway.topic_lookup import as_kafka_error, topic_named
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.enrolment import Dialect, enrol
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError

TopicAsked = TxnOffsetCommitRequest.Topic
Asked = TopicAsked.Partition
TopicAnswer = TxnOffsetCommitResponse.Topic
Answer = TopicAnswer.Partition
Requested = list[tuple[Topic, Asked, Answer]]  # what to commit, and its answer

_ABORTABLE_SINCE = 4
_ADDS_SINCE = 5


@api(
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    versions="0-5",
    needs=(
        Operation.WRITE.on(Resource.TRANSACTIONAL_ID),
        Operation.READ.on(Resource.GROUP),
        Operation.READ.on(Resource.TOPIC),
    ),
)
async def txn_offset_commit(request: TxnOffsetCommitRequest, context: Context) -> TxnOffsetCommitResponse:
    context.demand(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
    context.demand(Operation.READ, Resource.GROUP, request.group_id)
    wanted: Requested = []
    response = TxnOffsetCommitResponse(
        throttle_time_ms=0, topics=[_in_topic(topic, context, wanted) for topic in request.topics]
    )
    if wanted:
        try:
            await _commit(request, wanted, context)
        except Exception as error:
            code = context.refuse(as_kafka_error(error, request.group_id), request.group_id)
            for _, _, answer in wanted:
                answer.error_code = code
    return response


def _in_topic(asked: TopicAsked, context: Context, wanted: Requested) -> TopicAnswer:
    answers = []
    for partition in asked.partitions:
        answer = Answer(partition_index=partition.partition_index, error_code=ErrorCode.NONE)
        try:
            wanted.append((_topic(asked.name, partition, context), partition, answer))
        except KafkaError as error:
            answer.error_code = context.refuse(error, f"{asked.name}-{partition.partition_index}")
        answers.append(answer)
    return TopicAnswer(name=asked.name, partitions=answers)


def _topic(name: str, asked: Asked, context: Context) -> Topic:
    """
    The topic of the partition; a KafkaError if the offset cannot be committed.
    """
    context.demand(Operation.READ, Resource.TOPIC, name)
    topic = topic_named(context, name)
    if asked.partition_index not in range(len(topic.partitions)):
        raise topic.no_partition(asked.partition_index)
    check_metadata(asked.committed_metadata, context.settings.offset_metadata_max_bytes)
    return topic


async def _commit(request: TxnOffsetCommitRequest, wanted: Requested, context: Context) -> None:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    _check_member(request, wanted, context)
    await _join(request, context)
    entry = _check_member(request, wanted, context)  # it may have been replaced meanwhile
    producer = request.producer_id, request.producer_epoch
    committed = context.service(GroupCoordinator).commit_in_transaction(
        entry, producer, _commits(wanted, context.now_ms)
    )
    if committed is not None:
        await committed


def _check_member(request: TxnOffsetCommitRequest, wanted: Requested, context: Context) -> GroupEntry:
    """
    The group. A client without a generation is not a member, and may commit even if the group does not exist.
    """
    groups = context.service(GroupCoordinator)
    if request.generation_id == NO_GENERATION:
        entry = groups.entry_or_new(request.group_id)
    else:
        entry = _known(request.group_id, groups)
    try:
        _check_of(entry, request, wanted)
    except KafkaError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:  # unknown to producers
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise
    return entry


def _check_of(entry: GroupEntry, request: TxnOffsetCommitRequest, wanted: Requested) -> None:
    check = entry.group.check_commit(
        request.member_id, request.group_instance_id, request.generation_id, transactional=True
    )
    if check:
        for topic, asked, _ in wanted:
            check(topic.id, asked.partition_index)


def _known(group_id: str, groups: GroupCoordinator) -> GroupEntry:
    try:
        return groups.entry(group_id)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise


async def _join(request: TxnOffsetCommitRequest, context: Context) -> None:
    """
    Have the coordinator of the transaction confirm that the group is part of it.
    """
    version, producer = context.version, ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    later = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    dialect = Dialect(version >= _ADDS_SINCE, version >= _ABORTABLE_SINCE, later)
    transactions = context.service(TransactionCoordinator)
    partition = transactions.partition_of_group(request.group_id)
    await enrol(transactions, request.transactional_id, producer, {partition}, dialect)


def _commits(wanted: Requested, now_ms: int) -> Iterator[tuple[TopicPartition, OffsetCommitValue]]:
    for topic, asked, _ in wanted:
        yield (
            TopicPartition(topic.name, asked.partition_index),
            OffsetCommitValue(
                offset=asked.committed_offset,
                leader_epoch=asked.committed_leader_epoch,
                metadata=asked.committed_metadata or "",
                commit_timestamp=now_ms,
                topic_id=topic.id,
            ),
        )
