"""
OffsetForLeaderEpoch: the end of a leader epoch, so that a consumer sees whether the log has diverged from what it read.

 - v2: current_leader_epoch is checked (KIP-320); older versions were for Kafka's brokers alone
 - v3: replica_id

Brokers need permission for cluster actions; consumers need permission to describe the topic.
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kgateway.topic_lookup import as_kafka_error, check_leader_epoch, topic_named
from kgateway.wire.errors import ErrorCode

TopicAsked = OffsetForLeaderEpochRequest.Topic
Asked = OffsetForLeaderEpochRequest.Topic.Partition
TopicAnswer = OffsetForLeaderEpochResponse.Topic
Answer = OffsetForLeaderEpochResponse.Topic.Partition


@api(
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    versions="2-4",
    needs=(Operation.CLUSTER_ACTION.on(Resource.CLUSTER), Operation.DESCRIBE.on(Resource.TOPIC)),
)
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, context: Context) -> OffsetForLeaderEpochResponse:
    trusted = context.allowed(Operation.CLUSTER_ACTION, Resource.CLUSTER)
    return OffsetForLeaderEpochResponse(topics=[_in_topic(topic, trusted, context) for topic in request.topics])


def _in_topic(asked: TopicAsked, trusted: bool, context: Context) -> TopicAnswer:
    try:
        if not trusted:
            context.demand(Operation.DESCRIBE, Resource.TOPIC, asked.topic)
        topic = topic_named(context, asked.topic)
    except Exception as error:
        answers = [_refused(error, asked.topic, partition, context) for partition in asked.partitions]
    else:
        answers = [_in_partition(topic, partition, context) for partition in asked.partitions]
    return TopicAnswer(topic=asked.topic, partitions=answers)


def _in_partition(topic: Topic, asked: Asked, context: Context) -> Answer:
    try:
        partition = context.broker.partition(topic.id, asked.partition)
        check_leader_epoch(partition, asked.current_leader_epoch)
        end = partition.epoch_end(asked.leader_epoch)
    except Exception as error:
        return _refused(error, topic.name, asked, context)
    answer = Answer(error_code=ErrorCode.NONE, partition=asked.partition)
    if end:
        answer.leader_epoch, answer.end_offset = end
    return answer


def _refused(error: Exception, name: str, asked: Asked, context: Context) -> Answer:
    subject = f"{name}-{asked.partition}"
    return Answer(error_code=context.refuse(as_kafka_error(error, subject), subject), partition=asked.partition)
