"""
The broker whose topics are those of a SeaweedMQ cluster.

The broker has no state of its own: topics and records are SeaweedMQ's, and what SeaweedMQ has no place for is in the
filer beside them (topics/catalog.py, partitions/side_files.py, topics/state_topics.py). Several gateways may share a
cluster. One of them leads; the others stand by, tell clients of the leader, and take over when it is gone. What this
gateway does depends on its role, which the election sets (election.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.base import STATE_PARTITIONS, BrokerBase, BrokerUnusable, NoPeers
from kgateway.broker.partition.producer_state import EXPIRY_MS
from kgateway.broker.partition.retention import CHECK_MS
from kgateway.broker.partition.spool import Spool
from kgateway.broker.seaweed.calls.addresses import ServerAddress
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.security.cluster_access import Security
from kgateway.broker.seaweedmq.election import Election
from kgateway.broker.seaweedmq.formats.registry import with_format
from kgateway.broker.seaweedmq.gateway_runtime import LEDGER_INTERVAL_MS, GatewayRuntime, ShownCluster
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.layout.topic_paths import NAMESPACE, check_count, check_name
from kgateway.broker.seaweedmq.leadership.gateways import Gateways
from kgateway.broker.seaweedmq.leadership.watchdog import Watchdog
from kgateway.broker.seaweedmq.partitions.registry import Partition
from kgateway.broker.state_log import StateLog
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.partition import DiskUsage
from kgateway.cluster.view import Address, ClusterView, NewTopic, Node, Topic
from kgateway.interfaces import IBroker, IPeers
from kgateway.security.permissions import Resource
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid


@implementer(IBroker)
class SeaweedMQBroker(BrokerBase):
    folder: str | None = None

    def __init__(
        self,
        masters: Sequence[ServerAddress],
        *,
        node_id: int,
        now_ms: Callable[[], int],
        reactor: Any,
        peers: IPeers | None = None,
        listeners: Set[str] = frozenset(),
        client: str = "kgateway",
        namespace: str = NAMESPACE,
        producer_expiry_ms: int = EXPIRY_MS,
        topic_defaults: Mapping[str, str] | None = None,
        offsets_partitions: int = STATE_PARTITIONS,
        filer_group: str = "",
        security: Security | None = None,
        retention_check_ms: int = CHECK_MS,
        recent_bytes: int = 0,
        ledger_interval_ms: int = LEDGER_INTERVAL_MS,
        watchdog_ms: int = 0,
    ) -> None:
        super().__init__(node_id, "", topic_defaults)
        self.peers = peers or NoPeers()
        self._masters = ",".join(map(str, masters))
        self._seaweed = SeaweedCluster(masters, reactor, filer_group=filer_group, security=security)
        gateway = GatewayRuntime(
            self._seaweed,
            namespace,
            client,
            now_ms,
            reactor,
            producer_expiry_ms,
            self._topic_defaults,
            Spool(recent_bytes),
            offsets_partitions,
            retention_check_ms,
            ledger_interval_ms,
        )
        self._gateways = Gateways(gateway, node_id, self._gateways_changed)
        shown = ShownCluster(
            lambda: self._view,
            self._show,
            self._show_topic,
            self._show_overrides,
            self.check_topic,
            self._new_topic,
            self._grown,
            self._configured,
            self._topic,
            self._led,
            self._topic_defaults,
        )
        watchdog = Watchdog(watchdog_ms, reactor)
        self._election = Election(gateway, self._gateways, self.peers, listeners, shown, watchdog)

    @property
    def description(self) -> str:
        count = len(self._view.topics)
        topics = f"{count} topic{'' if count == 1 else 's'}"
        return (
            f"{topics} of the SeaweedMQ cluster at {self._masters.replace(',', ', ')}{self._election.role.description}"
        )

    @property
    def log_dir(self) -> str:
        return f"seaweedmq:{self._masters}"

    def start(self) -> Deferred[None]:
        return self._election.start().addErrback(self._unusable)

    def stop(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._stop())

    def leave(self) -> None:
        self._election.leave()

    def announce(self, addresses: Mapping[str, Address]) -> None:
        self._gateways.announce(addresses)

    def view(self) -> ClusterView:
        return self._election.role.current(self._view)

    def coordinator(self, resource: Resource, key: str) -> StateLog | Node:
        if resource is Resource.TRANSACTIONAL_ID:
            # The one answer by which every client gives up at once; others it takes for something that passes.
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                f"{key} cannot begin: SeaweedMQ has no transactions; a gateway with its own log (log:FOLDER) has them",
            )
        return self._election.role.coordinator(key)

    def coordinators(self, resource: Resource) -> list[StateLog]:
        return [] if resource is Resource.TRANSACTIONAL_ID else self._election.role.coordinators()

    def measure(self, partitions: Iterable[PartitionId]) -> Deferred[DiskUsage]:
        return succeed(self._election.role.measure(partitions))

    def partition(self, topic_id: Uuid, index: int) -> Partition:
        topic = self._topic(topic_id)
        if not 0 <= index < len(topic.partitions):
            raise topic.no_partition(index)
        return self._election.role.partition(topic, index)

    def check_topic(self, new: NewTopic) -> None:
        if new.internal and new.name in self._view.topics:
            return  # it is a coordinator's, and no topic of SeaweedMQ's
        check_name(new.name)
        check_count(new.partition_count)
        with_format(new.config, self._topic_defaults)

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        return Deferred.fromCoroutine(self._election.role.create(new))

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        return Deferred.fromCoroutine(self._election.role.delete(topic_id))

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        return Deferred.fromCoroutine(self._election.role.grow(topic_id, partition_count))

    def new_producer_id(self) -> Deferred[int]:
        return Deferred.fromCoroutine(self._election.role.new_producer_id())

    async def _configure(self, name: str, change: Change) -> None:
        await self._election.role.configure(name, change)

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        return Deferred.fromCoroutine(self._election.role.change_config(resource, change))

    def _apply_config(self, topic: Topic) -> None:
        self._election.role.apply(topic)

    def _gateways_changed(self) -> None:
        self._election.role.show_again()

    async def _stop(self) -> None:
        await self._gateways.stop()
        has_served = await self._election.stop_trying()
        await self._topic_configs.stop()
        await self._election.role.flush()
        if has_served:
            await self._election.give_back()
        await self._seaweed.close()

    def _unusable(self, failure: Failure) -> Failure:
        if not failure.check(*CLUSTER_ERRORS):
            return failure
        reason = f"seaweedmq:{self._masters} cannot be used: {failure.getErrorMessage()}"
        if failure.check(RpcError):
            secured = "with the configured security (seaweed_security, seaweed_filer_group)"
            reason += f"; check that its masters, a filer and a broker are running, and can be reached {secured}"
        return Failure(BrokerUnusable(reason))
