"""
The broker whose topics are those of a SeaweedMQ cluster.

It has no state of its own: topics and records are SeaweedMQ's, and what SeaweedMQ has no place for lies in the filer
beside them (topics.py, beside.py, state_topics.py). One gateway at a time owns all of it (owner.py, owned_topics.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from kgateway.broker.config_changes import ConfigChanges
from kgateway.broker.lone import STATE_PARTITIONS
from kgateway.broker.patience import at_most
from kgateway.broker.producers import EXPIRY_MS
from kgateway.broker.retention_rounds import CHECK_MS, RetentionRounds
from kgateway.broker.seaweed.addresses import ServerAddress
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweed.security import Security
from kgateway.broker.seaweedmq.first_offsets import FirstOffsets
from kgateway.broker.seaweedmq.following import Following
from kgateway.broker.seaweedmq.in_kafkas_words import CLUSTERS_ERRORS
from kgateway.broker.seaweedmq.layout import NAMESPACE
from kgateway.broker.seaweedmq.openings import Partition
from kgateway.broker.seaweedmq.owned import Owned
from kgateway.broker.seaweedmq.owned_topics import NOT_OWNER, OwnedTopics
from kgateway.broker.seaweedmq.owner import Ownership
from kgateway.broker.seaweedmq.owning import Owning
from kgateway.broker.seaweedmq.parts import Parts
from kgateway.broker.seaweedmq.site import Site
from kgateway.broker.seaweedmq.watching import Watching
from kgateway.broker.spool import Spool
from kgateway.broker.unusable import Unusable
from kgateway.cluster.view import ClusterView, Node, Topic
from kgateway.coordinating.places import STATE_TOPICS
from kgateway.interfaces import IBroker
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_OPEN_S = 3.0
_STOPPING = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the gateway stops")


@implementer(IBroker)
class SeaweedMQBroker(OwnedTopics):
    """
    One gateway before a cluster.
    """

    _log = Logger()

    folder: str | None = None

    def __init__(
        self,
        masters: Sequence[ServerAddress],
        *,
        node_id: int,
        now_ms: Callable[[], int],
        reactor: Any,
        client: str = "kgateway",
        namespace: str = NAMESPACE,
        producer_expiry_ms: int = EXPIRY_MS,
        topic_defaults: Mapping[str, str] | None = None,
        offsets_partitions: int = STATE_PARTITIONS,
        filer_group: str = "",
        security: Security | None = None,
        retention_check_ms: int = CHECK_MS,
        recent_bytes: int = 0,
    ) -> None:
        super().__init__(node_id, offsets_partitions, topic_defaults)
        self._masters = masters
        seaweed = Seaweed(masters, reactor, filer_group=filer_group, security=security)
        kept = producer_expiry_ms, self._topic_defaults, Spool(recent_bytes)
        self._site = Site(seaweed, namespace, client, now_ms, reactor, *kept)
        self._owning = Owning(self._site, node_id, self._begin, self._wait, self._end)
        self._ends: list[Callable[[], None]] = []  # what is done when the topics are ours no more
        self._retention_check_ms = retention_check_ms

    @property
    def description(self) -> str:
        count = len(self._view.topics)
        masters = ", ".join(map(str, self._masters))
        return f"{count} topic{'' if count == 1 else 's'} of the SeaweedMQ cluster at {masters}"

    @property
    def log_dir(self) -> str:
        return f"seaweedmq:{','.join(map(str, self._masters))}"

    def view(self) -> ClusterView:
        if self._held and self._owning.has_overslept():
            return self._view.without_leaders()  # who sends clients to itself now may send them astray
        return self._view

    def leave(self) -> None:
        self._owning.leave()

    def start(self) -> Deferred[None]:
        return self._owning.start().addErrback(self._unusable)

    def stop(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._stop())

    def _unusable(self, failure: Failure) -> Failure:
        if not failure.check(*CLUSTERS_ERRORS):
            return failure
        masters = ",".join(map(str, self._masters))
        reason = f"seaweedmq:{masters} cannot be used: {failure.getErrorMessage()}"
        if failure.check(RpcError):
            secured = "as they are secured (seaweed_security, seaweed_filer_group)"
            reason += f"; see that its masters, a filer and a broker run, and can be reached {secured}"
        return Failure(Unusable(reason))

    async def _begin(self, ownership: Ownership, made: Parts) -> None:
        """
        Show the topics, which are ours.
        """
        self._parts = made
        owned = Owned(made, ownership.epoch, self._site.topic_defaults)
        shown, show = partial(self._shown, owned), partial(self._show_owned, owned)
        following = Following(owned, self._own_changes, lambda: self._view, show, shown)
        self._look_at = following.changed
        watching = Watching(self._site, made.making.grown, following.changed, following.look_again)
        self._ends += [watching.stop, partial(owned.lose, NOT_OWNER)]
        await watching.start()
        overrides = await made.configs.read()
        self._configs = ConfigChanges(overrides, made.configs.keep, self._show_overrides)
        self._topic_defaults.follow(overrides)
        loaded = await owned.load()
        await self._take_over(owned, {stored.name: shown(stored) for stored in loaded})
        view = self._view.having(map(shown, owned.known()))
        self._held = owned
        view = replace(view, cluster_id=ownership.cluster_id, controller_id=self.node_id, nodes=self._nodes())
        self._show(view.with_overrides(overrides))
        await at_most(self._site.reactor, _OPEN_S, owned.open_all(view.topics.values()))
        rounds = RetentionRounds(self._site.reactor, self._retention_check_ms, self._served, self._at)
        self._ends.append(rounds.stop)

    async def _served(self) -> list[tuple[Uuid, int]]:
        """
        All partitions with records of clients.
        """
        topics = [topic for topic in self._view.topics.values() if not topic.internal]
        return [(topic.id, index) for topic in topics for index in range(len(topic.partitions))]

    def _at(self, key: tuple[Uuid, int]) -> Partition:
        return self.partition(*key)

    async def _take_over(self, owned: Owned, topics: Mapping[str, Topic]) -> None:
        """
        Let groups begin, where there were none before, with the offsets that the Go gateway has kept.
        """
        made, make = self._parts, partial(self._new_state_topic, Resource.GROUP, owned.epoch)
        first = FirstOffsets(self._site.seaweed, self._site.folder, made.offset_files, made.demand_ownership)
        await first.take_over(topics.get(STATE_TOPICS[Resource.GROUP]), make, owned)

    def _end(self) -> None:
        """
        They are ours no more.
        """
        ends, self._ends = self._ends, []
        for end in ends:
            end()
        self._held = None
        self._show(replace(self._view, nodes=()))  # clients are to go elsewhere

    def _wait(self, filer: Filer, owner: Ownership) -> None:
        """
        They are another's; called every second.
        """

    def _nodes(self) -> tuple[Node, ...]:
        """
        The gateways that clients are to know while the topics are ours.
        """
        return (Node(self.node_id),)

    async def _stop(self) -> None:
        has_begun = await self._owning.try_no_more()
        if owned := self._held:
            await self._topic_configs.stop()
            await self._configs.stop()
            await owned.settle()
            owned.lose(_STOPPING)
        if has_begun:
            await self._owning.give_back()
        await self._site.seaweed.close()
