"""
DescribeTopicPartitions: the partitions of topics in order of topic names, page by page (KIP-966).

A page begins at the cursor and has the requested number of partitions, within bounds. If there are more, the response
has the cursor of the next page.
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.names import is_internal, no_such_topic
from kgateway.cluster.view import ListenerView, PartitionState, Topic
from kgateway.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO

_PAGE_MAX = 2000  # partitions

Cursor = DescribeTopicPartitionsRequest.Cursor
NextCursor = DescribeTopicPartitionsResponse.NextCursor
Shown = DescribeTopicPartitionsResponse.Topic


@api(
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    versions="0",
    needs=Operation.DESCRIBE.on(Resource.TOPIC),
)
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor or Cursor(topic_name="", partition_index=0)
    seen, hidden = [], []
    for name in _names(request, cursor, context):
        if context.allowed(Operation.DESCRIBE, Resource.TOPIC, name):
            seen.append(name)
        elif request.topics:
            hidden.append(_hidden(name, context))
    page, next_cursor = _page(seen, cursor, request.response_partition_limit, context)
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=[*page, *hidden], next_cursor=next_cursor)


def _names(request: DescribeTopicPartitionsRequest, cursor: Cursor, context: Context) -> list[str]:
    asked = {topic.name for topic in request.topics}
    if asked and request.cursor and cursor.topic_name not in asked:
        wrong = f"the cursor is at topic {cursor.topic_name}, which was not requested"
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the cursor is at partition {cursor.partition_index}")
    return sorted(name for name in asked or context.broker.view().topics if name >= cursor.topic_name)


def _page(names: list[str], cursor: Cursor, limit: int, context: Context) -> tuple[list[Shown], NextCursor | None]:
    listener_view = ListenerView.of(context.broker.view(), context.broker.node_id, context.session.listener)
    room = max(1, min(limit, _PAGE_MAX))
    page: list[Shown] = []
    for name in names:
        if not room:
            return page, NextCursor(topic_name=name, partition_index=0)
        topic = listener_view.view.topics.get(name)
        if topic is None:
            page.append(_unknown(name, context))  # not counted
            continue
        start = cursor.partition_index if name == cursor.topic_name else 0
        end = min(start + room, len(topic.partitions))
        page.append(_described(topic, range(start, end), listener_view, context))
        if end < len(topic.partitions):
            return page, NextCursor(topic_name=name, partition_index=end)
        room -= len(page[-1].partitions)
    return page, None


def _unknown(name: str, context: Context) -> Shown:
    return Shown(
        error_code=context.refuse(no_such_topic(name), name),
        name=name,
        topic_id=ZERO,
        is_internal=is_internal(name),
        partitions=[],
        topic_authorized_operations=context.permitted(Resource.TOPIC, name),
    )


def _hidden(name: str, context: Context) -> Shown:
    """
    A topic that the client may not describe, whether it exists or not.
    """
    denied = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{context.session.principal} may not see topic {name}")
    return Shown(error_code=context.refuse(denied, name), name=name, topic_id=ZERO, partitions=[])


def _described(topic: Topic, indexes: range, listener_view: ListenerView, context: Context) -> Shown:
    return Shown(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[_partition(index, topic.partitions[index], listener_view) for index in indexes],
        topic_authorized_operations=context.permitted(Resource.TOPIC, topic.name),
    )


def _partition(index: int, partition: PartitionState, listener_view: ListenerView) -> Shown.Partition:
    return Shown.Partition(
        error_code=ErrorCode.NONE,
        partition_index=index,
        leader_id=listener_view.leader(partition),
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.in_sync),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=listener_view.offline(partition),
    )
