"""
DescribeLogDirs: the log directory of this gateway, the sizes of partitions, and the free space.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: a top-level error_code (KIP-784)
 - v4: total_bytes and usable_bytes (KIP-827)
 - v5: is_cordoned (KIP-1066)

There is one log directory. Partitions are never moved between directories, so there is no lag and no future log.
"""

from collections.abc import Iterator, Sequence

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.partition import DiskUsage
from kgateway.cluster.view import Topic
from kgateway.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import ErrorCode

TopicAnswer = DescribeLogDirsResponse.Result.Topic


@api(DescribeLogDirsRequest, DescribeLogDirsResponse, versions="1-5", needs=Operation.DESCRIBE.on(Resource.CLUSTER))
async def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    context.demand(Operation.DESCRIBE, Resource.CLUSTER)
    wanted = list(_wanted(request.topics, context))
    partitions = [PartitionId(topic.id, index) for topic, indexes in wanted for index in indexes]
    usage = await context.broker.measure(partitions)
    return DescribeLogDirsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        results=[
            DescribeLogDirsResponse.Result(
                error_code=ErrorCode.NONE,
                log_dir=context.broker.log_dir,
                topics=[found for topic, _ in wanted if (found := _found(topic, usage)).partitions],
                total_bytes=usage.total_bytes,
                usable_bytes=usage.usable_bytes,
            )
        ],
    )


def _wanted(
    asked: Sequence[DescribeLogDirsRequest.Topic] | None, context: Context
) -> Iterator[tuple[Topic, Sequence[int]]]:
    """
    The existing ones of the requested partitions; all partitions if no list is given.
    """
    topics = context.broker.view().topics
    if asked is None:
        yield from ((topic, range(len(topic.partitions))) for topic in topics.values())
    for named in asked or ():
        topic = topics.get(named.topic)
        if topic:
            yield topic, [index for index in named.partitions if 0 <= index < len(topic.partitions)]


def _found(topic: Topic, usage: DiskUsage) -> TopicAnswer:
    return TopicAnswer(
        name=topic.name,
        partitions=[
            TopicAnswer.Partition(
                partition_index=index,
                partition_size=usage.sizes[PartitionId(topic.id, index)],
                offset_lag=0,
                is_future_key=False,
            )
            for index in range(len(topic.partitions))
            if (topic.id, index) in usage.sizes
        ],
    )
