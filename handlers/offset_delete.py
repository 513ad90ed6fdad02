"""
OffsetDelete: deletes offsets of a group, of topics that none of its members subscribes to (KIP-496).
"""

from twisted.internet.defer import Deferred

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.expiry import CONSUMERS
from kgateway.groups.group import Group
from kgateway.groups.shard import GroupEntry
from kgateway.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kgateway.topic_lookup import topic_named
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError

TopicAsked = OffsetDeleteRequest.Topic
TopicAnswer = OffsetDeleteResponse.Topic
Answer = TopicAnswer.Partition


@api(
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    versions="0",
    needs=(Operation.DELETE.on(Resource.GROUP), Operation.READ.on(Resource.TOPIC)),
)
def offset_delete(
    request: OffsetDeleteRequest, context: Context
) -> OffsetDeleteResponse | Deferred[OffsetDeleteResponse]:
    context.demand(Operation.DELETE, Resource.GROUP, request.group_id)
    entry = _held(request.group_id, context)
    wanted: list[TopicPartition] = []
    topics = [_in_topic(topic, entry.group, wanted, context) for topic in request.topics]
    response = OffsetDeleteResponse(error_code=ErrorCode.NONE, throttle_time_ms=0, topics=topics)
    committed = entry.offsets.forget(wanted)
    return committed.addCallback(lambda _: response) if committed else response


def _held(group_id: str, context: Context) -> GroupEntry:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    entry = context.service(GroupCoordinator).entry(group_id)
    group = entry.group
    if not group.is_empty and group.protocol_type != CONSUMERS:
        reason = f"the topics that members of group {group_id} read are not known: they use {group.protocol_type}"
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, reason)
    return entry


def _in_topic(asked: TopicAsked, group: Group, wanted: list[TopicPartition], context: Context) -> TopicAnswer:
    name = asked.name
    try:
        context.demand(Operation.READ, Resource.TOPIC, name)
        topic = topic_named(context, name)
        if group.reads(name):
            raise KafkaError(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, f"a member of group {group.group_id} reads {name}")
    except KafkaError as error:
        answers = [_refused(error, name, partition.partition_index, context) for partition in asked.partitions]
    else:
        answers = [_in_partition(topic, partition.partition_index, wanted, context) for partition in asked.partitions]
    return TopicAnswer(name=name, partitions=answers)


def _in_partition(topic: Topic, index: int, wanted: list[TopicPartition], context: Context) -> Answer:
    if not 0 <= index < len(topic.partitions):
        return _refused(topic.no_partition(index), topic.name, index, context)
    wanted.append(TopicPartition(topic.name, index))
    return Answer(partition_index=index, error_code=ErrorCode.NONE)


def _refused(error: KafkaError, name: str, index: int, context: Context) -> Answer:
    return Answer(partition_index=index, error_code=context.refuse(error, f"{name}-{index}"))
