"""
Metadata: which brokers there are, and which of them leads each partition; a topic that is not there may come to be.

 - v0: an empty list of topics means all; replicas that are not reachable are left out, with REPLICA_NOT_AVAILABLE
 - v1: null means all
 - v4: the request says whether a topic may come to be by being asked for
 - v6: LISTENER_NOT_FOUND where it was LEADER_NOT_AVAILABLE
 - v8: authorized operations, those of the cluster only as far as v10
 - v12: topics may be asked for by topic_id
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.creation import Rules, check_addition
from kgateway.cluster.names import is_internal, no_such_topic
from kgateway.cluster.reach import Reach
from kgateway.cluster.view import NO_NODE, PartitionState, Topic
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.partitions import endpoints, topic_of_id
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO, Uuid

Asked = MetadataRequest.Topic
Told = MetadataResponse.Topic

# What making a topic ends with that may be there soon. Java asks again at once only where a leader is missing.
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
    needs=(
        Operation.DESCRIBE.on(Resource.TOPIC),
        Operation.CREATE.on(Resource.CLUSTER),
        Operation.CREATE.on(Resource.TOPIC),
        Operation.DESCRIBE.on(Resource.CLUSTER),
    ),
)
async def metadata(request: MetadataRequest, context: Context) -> MetadataResponse:
    asked = _asked_for(request, context.version)
    answer = _Answer(request, context)
    topics = answer.all() if asked is None else [await answer.one(topic) for topic in asked]
    return MetadataResponse(
        brokers=[
            MetadataResponse.Broker(node_id=node.id, host=address.host, port=address.port, rack=node.rack)
            for node, address in endpoints(context, answer.reach.nodes)
        ],
        cluster_id=answer.reach.view.cluster_id,
        controller_id=answer.reach.controller_id,
        topics=topics,
        cluster_authorized_operations=_cluster_operations(request, context),
        error_code=ErrorCode.NONE,
    )


def _asked_for(request: MetadataRequest, version: int) -> list[Asked] | None:
    """
    The topics asked for, each once; `None` for all there are.
    """
    if request.topics is None or (version == 0 and not request.topics):
        return None
    for topic in request.topics:
        if version < 12 and (topic.name is None or topic.topic_id != ZERO):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"v{version} asks for topics by name; by id, v12 and later do")
        if topic.name is None and topic.topic_id == ZERO:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic is asked for by neither name nor id")
    return list({(topic.name, topic.topic_id): topic for topic in request.topics}.values())


def _cluster_operations(request: MetadataRequest, context: Context) -> int:
    if not request.include_cluster_authorized_operations:
        return UNKNOWN_OPERATIONS
    return context.permitted(Resource.CLUSTER) if context.allowed(Operation.DESCRIBE, Resource.CLUSTER) else 0


class _Answer:
    """
    What one request is told of topics.
    """

    def __init__(self, request: MetadataRequest, context: Context) -> None:
        self._request = request
        self._context = context
        self._partitions_made = 0
        self.reach = Reach.of(context.broker.view(), context.broker.node_id, context.session.listener)

    def all(self) -> list[Told]:
        """
        Every topic that the client may see.
        """
        topics = self.reach.view.topics.values()
        seen = [topic for topic in topics if self._context.allowed(Operation.DESCRIBE, Resource.TOPIC, topic.name)]
        return [self._described(topic) for topic in seen]

    async def one(self, asked: Asked) -> Told:
        """
        What a topic is like, or why that is not told. Who may not see it does not learn whether it is there.
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
            return Told(
                error_code=self._context.refuse(error, asked.name),
                name=asked.name,
                is_internal=is_internal(asked.name),
                partitions=[],
                topic_authorized_operations=permitted,
            )

    def _by_id(self, topic_id: Uuid) -> Told:
        try:
            topic = topic_of_id(self._context, topic_id)
            self._context.demand(Operation.DESCRIBE, Resource.TOPIC, topic.name)
            return self._described(topic)
        except KafkaError as error:
            code = self._context.refuse(error, str(topic_id))
            return Told(error_code=code, name=None, topic_id=topic_id, partitions=[])

    async def _first_use(self, name: str) -> Topic:
        """
        The topic that comes to be, where the request, the settings and the authorizer all let it.
        """
        context = self._context
        if not (self._request.allow_auto_topic_creation and context.settings.auto_create_topics):
            raise no_such_topic(name)
        if not context.allowed(Operation.CREATE, Resource.CLUSTER):
            context.demand(Operation.CREATE, Resource.TOPIC, name)
        plan = Rules(context.broker.view(), context.settings).first_use(name)
        check_addition(self._partitions_made + plan.new.partition_count)
        try:
            topic = await context.broker.create_topic(plan.new)
        except KafkaError as error:
            made = context.broker.view().topics.get(name)  # by somebody who asked at the same time
            if error.code not in _COMING:
                raise
            if made is None:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"it is not there yet: {error.message}") from None
            return made
        self._partitions_made += plan.new.partition_count
        plan.warn()
        return topic

    def _described(self, topic: Topic) -> Told:
        return Told(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.internal,
            partitions=[self._partition(topic, index, state) for index, state in enumerate(topic.partitions)],
            topic_authorized_operations=self._operations(topic.name),
        )

    def _partition(self, topic: Topic, index: int, partition: PartitionState) -> Told.Partition:
        offline = self.reach.offline(partition)
        hidden = offline if self._context.version == 0 else []
        error = self._unreachable(partition, offline)
        return Told.Partition(
            error_code=self._context.refuse(error, f"{topic.name}-{index}") if error else ErrorCode.NONE,
            partition_index=index,
            leader_id=self.reach.leader(partition),
            leader_epoch=partition.leader_epoch,
            replica_nodes=[node for node in partition.replicas if node not in hidden],
            isr_nodes=[node for node in partition.in_sync if node not in hidden],
            offline_replicas=offline,
        )

    def _unreachable(self, partition: PartitionState, offline: list[int]) -> KafkaError | None:
        """
        What keeps the client from the partition, if anything does.
        """
        if self.reach.leader(partition) == NO_NODE:
            if self._context.version >= 6 and self.reach.view.node(partition.leader_id):
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
