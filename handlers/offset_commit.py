"""
OffsetCommit: commits offsets of a group.

 - v0: in Kafka these offsets were stored in ZooKeeper; here they are stored like all others
 - v1: commit_timestamp, and the generation and member that commits
 - v2-4: retention_time_ms, after which the offsets expire even if the group is active
 - v9: an unknown group is GROUP_ID_NOT_FOUND, before v9 it was ILLEGAL_GENERATION; member epochs (KIP-848)
 - v10: topics by id

All offsets of a request are one batch, which is in the log before the next request starts.
"""

from collections.abc import Iterator

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.offsets import check_metadata
from kgateway.groups.records import NEVER
from kgateway.groups.shard import GroupEntry
from kgateway.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.topic_lookup import as_kafka_error, topic_named, topic_of_id
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError

TopicAsked = OffsetCommitRequest.Topic
Asked = TopicAsked.Partition
TopicAnswer = OffsetCommitResponse.Topic
Answer = TopicAnswer.Partition
Requested = list[tuple[Topic, Asked, Answer]]  # what to commit, and its answer

_COMMIT_TIME = -1
_END_OF_TIME = (1 << 63) - 1
_NO_ERROR = ErrorCode.NONE  # a look-up in the enum costs as much as three calls


@api(
    OffsetCommitRequest,
    OffsetCommitResponse,
    versions="0-10",
    overlaps=True,
    needs=(Operation.READ.on(Resource.GROUP), Operation.READ.on(Resource.TOPIC)),
)
def offset_commit(
    request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    context.demand(Operation.READ, Resource.GROUP, request.group_id)
    wanted: Requested = []
    asked = [topic for topic in request.topics if topic.partitions]  # Kafka leaves the others out of the response
    response = OffsetCommitResponse(throttle_time_ms=0, topics=[_in_topic(topic, context, wanted) for topic in asked])
    if not wanted:
        return response
    try:
        committed = _commit(request, wanted, context)
    except Exception as error:
        _refuse(error, wanted, request, context)
        return response
    if committed is None:
        return response

    def failed(failure: Failure) -> None:
        _refuse(failure.value, wanted, request, context)

    return committed.addErrback(failed).addCallback(lambda _: response)


def _in_topic(asked: TopicAsked, context: Context, wanted: Requested) -> TopicAnswer:
    answers = [
        Answer(partition_index=partition.partition_index, error_code=_NO_ERROR) for partition in asked.partitions
    ]
    try:
        topic = _topic(asked, context)
    except KafkaError as error:
        for answer in answers:
            answer.error_code = context.refuse(error, f"{asked.name or asked.topic_id}-{answer.partition_index}")
    else:
        for partition, answer in zip(asked.partitions, answers, strict=True):
            if 0 <= answer.partition_index < len(topic.partitions):
                wanted.append((topic, partition, answer))
            else:
                unknown = topic.no_partition(answer.partition_index)
                answer.error_code = context.refuse(unknown, f"{topic.name}-{answer.partition_index}")
    return TopicAnswer(name=asked.name, topic_id=asked.topic_id, partitions=answers)


def _topic(asked: TopicAsked, context: Context) -> Topic:
    if context.version >= 10:
        topic = topic_of_id(context, asked.topic_id)
        context.demand(Operation.READ, Resource.TOPIC, topic.name)
        return topic
    context.demand(Operation.READ, Resource.TOPIC, asked.name)
    return topic_named(context, asked.name)


def _commit(request: OffsetCommitRequest, wanted: Requested, context: Context) -> Deferred[None] | None:
    entry = _committing(request, context)
    check = entry.group.check_commit(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        transactional=False,
        knows_epochs=context.version >= 9,
    )
    fitting = [commit for commit in wanted if _fits(*commit, context)]
    if check:
        for topic, asked, _ in fitting:
            check(topic.id, asked.partition_index)
    return entry.offsets.commit(_commits(request, fitting, context.now_ms))


def _fits(topic: Topic, asked: Asked, answer: Answer, context: Context) -> bool:
    try:
        check_metadata(asked.committed_metadata, context.settings.offset_metadata_max_bytes)
    except KafkaError as error:
        answer.error_code = context.refuse(error, f"{topic.name}-{asked.partition_index}")
        return False
    return True


def _committing(request: OffsetCommitRequest, context: Context) -> GroupEntry:
    """
    The group. A client without a generation is not a member, and may commit even if the group does not exist.
    """
    groups = context.service(GroupCoordinator)
    if request.generation_id_or_member_epoch < 0:
        return groups.entry_or_new(request.group_id)
    try:
        return groups.entry(request.group_id)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND and context.version < 9:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise


def _commits(
    request: OffsetCommitRequest, wanted: Requested, now_ms: int
) -> Iterator[tuple[TopicPartition, OffsetCommitValue]]:
    retention_ms = request.retention_time_ms
    expires = NEVER if retention_ms == NEVER else min(now_ms + retention_ms, _END_OF_TIME)
    for topic, asked, _ in wanted:
        requested_ms = asked.commit_timestamp
        yield (
            TopicPartition(topic.name, asked.partition_index),
            OffsetCommitValue(
                offset=asked.committed_offset,
                leader_epoch=asked.committed_leader_epoch,
                metadata=asked.committed_metadata or "",
                commit_timestamp=now_ms if requested_ms == _COMMIT_TIME else requested_ms,
                expire_timestamp=expires,
                topic_id=topic.id,
            ),
        )


def _refuse(error: BaseException | None, wanted: Requested, request: OffsetCommitRequest, context: Context) -> None:
    code = context.refuse(as_kafka_error(error, request.group_id), request.group_id)
    for _, _, answer in wanted:
        answer.error_code = code
