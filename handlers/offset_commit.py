"""
OffsetCommit: keeps how far a group has read.

 - v0: in Kafka these offsets went to ZooKeeper; here they are the group's as all others
 - v1: commit_timestamp, and who commits: generation and member
 - v2-4: retention_time_ms, after which the offsets expire whatever the group does
 - v9: a group that is not there is GROUP_ID_NOT_FOUND, before it was ILLEGAL_GENERATION; member epochs (KIP-848)
 - v10: topics by id

All offsets of a request are one batch, and in the log before the next request starts.
"""

from collections.abc import Iterator

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.groups.coding import NEVER
from kgateway.groups.groups import Groups
from kgateway.groups.offsets import Place, check_metadata
from kgateway.groups.shard import Held
from kgateway.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.partitions import foreseen, topic_named, topic_of_id
from kgateway.wire.errors import ErrorCode, KafkaError

TopicAsked = OffsetCommitRequest.Topic
Asked = TopicAsked.Partition
TopicAnswer = OffsetCommitResponse.Topic
Answer = TopicAnswer.Partition
Wanted = list[tuple[Topic, Asked, Answer]]  # to be committed, and where to say how it went

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
    wanted: Wanted = []
    asked = [topic for topic in request.topics if topic.partitions]  # of the others Kafka says nothing
    response = OffsetCommitResponse(throttle_time_ms=0, topics=[_in_topic(topic, context, wanted) for topic in asked])
    if not wanted:
        return response
    try:
        safe = _commit(request, wanted, context)
    except Exception as error:
        _refuse(error, wanted, request, context)
        return response
    if safe is None:
        return response

    def failed(failure: Failure) -> None:
        _refuse(failure.value, wanted, request, context)

    return safe.addErrback(failed).addCallback(lambda _: response)


def _in_topic(asked: TopicAsked, context: Context, wanted: Wanted) -> TopicAnswer:
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


def _commit(request: OffsetCommitRequest, wanted: Wanted, context: Context) -> Deferred[None] | None:
    held = _committing(request, context)
    check = held.group.check_commit(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        transactional=False,
        knows_epochs=context.version >= 9,
    )
    fitting = [one for one in wanted if _fits(*one, context)]
    if check:
        for topic, asked, _ in fitting:
            check(topic.id, asked.partition_index)
    return held.offsets.commit(_commits(request, fitting, context.now_ms))


def _fits(topic: Topic, asked: Asked, answer: Answer, context: Context) -> bool:
    """
    Whether what is to be kept with the offset may be so long.
    """
    try:
        check_metadata(asked.committed_metadata, context.settings.offset_metadata_max_bytes)
    except KafkaError as error:
        answer.error_code = context.refuse(error, f"{topic.name}-{asked.partition_index}")
        return False
    return True


def _committing(request: OffsetCommitRequest, context: Context) -> Held:
    """
    The group. Who names no generation is no member, and commits also where there is no group yet.
    """
    groups = context.service(Groups)
    if request.generation_id_or_member_epoch < 0:
        return groups.simple(request.group_id)
    try:
        return groups.get(request.group_id)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND and context.version < 9:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from None
        raise


def _commits(request: OffsetCommitRequest, wanted: Wanted, now_ms: int) -> Iterator[tuple[Place, OffsetCommitValue]]:
    retention_ms = request.retention_time_ms
    expires = NEVER if retention_ms == NEVER else min(now_ms + retention_ms, _END_OF_TIME)
    for topic, asked, _ in wanted:
        told = asked.commit_timestamp
        yield (
            Place(topic.name, asked.partition_index),
            OffsetCommitValue(
                offset=asked.committed_offset,
                leader_epoch=asked.committed_leader_epoch,
                metadata=asked.committed_metadata or "",
                commit_timestamp=now_ms if told == _COMMIT_TIME else told,
                expire_timestamp=expires,
                topic_id=topic.id,
            ),
        )


def _refuse(error: BaseException | None, wanted: Wanted, request: OffsetCommitRequest, context: Context) -> None:
    code = context.refuse(foreseen(error, request.group_id), request.group_id)
    for _, _, answer in wanted:
        answer.error_code = code
