"""
ConsumerGroupDescribe: the state and the members of groups whose members speak the consumer protocol (KIP-848).

 - v1: member_type (KIP-1099)
"""

from collections.abc import Iterator

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.consumer.group import ConsumerGroup, GroupDescription
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kgateway.topic_lookup import as_kafka_error
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    versions="0-1",
    needs=(Operation.DESCRIBE.on(Resource.GROUP), Operation.DESCRIBE.on(Resource.TOPIC)),
)
def consumer_group_describe(request: ConsumerGroupDescribeRequest, context: Context) -> ConsumerGroupDescribeResponse:
    with_operations = request.include_authorized_operations
    groups = [_describe(group_id, with_operations, context) for group_id in request.group_ids]
    return ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=groups)


def _describe(group_id: str, with_operations: bool, context: Context) -> GroupDescription:
    try:
        context.demand(Operation.DESCRIBE, Resource.GROUP, group_id)
        described = _group(group_id, context).describe()
        _demand_topics(described, context)
    except Exception as error:
        return _refused(as_kafka_error(error, group_id), group_id, context)
    if with_operations:
        described.authorized_operations = context.permitted(Resource.GROUP, group_id)
    return described


def _group(group_id: str, context: Context) -> ConsumerGroup:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    group = context.service(GroupCoordinator).find(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"the members of {group_id} do not speak the consumer protocol")


def _demand_topics(described: GroupDescription, context: Context) -> None:
    """
    Kafka shows a group only to clients that may describe all topics its members read.
    """
    for name in sorted(set(_topics(described))):
        context.demand(Operation.DESCRIBE, Resource.TOPIC, name)


def _topics(described: GroupDescription) -> Iterator[str]:
    for member in described.members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            yield from (part.topic_name for part in assignment.topic_partitions)


def _refused(error: KafkaError, group_id: str, context: Context) -> GroupDescription:
    return GroupDescription(
        error_code=context.refuse(error, group_id),
        error_message=error.message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )
