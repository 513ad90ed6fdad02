"""
What a broker was asked for and has answered about topics, producer ids and the cluster.

A request without an answer may have been carried out or not, but never in part.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import ClusterView, Topic
from kgateway.wire.uuids import Uuid
from tests.broker.log.power_clients import Clients
from tests.broker.log.power_log import Broken


def expires(config: TopicConfig) -> bool:
    """
    Whether records may expire.
    """
    return bool({"retention.ms", "retention.bytes"} & config.overrides.keys())


@dataclass(eq=False)
class ExpectedTopic:
    """
    A topic that exists or may exist.
    """

    name: str
    configs: list[TopicConfig]  # it has one of these
    counts: set[int]  # possible numbers of partitions
    new_clients: Callable[[int], Clients]
    id: Uuid | None = None
    may_be_missing: bool = True
    is_changing: bool = False  # an answer is pending
    is_configured: bool = False  # the pending change is of its config only: the topic can be used meanwhile
    clients: list[Clients] = field(default_factory=list)

    @property
    def is_usable(self) -> bool:
        """
        Whether it exists for certain, unchanged.
        """
        return not self.may_be_missing and not self.is_changing and self.id is not None

    def confirmed(self, topic: Topic) -> None:
        """
        Note that the broker has confirmed this topic.
        """
        self.is_changing = self.may_be_missing = False
        self.check(topic)

    def check(self, topic: Topic) -> None:
        """
        Check that the topic may be like this, which it then is.
        """
        if self.id is not None and topic.id != self.id:
            raise Broken(f"topic {self.name} has become another one")
        if topic.config not in self.configs:
            raise Broken(f"topic {self.name} has {topic.config.overrides}, and should have one of {self.configs}")
        if len(topic.partitions) not in self.counts:
            raise Broken(f"topic {self.name} has {len(topic.partitions)} partitions, not {self.counts}")
        self.id, self.counts, self.configs = topic.id, {len(topic.partitions)}, [topic.config]
        for index in range(len(self.clients), len(topic.partitions)):
            self.clients.append(self.new_clients(index))
        for clients in self.clients:
            clients.log.configured(fsync=topic.config.acks_fsync, expires=expires(topic.config))


@dataclass(eq=False)
class ExpectedCluster:
    topics: dict[str, ExpectedTopic] = field(default_factory=dict)
    producer_ids: set[int] = field(default_factory=set)
    cluster_id: str | None = None
    epoch: int = -1

    def new_producer_id(self, given: int) -> None:
        if given in self.producer_ids:
            raise Broken(f"the producer id {given} was given out before")
        self.producer_ids.add(given)

    def check(self, view: ClusterView) -> None:
        """
        Check that a started broker may have this view of the cluster, which it then has.
        """
        if self.cluster_id not in (None, view.cluster_id):
            raise Broken(f"the cluster {self.cluster_id} has become {view.cluster_id}")
        self.cluster_id = view.cluster_id
        for name, topic in view.topics.items():
            expected = self.topics.get(name)
            if expected is None:
                raise Broken(f"topic {name} is there, and should not be")
            expected.confirmed(topic)
        for name in [*self.topics]:
            if name not in view.topics:
                if not self.topics[name].may_be_missing:
                    raise Broken(f"topic {name} is missing")
                del self.topics[name]
