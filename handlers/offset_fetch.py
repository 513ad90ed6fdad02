"""
OffsetFetch: the committed offsets of groups.

 - v0: in Kafka these offsets were stored in ZooKeeper; here they are stored like all others
 - v2: null topics mean all that the group has offsets of; an error code for the whole group
 - v7: require_stable: UNSTABLE_OFFSET_COMMIT for offsets that an open transaction commits
 - v8: several groups at a time, each with its own error code
 - v9: member_id and member_epoch, by which a member of a consumer group is fenced (KIP-848)
 - v10: topics by id

Without a committed offset, or without the group, the offset is -1, which is not an error.
"""

from collections.abc import Iterable, Iterator

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.offsets import GroupOffsets
from kgateway.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kgateway.messages.stored.offset_commit import OffsetCommitValue
from kgateway.topic_lookup import as_kafka_error, topic_of_id
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO, Uuid

GroupAsked = OffsetFetchRequest.Group
TopicAsked = OffsetFetchRequest.Group.Topic
GroupAnswer = OffsetFetchResponse.Group
TopicAnswer = GroupAnswer.Topic
Answer = TopicAnswer.Partition

_NOTHING = OffsetCommitValue(offset=-1, metadata="", commit_timestamp=-1)


@api(
    OffsetFetchRequest,
    OffsetFetchResponse,
    versions="0-10",
    needs=(Operation.DESCRIBE.on(Resource.GROUP), Operation.DESCRIBE.on(Resource.TOPIC)),
)
def offset_fetch(request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    if context.version >= 8:
        groups = [_outcome(group, request.require_stable, context) for group in request.groups]
        return OffsetFetchResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, groups=groups)
    topics = None if request.topics is None else [_new_form(topic) for topic in request.topics]
    group = _in_group(GroupAsked(group_id=request.group_id, topics=topics), request.require_stable, context)
    return OffsetFetchResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, topics=[_old_form(topic) for topic in group.topics], groups=[]
    )


def _new_form(topic: OffsetFetchRequest.Topic) -> TopicAsked:
    return TopicAsked(name=topic.name, topic_id=ZERO, partition_indexes=topic.partition_indexes)


def _old_form(topic: TopicAnswer) -> OffsetFetchResponse.Topic:
    return OffsetFetchResponse.Topic(
        name=topic.name,
        partitions=[
            OffsetFetchResponse.Topic.Partition(
                partition_index=answer.partition_index,
                committed_offset=answer.committed_offset,
                committed_leader_epoch=answer.committed_leader_epoch,
                metadata=answer.metadata,
                error_code=answer.error_code,
            )
            for answer in topic.partitions
        ],
    )


def _outcome(asked: GroupAsked, require_stable: bool, context: Context) -> GroupAnswer:
    try:
        return _in_group(asked, require_stable, context)
    except Exception as error:
        code = context.refuse(as_kafka_error(error, asked.group_id), asked.group_id)
        return GroupAnswer(group_id=asked.group_id, topics=[], error_code=code)


def _in_group(asked: GroupAsked, require_stable: bool, context: Context) -> GroupAnswer:
    context.demand(Operation.DESCRIBE, Resource.GROUP, asked.group_id)
    offsets = _offsets(asked, context)
    topics = _all(offsets, context) if asked.topics is None else asked.topics
    answers = [_in_topic(topic, offsets, require_stable, context) for topic in topics]
    return GroupAnswer(group_id=asked.group_id, topics=answers, error_code=ErrorCode.NONE)


def _offsets(asked: GroupAsked, context: Context) -> GroupOffsets | None:
    try:
        entry = context.service(GroupCoordinator).entry(asked.group_id)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise
    entry.group.check_fetch(asked.member_id, asked.member_epoch)
    return entry.offsets


def _all(offsets: GroupOffsets | None, context: Context) -> Iterator[TopicAsked]:
    known = context.broker.view().topics
    for name, partitions in (offsets.by_topic if offsets else {}).items():
        topic_id = known[name].id if name in known else ZERO
        can_be_named = context.version < 10 or topic_id != ZERO
        if can_be_named and context.allowed(Operation.DESCRIBE, Resource.TOPIC, name):
            yield TopicAsked(name=name, topic_id=topic_id, partition_indexes=list(partitions))


def _in_topic(asked: TopicAsked, offsets: GroupOffsets | None, stable: bool, context: Context) -> TopicAnswer:
    indexes = asked.partition_indexes
    try:
        name, topic_id = _name_and_id(asked, context)
    except KafkaError as error:
        subject = asked.name or asked.topic_id
        answers = [_answer(index, _NOTHING, context.refuse(error, f"{subject}-{index}")) for index in indexes]
    else:
        answers = list(_committed(name, topic_id, indexes, offsets, stable, context))
    return TopicAnswer(name=asked.name, topic_id=asked.topic_id, partitions=answers)


def _name_and_id(asked: TopicAsked, context: Context) -> tuple[str, Uuid]:
    """
    Name and id of a topic. A topic given by name need not exist.
    """
    name = topic_of_id(context, asked.topic_id).name if context.version >= 10 else asked.name
    context.demand(Operation.DESCRIBE, Resource.TOPIC, name)
    topic = context.broker.view().topics.get(name)
    return name, topic.id if topic else ZERO


def _committed(
    name: str, topic_id: Uuid, indexes: Iterable[int], offsets: GroupOffsets | None, stable: bool, context: Context
) -> Iterator[Answer]:
    for index in indexes:
        if offsets is None:
            yield _answer(index, _NOTHING)
        elif stable and offsets.is_unstable(TopicPartition(name, index)):
            error = KafkaError(ErrorCode.UNSTABLE_OFFSET_COMMIT, "a transaction that has not ended commits there")
            yield _answer(index, _NOTHING, context.refuse(error, f"{name}-{index}"))
        else:
            yield _answer(index, offsets.at(name, index, topic_id) or _NOTHING)


def _answer(index: int, committed: OffsetCommitValue, code: ErrorCode = ErrorCode.NONE) -> Answer:
    return Answer(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )
