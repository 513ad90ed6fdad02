"""
CreateTopics: makes topics, each for itself; the rules are in `kgateway.cluster.creation`.

 - v4: -1 stands for the gateway's default number of partitions or replicas
 - v5: what was made comes back: partitions, replicas and, for who may see them, configs
 - v7: topic_id of the new topic
"""

from collections import Counter

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.creation import Rules, Wish
from kgateway.cluster.deadline import Deadline
from kgateway.cluster.described import Known, topic_configs
from kgateway.cluster.placement import Assignment
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
    wishes = [_wish(topic) for topic in request.topics]
    Rules(context.broker.view(), context.settings).check_total(wishes)
    counted = Counter(wish.name for wish in wishes)
    deadline = Deadline(context.clock, request.timeout_ms)
    topics = []
    for wish in {wish.name: wish for wish in wishes}.values():
        try:
            if counted[wish.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic name: {wish.name}")
            topics.append(await _create(wish, request, context, deadline))
        except KafkaError as error:
            code = context.refuse(error, wish.name)
            refused = CreateTopicsResponse.Topic(
                name=wish.name, error_code=code, error_message=error.message, configs=[]
            )
            topics.append(refused)
    return CreateTopicsResponse(topics=topics)


def _wish(topic: CreateTopicsRequest.Topic) -> Wish:
    return Wish(
        name=topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[Assignment(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        overrides={config.name: config.value for config in topic.configs},
    )


async def _create(
    wish: Wish, request: CreateTopicsRequest, context: Context, deadline: Deadline
) -> CreateTopicsResponse.Topic:
    if not context.allowed(Operation.CREATE, Resource.CLUSTER):
        context.demand(Operation.CREATE, Resource.TOPIC, wish.name)
    plan = Rules(context.broker.view(), context.settings).plan(wish)
    context.broker.check_topic(plan.new)
    if request.validate_only:
        return _made(plan.new, ZERO, plan.replication_factor, context)
    topic = await deadline.wait(context.broker.create_topic(plan.new))
    plan.warn()
    return _made(plan.new, topic.id, len(topic.partitions[0].replicas), context)


def _made(new: NewTopic, topic_id: Uuid, replication_factor: int, context: Context) -> CreateTopicsResponse.Topic:
    """
    The topic as its maker is told of it; what it is like, only those are told who may describe its configs.
    """
    made = CreateTopicsResponse.Topic(name=new.name, topic_id=topic_id, error_code=ErrorCode.NONE, configs=[])
    try:
        context.demand(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, new.name)
    except KafkaError as error:
        made.topic_config_error_code = context.refuse(error, new.name)
        return made
    made.num_partitions, made.replication_factor = new.partition_count, replication_factor
    made.configs = [
        CreateTopicsResponse.Topic.Config(
            name=described.name,
            value=described.value,
            read_only=described.read_only,
            config_source=described.source,
            is_sensitive=False,
        )
        for described in topic_configs(new.config, Known(context.settings, context.broker.view().overrides))
    ]
    return made
