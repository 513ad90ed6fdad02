"""
TxnOffsetCommit: keeps offsets of a group, which count when the producer's transaction is committed.

 - v2: committed_leader_epoch (KIP-320)
 - v3: who commits: generation and member (KIP-447)
 - v4: TRANSACTION_ABORTABLE (KIP-890)
 - v5: the group becomes part of the transaction without AddOffsetsToTxn

All offsets of a request are one batch.
"""

from collections.abc import Iterator

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.groups.group import NO_GENERATION
from kgateway.groups.groups import Groups
from kgateway.groups.offsets import Place, check_metadata
from kgateway.groups.shard import Held
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kgateway.partitions import foreseen, topic_named
from kgateway.transactions.joining import Dialect, join
from kgateway.transactions.state import Identity
from kgateway.transactions.transactions import Transactions
from kgateway.wire.errors import ErrorCode, KafkaError

TopicAsked = TxnOffsetCommitRequest.Topic
Asked = TopicAsked.Partition
TopicAnswer = TxnOffsetCommitResponse.Topic
Answer = TopicAnswer.Partition
Wanted = list[tuple[Topic, Asked, Answer]]  # to be committed, and where to say how it went

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
    wanted: Wanted = []
    response = TxnOffsetCommitResponse(
        throttle_time_ms=0, topics=[_in_topic(topic, context, wanted) for topic in request.topics]
    )
    if wanted:
        try:
            await _commit(request, wanted, context)
        except Exception as error:
            code = context.refuse(foreseen(error, request.group_id), request.group_id)
            for _, _, answer in wanted:
                answer.error_code = code
    return response


def _in_topic(asked: TopicAsked, context: Context, wanted: Wanted) -> TopicAnswer:
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
    The topic whose partition it is; a KafkaError where no such offset can be committed.
    """
    context.demand(Operation.READ, Resource.TOPIC, name)
    topic = topic_named(context, name)
    if asked.partition_index not in range(len(topic.partitions)):
        raise topic.no_partition(asked.partition_index)
    check_metadata(asked.committed_metadata, context.settings.offset_metadata_max_bytes)
    return topic


async def _commit(request: TxnOffsetCommitRequest, wanted: Wanted, context: Context) -> None:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    _check_member(request, wanted, context)
    await _join(request, context)
    held = _check_member(request, wanted, context)  # who may have been replaced meanwhile
    producer = request.producer_id, request.producer_epoch
    safe = context.service(Groups).commit_in_transaction(held, producer, _commits(wanted, context.now_ms))
    if safe is not None:
        await safe


def _check_member(request: TxnOffsetCommitRequest, wanted: Wanted, context: Context) -> Held:
    """
    The group. Who names no generation is no member, and commits also where there is no group yet.
    """
    groups = context.service(Groups)
    if request.generation_id == NO_GENERATION:
        held = groups.simple(request.group_id)
    else:
        held = _known(request.group_id, groups)
    try:
        _check_of(held, request, wanted)
    except KafkaError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:  # of which producers do not know
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise
    return held


def _check_of(held: Held, request: TxnOffsetCommitRequest, wanted: Wanted) -> None:
    check = held.group.check_commit(
        request.member_id, request.group_instance_id, request.generation_id, transactional=True
    )
    if check:
        for topic, asked, _ in wanted:
            check(topic.id, asked.partition_index)


def _known(group_id: str, groups: Groups) -> Held:
    try:
        return groups.get(group_id)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise


async def _join(request: TxnOffsetCommitRequest, context: Context) -> None:
    """
    Have the coordinator of the transaction say that the group is part of it.
    """
    version, who = context.version, Identity(request.producer_id, request.producer_epoch)
    later = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    dialect = Dialect(version >= _ADDS_SINCE, version >= _ABORTABLE_SINCE, later)
    transactions = context.service(Transactions)
    place = transactions.place_of_group(request.group_id)
    await join(transactions, request.transactional_id, who, {place}, dialect)


def _commits(wanted: Wanted, now_ms: int) -> Iterator[tuple[Place, OffsetCommitValue]]:
    for topic, asked, _ in wanted:
        yield (
            Place(topic.name, asked.partition_index),
            OffsetCommitValue(
                offset=asked.committed_offset,
                leader_epoch=asked.committed_leader_epoch,
                metadata=asked.committed_metadata or "",
                commit_timestamp=now_ms,
                topic_id=topic.id,
            ),
        )
