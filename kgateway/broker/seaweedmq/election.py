"""
The election: which gateway leads, and what role this one has. It stands by while another one leads, leads from when it
has won the lease, and competes for the lease again when it has lost it.

This is the only module that changes the role; the broker calls the current role. All roles have the methods of
`Undecided`.
"""

from collections.abc import Callable, Iterable, Set
from dataclasses import replace

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.deferreds import when_over
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.lock import FilerLock
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime, ShownCluster
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS, NOT_CONTROLLER, NOT_LEADER
from kgateway.broker.seaweedmq.leader.leader import Leader
from kgateway.broker.seaweedmq.leadership.deciding_filer import DecidingFiler
from kgateway.broker.seaweedmq.leadership.gateways import Gateways
from kgateway.broker.seaweedmq.leadership.lease import LOCK_S, LeaderLease, Leadership
from kgateway.broker.seaweedmq.leadership.watchdog import Watchdog
from kgateway.broker.seaweedmq.partitions.registry import Partition
from kgateway.broker.seaweedmq.standby.standby import Standby
from kgateway.broker.state_log import StateLog
from kgateway.broker.topic_changes import ChangeLock
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.partition import DiskUsage
from kgateway.cluster.view import ClusterView, NewTopic, Topic
from kgateway.coordination.placement import STATE_TOPICS
from kgateway.interfaces import IPeers
from kgateway.log_messages import CANNOT_LEAD_AGAIN, CANNOT_LEAD_YET, LEASE_LOST_EARLY
from kgateway.security.permissions import Resource
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_AGAIN_S = 1.0
_NOT_YET = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the gateway does not know the leader yet")


class Undecided:
    """
    The role of a gateway that neither leads nor stands by yet, also while it loads: it refuses, and clients retry.
    """

    description = ""

    def __init__(self, view: Callable[[], ClusterView]) -> None:
        self._view = view

    def current(self, view: ClusterView) -> ClusterView:
        return view

    def show_again(self) -> None:
        pass  # nothing is shown yet

    def measure(self, partitions: Iterable[PartitionId]) -> DiskUsage:
        return DiskUsage({})

    def partition(self, topic: Topic, index: int) -> Partition:
        raise NOT_LEADER

    def coordinator(self, key: str) -> StateLog:
        raise NOT_LEADER

    def coordinators(self) -> list[StateLog]:
        if STATE_TOPICS[Resource.GROUP] in self._view().topics:
            raise NOT_LEADER
        return []

    async def new_producer_id(self) -> int:
        raise _NOT_YET

    async def create(self, new: NewTopic) -> Topic:
        raise NOT_CONTROLLER

    async def delete(self, topic_id: Uuid) -> None:
        raise NOT_CONTROLLER

    async def grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        raise NOT_CONTROLLER

    async def configure(self, name: str, change: Change) -> None:
        raise NOT_CONTROLLER

    async def change_config(self, resource: ConfigResource, change: Change) -> None:
        raise NOT_CONTROLLER

    def apply(self, topic: Topic) -> None:
        pass  # no partition is open

    async def flush(self) -> None:
        pass


class Election:
    """
    This gateway's part in the election, from its start to its stop.
    """

    _log = Logger()
    _filer: Filer  # which decides all chains

    def __init__(
        self,
        gateway: GatewayRuntime,
        gateways: Gateways,
        peers: IPeers,
        listeners: Set[str],
        shown: ShownCluster,
        watchdog: Watchdog,
    ) -> None:
        self.role: Leader | Standby | Undecided = Undecided(shown.view)
        self._gateway = gateway
        self._gateways = gateways
        self._peers = peers
        self._listeners = listeners
        self._shown = shown
        self._watchdog = watchdog
        self._deciding_filer = DecidingFiler(gateway)
        self._changes = ChangeLock()
        self._leader: Leader | None = None  # since it began to load
        self._standby: Standby | None = None
        self._lease: LeaderLease | None = None
        self._started: Deferred[None] = Deferred()
        self._attempt: Deferred[None] | None = None  # the last one to lead
        self._beginning: Deferred[None] | None = None  # while the lease is ours, and the leader is not serving yet
        self._lost_while_beginning = False
        self._has_started = False

    def start(self) -> Deferred[None]:
        """
        Fires when this gateway leads and serves, or stands by and has something to serve.
        """
        self._watchdog.prepare()
        self._attempt = Deferred.fromCoroutine(self._start())
        self._attempt.addCallback(lambda _: self._report_started()).addErrback(self._failed)
        return self._started

    def leave(self) -> None:
        """
        Do not take the lease any more; a leader continues.
        """
        if self._lease:
            self._lease.leave()

    async def stop_trying(self) -> bool:
        """
        End the attempt that is under way. Returns whether this gateway has served at all.
        """
        self._deciding_filer.stop()
        has_served, self._has_started = self._has_started, False
        if self._attempt and not self._attempt.called:
            over = when_over(self._attempt)
            self._attempt.cancel()
            await over
        return has_served

    async def give_back(self) -> None:
        """
        Let another gateway lead at once.
        """
        self._end_role()
        if self._lease:
            await self._lease.give_back()

    async def _start(self) -> None:
        gateway = self._gateway
        self._filer = await self._deciding_filer.use()
        self._deciding_filer.watch()
        lock = FilerLock(self._filer, f"{gateway.folder}/leader", gateway.client, LOCK_S, gateway.reactor)
        owners = gateway.shared_chain(self._filer, "owners")
        node_id = self._gateways.own.id
        lease = LeaderLease(lock, owners, gateway.client, node_id, gateway.reactor, self._stand_by, self._lose)
        self._lease = lease
        try:
            await self._lead(lease)
        except BaseException as error:
            if self._has_started and isinstance(error, (*CLUSTER_ERRORS, KafkaError)):
                await self._lead_again(lease, error)
                return
            await self.give_back()
            raise

    async def _lead(self, lease: LeaderLease) -> None:
        while not await self._try_to_lead(lease):
            self._log.warn(LEASE_LOST_EARLY)

    async def _try_to_lead(self, lease: LeaderLease) -> bool:
        """
        Take the lease, and begin to lead. Returns whether the lease was ours until all of that was done.
        """
        leadership = await lease.take()
        self._lost_while_beginning = False
        beginning = self._beginning = Deferred.fromCoroutine(self._begin(lease, leadership))
        try:
            await beginning
        except CancelledError:
            if not self._lost_while_beginning:
                raise
            return False
        finally:
            self._beginning = None
        return True

    async def _begin(self, lease: LeaderLease, leadership: Leadership) -> None:
        if self._standby:
            self._standby.leader_gone()
        self._end_standby()
        self.role = Undecided(self._shown.view)
        leader = self._leader = Leader(
            self._gateway,
            self._filer,
            leadership,
            lease,
            gateways=self._gateways,
            changes=self._changes,
            shown=self._shown,
        )
        await leader.load()
        self.role = leader
        await leader.serve()
        self._watchdog.start()

    def _stand_by(self, leadership: Leadership) -> None:
        """
        Called again and again while another gateway leads.
        """
        if self._standby is None:
            self.role = self._standby = Standby(
                self._gateway,
                self._filer,
                leadership,
                gateways=self._gateways,
                peers=self._peers,
                shown=self._shown,
                listeners=self._listeners,
                serve=self._report_started,
            )
        self._gateways.stand_by(leader_has_our_id=leadership.node_id == self._gateways.own.id)
        self._standby.follow(leadership)

    def _end_standby(self) -> None:
        if self._standby:
            self._standby.end()
        self._standby = None
        self._gateways.end_standby()

    def _end_role(self) -> None:
        self._watchdog.stop()
        self._end_standby()
        leader, self._leader = self._leader, None
        if leader:
            leader.end()
        self.role = Undecided(self._shown.view)
        self._shown.show(replace(self._shown.view(), nodes=()))  # clients are to ask other gateways

    def _lose(self) -> None:
        self._end_role()
        if self._beginning:  # `_try_to_lead` waits for it, and its caller tries again
            self._lost_while_beginning = True
            self._beginning.cancel()
            return
        assert self._lease
        self._attempt = Deferred.fromCoroutine(self._lead_again(self._lease))
        self._attempt.addErrback(self._failed)

    async def _lead_again(self, lease: LeaderLease, problem: Exception | None = None) -> None:
        while self._has_started:
            if problem:
                self._end_role()
                self._log.warn(CANNOT_LEAD_YET, error=problem)
                await deferLater(self._gateway.reactor, _AGAIN_S)
            try:
                await self._lead(lease)
            except (*CLUSTER_ERRORS, KafkaError) as error:  # the lease may run out before it serves
                problem = error
            else:
                break

    def _report_started(self) -> None:
        if not self._started.called:
            self._has_started = True
            self._started.callback(None)

    def _failed(self, failure: Failure) -> None:
        if not self._started.called:
            self._started.errback(failure)
        elif self._has_started:
            self._log.failure(CANNOT_LEAD_AGAIN, failure)
