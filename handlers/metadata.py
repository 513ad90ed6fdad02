"""
Metadata: the brokers, and the leader of each partition; a topic that does not exist may be created.

 - v0: an empty list of topics means all; unreachable replicas are left out, with REPLICA_NOT_AVAILABLE
 - v1: null means all
 - v4: the request says whether topics may be created
 - v6: LISTENER_NOT_FOUND in place of LEADER_NOT_AVAILABLE
 - v8: authorized operations, those of the cluster only up to v10
 - v12: topics by topic_id
"""

from typing import cast

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.names import is_internal, no_such_topic
from kgateway.cluster.topic_creation import TopicRequest, TopicRules, check_addition, first_use
from kgateway.cluster.view import NO_NODE, ListenerView, PartitionState, Topic
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.topic_lookup import endpoints, topic_of_id
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO, Uuid

Asked = MetadataRequest.Topic
TopicAnswer = MetadataResponse.Topic

_CREATION_MS = 30_000  # how long the client waits for a topic

# Errors after which the topic may exist soon. The Java client retries at once only on LEADER_NOT_AVAILABLE.
_COMING = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.BROKER_NOT_AVAILABLE,
)


@api(
    MetadataRequest,
    MetadataResponse,
    versions="0-13",
    needs=(Operation.DESCRIBE.on(Resource.TOPIC), Operation.DESCRIBE.on(Resource.CLUSTER)),
)
async def metadata(request: MetadataRequest, context: Context) -> MetadataResponse:
    asked = _asked_for(request, context.version)
    answers = _TopicAnswers(request, context)
    topics = answers.all() if asked is None else [await answers.one(topic) for topic in asked]
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(node_id=node.id, host=address.host, port=address.port, rack=node.rack)
            for node, address in endpoints(context, answers.listener_view.nodes)
        ],
        cluster_id=answers.listener_view.view.cluster_id,
        controller_id=answers.listener_view.controller_id,
        topics=topics,
        cluster_authorized_operations=_cluster_operations(request, context),
        error_code=ErrorCode.NONE,
    )


def _asked_for(request: MetadataRequest, version: int) -> list[Asked] | None:
    if request.topics is None or (version == 0 and not request.topics):
        return None
    for topic in request.topics:
        if version < 12 and (topic.name is None or topic.topic_id != ZERO):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"v{version} requests topics by name; only v12 and later do so by id"
            )
        if topic.name is None and topic.topic_id == ZERO:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic is requested by neither name nor id")
    return list({(topic.name, topic.topic_id): topic for topic in request.topics}.values())


def _cluster_operations(request: MetadataRequest, context: Context) -> int:
    if not request.include_cluster_authorized_operations:
        return UNKNOWN_OPERATIONS
    return context.permitted(Resource.CLUSTER) if context.allowed(Operation.DESCRIBE, Resource.CLUSTER) else 0


class _TopicAnswers:
    def __init__(self, request: MetadataRequest, context: Context) -> None:
        self._request = request
        self._context = context
        self._partitions_made = 0
        self.listener_view = ListenerView.of(context.broker.view(), context.broker.node_id, context.session.listener)

    def all(self) -> list[TopicAnswer]:
        topics = self.listener_view.view.topics.values()
        seen = [topic for topic in topics if self._context.allowed(Operation.DESCRIBE, Resource.TOPIC, topic.name)]
        return [self._described(topic) for topic in seen]

    async def one(self, asked: Asked) -> TopicAnswer:
        """
        The topic, or an error. A client that may not describe it does not learn whether it exists.
        """
        if asked.topic_id != ZERO or asked.name is None:
            return self._by_id(asked.topic_id)
        permitted = UNKNOWN_OPERATIONS
        try:
            self._context.demand(Operation.DESCRIBE, Resource.TOPIC, asked.name)
            permitted = self._operations(asked.name)
            topic = self._context.broker.view().topics.get(asked.name) or await self._first_use(asked.name)
            return self._described(topic)
        except KafkaError as error:
            return TopicAnswer(
                error_code=self._context.refuse(error, asked.name),
                name=asked.name,
                is_internal=is_internal(asked.name),
                partitions=[],
                topic_authorized_operations=permitted,
            )

    def _by_id(self, topic_id: Uuid) -> TopicAnswer:
        try:
            topic = topic_of_id(self._context, topic_id)
            self._context.demand(Operation.DESCRIBE, Resource.TOPIC, topic.name)
            return self._described(topic)
        except KafkaError as error:
            code = self._context.refuse(error, str(topic_id))
            return TopicAnswer(error_code=code, name=None, topic_id=topic_id, partitions=[])

    async def _first_use(self, name: str) -> Topic:
        """
        Create the topic, if the request and the settings allow it, as if the client had asked for that: so the filters
        around CreateTopics have their say.
        """
        context = self._context
        if not (self._request.allow_auto_topic_creation and context.settings.auto_create_topics):
            raise no_such_topic(name)
        wish = first_use(name)
        check_addition(
            self._partitions_made + TopicRules(context.broker.view(), context.settings).partition_count(wish)
        )
        reason = "it does not exist yet"
        try:
            await _create(wish, context)
        except KafkaError as error:
            if error.code not in _COMING:
                raise
            reason = f"{reason}: {error.message}"
        topic = context.broker.view().topics.get(name)  # perhaps created by another client meanwhile
        if topic is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, reason)
        self._partitions_made += len(topic.partitions)
        return topic

    def _described(self, topic: Topic) -> TopicAnswer:
        return TopicAnswer(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.internal,
            partitions=[self._partition(topic, index, state) for index, state in enumerate(topic.partitions)],
            topic_authorized_operations=self._operations(topic.name),
        )

    def _partition(self, topic: Topic, index: int, partition: PartitionState) -> TopicAnswer.Partition:
        offline = self.listener_view.offline(partition)
        hidden = offline if self._context.version == 0 else []
        error = self._unreachable(partition, offline)
        return TopicAnswer.Partition(
            error_code=self._context.refuse(error, f"{topic.name}-{index}") if error else ErrorCode.NONE,
            partition_index=index,
            leader_id=self.listener_view.leader(partition),
            leader_epoch=partition.leader_epoch,
            replica_nodes=[node for node in partition.replicas if node not in hidden],
            isr_nodes=[node for node in partition.in_sync if node not in hidden],
            offline_replicas=offline,
        )

    def _unreachable(self, partition: PartitionState, offline: list[int]) -> KafkaError | None:
        """
        Why the client cannot use the partition, or `None` if it can.
        """
        if self.listener_view.leader(partition) == NO_NODE:
            if self._context.version >= 6 and self.listener_view.view.node(partition.leader_id):
                reason = f"its leader {partition.leader_id} has no address on the client's listener"
                return KafkaError(ErrorCode.LISTENER_NOT_FOUND, reason)
            return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"its leader {partition.leader_id} cannot be reached")
        if self._context.version == 0 and offline:
            away = ", ".join(map(str, offline))
            return KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"its replicas {away} cannot be reached")
        return None

    def _operations(self, name: str) -> int:
        wanted = self._request.include_topic_authorized_operations
        return self._context.permitted(Resource.TOPIC, name) if wanted else UNKNOWN_OPERATIONS


async def _create(wish: TopicRequest, context: Context) -> None:
    topic = CreateTopicsRequest.Topic(
        name=wish.name,
        num_partitions=wish.partition_count,
        replication_factor=wish.replication_factor,
        assignments=[],
        configs=[CreateTopicsRequest.Topic.Config(name=name, value=value) for name, value in wish.overrides.items()],
    )
    try:
        response = await context.ask(CreateTopicsRequest(topics=[topic], timeout_ms=_CREATION_MS))
        for answer in cast(CreateTopicsResponse, response).topics:
            if answer.error_code != ErrorCode.NONE:
                raise KafkaError(ErrorCode(answer.error_code), answer.error_message)
    except KafkaError as error:
        if error.code is ErrorCode.POLICY_VIOLATION:  # which clients do not expect here, and would retry
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, error.message) from None
        raise
