"""
CreatePartitions: adds partitions to topics.

The requested count is the number of partitions afterwards. With validate_only nothing is changed.
"""

from collections import Counter

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.deadline import Deadline
from kgateway.cluster.topic_creation import TopicRules
from kgateway.cluster.view import NewTopic
from kgateway.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kgateway.topic_lookup import topic_named
from kgateway.wire.errors import ErrorCode, KafkaError


@api(CreatePartitionsRequest, CreatePartitionsResponse, versions="0-3", needs=Operation.ALTER.on(Resource.TOPIC))
async def create_partitions(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    counts = {topic.name: topic.count for topic in request.topics}
    TopicRules(context.broker.view(), context.settings).check_total_growth(counts)
    counted = Counter(topic.name for topic in request.topics)
    deadline = Deadline(context.clock, request.timeout_ms)
    results = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        result = CreatePartitionsResponse.Result(name=topic.name, error_code=ErrorCode.NONE)
        try:
            if counted[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic name: {topic.name}")
            await _grow(topic, request.validate_only, context, deadline)
        except KafkaError as error:
            result.error_code, result.error_message = context.refuse(error, topic.name), error.message
        results.append(result)
    return CreatePartitionsResponse(throttle_time_ms=0, results=results)


async def _grow(
    asked: CreatePartitionsRequest.Topic, validate_only: bool, context: Context, deadline: Deadline
) -> None:
    context.demand(Operation.ALTER, Resource.TOPIC, asked.name)
    topic = topic_named(context, asked.name)
    nodes = None if asked.assignments is None else [assignment.broker_ids for assignment in asked.assignments]
    TopicRules(context.broker.view(), context.settings).check_growth(topic, asked.count, nodes)
    context.broker.check_topic(NewTopic(topic.name, asked.count, topic.config, topic.internal))
    if not validate_only:
        await deadline.wait(context.broker.add_partitions(topic.id, asked.count))
