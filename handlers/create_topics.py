"""
CreateTopics: creates topics, each on its own; the rules are in `kgateway.cluster.topic_creation`.

 - v4: -1 stands for the gateway's default number of partitions or replicas
 - v5: the response has partitions, replicas and, if the client may describe them, configs
 - v7: topic_id of the new topic
"""

from collections import Counter

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.config_description import ConfigSources, topic_configs
from kgateway.cluster.deadline import Deadline
from kgateway.cluster.topic_creation import Assignment, TopicRequest, TopicRules
from kgateway.cluster.view import NewTopic
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO, Uuid


@api(
    CreateTopicsRequest,
    CreateTopicsResponse,
    versions="2-7",
    needs=(
        Operation.CREATE.on(Resource.CLUSTER),
        Operation.CREATE.on(Resource.TOPIC),
        Operation.DESCRIBE_CONFIGS.on(Resource.TOPIC),
    ),
)
async def create_topics(request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse:
    requested = [_requested(topic) for topic in request.topics]
    TopicRules(context.broker.view(), context.settings).check_total(requested)
    counted = Counter(creatable.name for creatable in requested)
    deadline = Deadline(context.clock, request.timeout_ms)
    topics = []
    for creatable in {creatable.name: creatable for creatable in requested}.values():
        try:
            if counted[creatable.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic name: {creatable.name}")
            topics.append(await _create(creatable, request, context, deadline))
        except KafkaError as error:
            code = context.refuse(error, creatable.name)
            refused = CreateTopicsResponse.Topic(
                name=creatable.name, error_code=code, error_message=error.message, configs=[]
            )
            topics.append(refused)
    return CreateTopicsResponse(topics=topics)


def _requested(topic: CreateTopicsRequest.Topic) -> TopicRequest:
    return TopicRequest(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[Assignment(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        overrides={config.name: config.value for config in topic.configs},
    )


async def _create(
    creatable: TopicRequest, request: CreateTopicsRequest, context: Context, deadline: Deadline
) -> CreateTopicsResponse.Topic:
    if not context.allowed(Operation.CREATE, Resource.CLUSTER):
        context.demand(Operation.CREATE, Resource.TOPIC, creatable.name)
    plan = TopicRules(context.broker.view(), context.settings).plan(creatable)
    context.broker.check_topic(plan.new)
    if request.validate_only:
        return _made(plan.new, ZERO, plan.replication_factor, context)
    topic = await deadline.wait(context.broker.create_topic(plan.new))
    plan.warn()
    return _made(plan.new, topic.id, len(topic.partitions[0].replicas), context)


def _made(new: NewTopic, topic_id: Uuid, replication_factor: int, context: Context) -> CreateTopicsResponse.Topic:
    """
    The created topic. Its properties are included if the client may describe its configs.
    """
    created = CreateTopicsResponse.Topic(name=new.name, topic_id=topic_id, error_code=ErrorCode.NONE, configs=[])
    try:
        context.demand(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, new.name)
    except KafkaError as error:
        created.topic_config_error_code = context.refuse(error, new.name)
        return created
    created.num_partitions, created.replication_factor = new.partition_count, replication_factor
    created.configs = [
        CreateTopicsResponse.Topic.Config(
            name=described.name,
            value=described.value,
            read_only=described.read_only,
            config_source=described.source,
            is_sensitive=False,
        )
        for described in topic_configs(new.config, ConfigSources(context.settings, context.broker.view().overrides))
    ]
    return created
