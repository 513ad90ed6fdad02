"""
A gateway that stands by while another one leads: it tells clients of the leader, as a Kafka broker tells of partitions
that it has no replica of, and forwards changes to the leader as requests of Kafka's protocol.
"""

from collections.abc import Callable, Coroutine, Iterable, Set
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime, ShownCluster
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS, NOT_CONTROLLER, NOT_LEADER, with_kafka_errors
from kgateway.broker.seaweedmq.leadership.gateways import Gateways
from kgateway.broker.seaweedmq.leadership.lease import Leadership
from kgateway.broker.seaweedmq.partitions.registry import Partition
from kgateway.broker.seaweedmq.standby.topic_mirror import TopicMirror
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic
from kgateway.broker.seaweedmq.topics.producer_id_chain import ProducerIdChain
from kgateway.broker.state_log import StateLog
from kgateway.broker.topic_changes import ChangeLock
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.partition import DiskUsage
from kgateway.cluster.view import NO_NODE, ClusterView, NewTopic, Node, PartitionState, Topic
from kgateway.interfaces import IPeers
from kgateway.log_messages import PORTS_STAY_CLOSED
from kgateway.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

_TIMEOUT_MS = 10_000
_ONE_COPY = 1


class Forwarding:
    """
    Forwards changes of topics to the leader. Each ends when the leader has done it, or raises the leader's KafkaError.
    """

    def __init__(self, peers: IPeers, leader: Callable[[], Node]) -> None:
        self._peers = peers
        self._leader = leader

    async def create(self, new: NewTopic) -> None:
        asked = CreateTopicsRequest.Topic(
            name=new.name,
            num_partitions=new.partition_count,
            replication_factor=_ONE_COPY,
            assignments=[],
            configs=[
                CreateTopicsRequest.Topic.Config(name=name, value=value) for name, value in new.config.overrides.items()
            ],
        )
        answer = await self._ask(CreateTopicsRequest(topics=[asked], timeout_ms=_TIMEOUT_MS))
        assert isinstance(answer, CreateTopicsResponse)
        _check(answer.topics[0].error_code, answer.topics[0].error_message)

    async def delete(self, topic: Topic) -> None:
        asked = DeleteTopicsRequest.Topic(name=None, topic_id=topic.id)
        answer = await self._ask(DeleteTopicsRequest(topics=[asked], timeout_ms=_TIMEOUT_MS))
        assert isinstance(answer, DeleteTopicsResponse)
        _check(answer.responses[0].error_code, answer.responses[0].error_message)

    async def grow(self, topic: Topic, partition_count: int) -> None:
        asked = CreatePartitionsRequest.Topic(name=topic.name, count=partition_count, assignments=None)
        answer = await self._ask(CreatePartitionsRequest(topics=[asked], timeout_ms=_TIMEOUT_MS, validate_only=False))
        assert isinstance(answer, CreatePartitionsResponse)
        _check(answer.results[0].error_code, answer.results[0].error_message)

    async def _ask(self, request: Message) -> Message:
        return await self._peers.ask(self._leader(), request, request.__spec__.versions[-1])


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(ErrorCode(code), message or "")


class Standby:
    _log = Logger()

    def __init__(
        self,
        gateway: GatewayRuntime,
        filer: Filer,
        leadership: Leadership,
        gateways: Gateways,
        peers: IPeers,
        shown: ShownCluster,
        listeners: Set[str],
        serve: Callable[[], None],
    ) -> None:
        self._leadership = leadership
        self._leader_node: Node | None = None  # the leader as clients reach it
        self._gateways = gateways
        self._shown = shown
        self._listeners = listeners  # of this gateway
        self._serve = serve  # called when there is something to serve
        self._has_looked_for_leader = False
        self._why_closed = ""
        self._ids = ProducerIdChain(gateway.shared_chain(filer, "producer-ids"), leadership.cluster_id)
        self._mirror = TopicMirror(gateway, filer, self.show_again)
        self._topics: dict[Uuid, tuple[StoredTopic, Topic]] = {}  # as they were shown last
        self._forwarding = Forwarding(peers, self._leader)
        # One change of a topic at a time: a request that comes back here because of a wrong address is refused.
        self._changes = ChangeLock()
        self._refreshing: Deferred[None] | None = None
        self._is_over = False

    @property
    def description(self) -> str:
        node_id = self._shown.view().controller_id
        return f", which node {node_id} leads; this gateway stands by"

    def follow(self, leadership: Leadership) -> None:
        """
        Stand by for this leader; called again and again, to read what could not be read yet.
        """
        if leadership != self._leadership:
            self._leader_node = None
            self._change_leader(leadership)
        if self._refreshing is None:
            refreshing = self._refreshing = Deferred.fromCoroutine(self._refresh())
            refreshing.addErrback(self._not_refreshed).addBoth(self._refreshed)

    def leader_gone(self) -> None:
        """
        Show that nobody leads: the leader is gone, and this gateway is not ready yet.
        """
        self._change_leader(self._leadership._replace(node_id=NO_NODE))

    def end(self) -> None:
        self._is_over = True
        self._mirror.stop()

    async def flush(self) -> None:
        pass  # nothing was produced here

    def current(self, view: ClusterView) -> ClusterView:
        return view

    def show_again(self) -> None:
        """
        Show the cluster again: gateways have come or gone, or the leader has changed a topic.
        """
        if self._is_over:
            return
        view = self._view(self._shown.view().epoch + 1)
        self._shown.show(view)
        if view.nodes:
            self._serve()

    def measure(self, partitions: Iterable[PartitionId]) -> DiskUsage:
        return DiskUsage({})

    def partition(self, topic: Topic, index: int) -> Partition:
        raise NOT_LEADER

    def coordinator(self, key: str) -> Node:
        return self._leader()

    def coordinators(self) -> list[StateLog]:
        return []

    def apply(self, topic: Topic) -> None:
        pass  # no partition is open

    async def new_producer_id(self) -> int:
        return await with_kafka_errors(self._ids.next())

    async def create(self, new: NewTopic) -> Topic:
        await with_kafka_errors(self._forward(new.name, self._forwarding.create(new)))
        return self._named(new.name)

    async def delete(self, topic_id: Uuid) -> None:
        topic = self._shown.topic(topic_id)
        await with_kafka_errors(self._forward(topic.name, self._forwarding.delete(topic)))

    async def grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        topic = self._shown.topic(topic_id)
        await with_kafka_errors(self._forward(topic.name, self._forwarding.grow(topic, partition_count)))
        return self._named(topic.name)

    async def configure(self, name: str, change: Change) -> None:
        raise NOT_CONTROLLER  # configs are forwarded before a broker is asked

    async def change_config(self, resource: ConfigResource, change: Change) -> None:
        raise NOT_CONTROLLER

    async def _forward(self, name: str, change: Coroutine[Any, Any, None]) -> None:
        try:
            with self._changes.hold(name):
                await change
        finally:
            change.close()
        await self._mirror.read(name)

    def _named(self, name: str) -> Topic:
        topics = self._shown.view().topics
        if name not in topics:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"topic {name} is not visible here yet; try again")
        return topics[name]

    def _leader(self) -> Node:
        if self._leader_node is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the address of the leader of the topics is not known")
        return self._leader_node

    def _view(self, epoch: int) -> ClusterView:
        """
        The cluster; without nodes as long as it cannot tell clients where the leader is.
        """
        self._leader_node = self._gateways.known(self._leadership.node_id) or self._leader_node  # it may leave soon
        may_open = self._mirror.was_ever_read and self._knows_leader()
        nodes = self._gateways.nodes(self._leader_node) if self._leader_node and may_open else ()
        if self._shown.defaults.follow(self._mirror.overrides):
            self._topics.clear()
        self._topics = {stored.file.id: self._as_shown(stored) for stored in self._mirror}
        leader, overrides = self._leadership, self._mirror.overrides
        view = ClusterView(leader.cluster_id, nodes, leader.node_id, overrides=overrides)
        return replace(view.with_only(topic for _, topic in self._topics.values()), epoch=epoch)

    def _knows_leader(self) -> bool:
        """
        Whether the view can tell clients of each listener where the leader is. If not, ports stay closed, so that
        clients try another gateway.
        """
        why = self._obstacle()
        if why and why != self._why_closed and (self._leader_node or self._has_looked_for_leader):
            self._log.warn(PORTS_STAY_CLOSED, why=why)
            self._why_closed = why
        return not why

    def _obstacle(self) -> str:
        """
        Why the view cannot tell clients where the leader is.
        """
        node_id = self._leadership.node_id
        if node_id == self._gateways.own.id:
            return f"the leader has the node id {node_id}, like this gateway; give each a --node-id of its own"
        if shared := self._gateways.shared_with(self._leader_node):
            return f"node {node_id} advertises {shared}, as this one does; correct --advertise"
        if missing := self._listeners - (self._leader_node.addresses.keys() if self._leader_node else set()):
            return f"node {node_id} advertises no address for its {', '.join(sorted(missing))}"
        return ""

    def _change_leader(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._has_looked_for_leader = False
        self._topics.clear()
        self.show_again()

    async def _refresh(self) -> None:
        if self._leader_node is None or self._obstacle():
            await self._gateways.refresh()
            self._has_looked_for_leader = True
            self.show_again()
        await self._mirror.refresh()

    def _not_refreshed(self, failure: Failure) -> None:
        failure.trap(*CLUSTER_ERRORS)
        self._log.info("cannot read the topics of the leader: {error}", error=failure.getErrorMessage())

    def _refreshed(self, outcome: object) -> object:
        self._refreshing = None
        return outcome

    def _as_shown(self, stored: StoredTopic) -> tuple[StoredTopic, Topic]:
        file = stored.file
        before = self._topics.get(file.id)
        if before and before[0] is stored:
            return before
        by = self._leadership.node_id
        led = (PartitionState(by, self._leadership.epoch, (by,), (by,)),) * file.partition_count
        return stored, Topic(
            file.id, stored.name, led, TopicConfig.of(file.configs, self._shown.defaults), file.internal
        )
