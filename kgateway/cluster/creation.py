"""
The rules for making topics, for letting them grow, and for setting other configs for them.

A plan is what a topic is going to be; making one changes nothing, so a request that only wants to be checked ends here.
How many replicas there are is decided by the gateways and their storage: a client's wish is checked against the nodes,
as Kafka does, and then either granted, or lowered to what there is with a line in the log.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from twisted.logger import Logger

from kgateway.cluster.broker_config import topic_defaults
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.names import METADATA_LOG, check_collision, check_name, is_internal
from kgateway.cluster.placement import Assignment, check_assignments, check_nodes
from kgateway.cluster.view import ClusterView, NewTopic, Topic
from kgateway.config.settings import Settings
from kgateway.wire.errors import ErrorCode, KafkaError

DEFAULT = -1  # a count that the gateway chooses
MOST_PARTITIONS = 10_000  # that one request may make

_REGISTRY_TOPIC = "_schemas"  # where schema registries keep what they know, which must never be dropped for its age
_REGISTRY = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What a client asks for.
    """

    name: str
    partition_count: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[Assignment] = ()
    overrides: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """
    What a new topic is going to be, and what was asked for that it is not going to be.
    """

    new: NewTopic
    replication_factor: int
    unmet: tuple[str, ...] = ()

    _log = Logger()

    def warn(self) -> None:
        """
        Tell the operator, once the topic is made.
        """
        for what in self.unmet:
            self._log.warn("topic {topic}: {what}", topic=self.new.name, what=what)


@dataclass(frozen=True, slots=True)
class Rules:
    """
    What holds in a cluster as it is now.
    """

    view: ClusterView
    settings: Settings

    def plan(self, wish: Wish) -> Plan:
        """
        The topic that a client asks for, or why it cannot be.
        """
        self._check_free(wish.name)
        config = TopicConfig.of(_without_nulls(wish.overrides), topic_defaults(self.settings, self.view.overrides))
        replicas = self._replicas(wish)
        unmet = [
            *self._lower("replication factor", replicas, ErrorCode.INVALID_REPLICATION_FACTOR),
            *self._lower_in_sync(config),
        ]
        if wish.assignments and len(self.view.nodes) > 1:
            unmet.append("the assignment asked for is not kept: gateways share out partitions among themselves")
        new = NewTopic(wish.name, self._partitions(wish), config, is_internal(wish.name))
        return Plan(new, min(replicas, len(self.view.nodes)), tuple(unmet))

    def first_use(self, name: str) -> Plan:
        """
        The topic that comes to be because a client asked for it as though it were there.
        """
        if is_internal(name) or name == METADATA_LOG:
            reason = f"{name} is not made by being asked for"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
        count = 1 if name.startswith("_") else DEFAULT
        return self.plan(Wish(name, count, overrides=_REGISTRY if name == _REGISTRY_TOPIC else {}))

    def altered(self, topic: Topic, overrides: Mapping[str, str]) -> TopicConfig:
        """
        The config that the topic would have; a KafkaError where it cannot.
        """
        return topic.config.altered(overrides, topic_defaults(self.settings, self.view.overrides))

    def unmet(self, topic: Topic, config: TopicConfig) -> list[str]:
        """
        What of its new config the topic would not get.
        """
        if config.min_insync_replicas == topic.config.min_insync_replicas:
            return []
        return self._lower_in_sync(config)

    def check_total(self, wishes: Iterable[Wish]) -> None:
        """
        Refuse a request that makes too many partitions at once.
        """
        check_addition(sum(max(0, self._partitions(wish)) for wish in wishes))

    def check_total_growth(self, partition_counts: Mapping[str, int]) -> None:
        """
        Refuse a request that lets topics grow by too many partitions at once.
        """
        topics = self.view.topics
        growth = [count - len(topics[name].partitions) for name, count in partition_counts.items() if name in topics]
        check_addition(sum(max(0, added) for added in growth))

    def check_growth(self, topic: Topic, partition_count: int, assignments: Sequence[Sequence[int]] | None) -> None:
        """
        Refuse a number of partitions that is no increase, or new ones that cannot be placed as asked.
        """
        now = len(topic.partitions)
        if topic.internal:  # what is kept of a group is where its name leads among so many partitions
            wrong = f"The number of partitions of the internal topic {topic.name} cannot be changed."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, wrong)
        if partition_count == now:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
        if partition_count < now:
            standing = f"The topic {topic.name} currently has {now} partition(s)"
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"{standing}; {partition_count} would not be an increase.")
        if assignments is None:
            return
        added = partition_count - now
        if len(assignments) != added:
            wanted = f"Attempted to add {added} additional partition(s)"
            wrong = f"{wanted}, but only {len(assignments)} assignment(s) were specified."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)
        for nodes in assignments:
            check_nodes(nodes, self.view, len(topic.partitions[0].replicas))

    def _check_free(self, name: str) -> None:
        if name == METADATA_LOG:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_LOG} is prohibited.")
        if name in self.view.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        check_name(name)
        check_collision(name, self.view.blurred_names)

    def _partitions(self, wish: Wish) -> int:
        if wish.assignments:
            return len(wish.assignments)
        return self.settings.num_partitions if wish.partition_count == DEFAULT else wish.partition_count

    def _replicas(self, wish: Wish) -> int:
        if wish.assignments:
            _check_alone(wish)
            check_assignments(wish.assignments, self.view)
            return len(wish.assignments[0].nodes)
        _check_counts(wish)
        known = wish.replication_factor != DEFAULT
        return wish.replication_factor if known else self.settings.default_replication_factor

    def _lower_in_sync(self, config: TopicConfig) -> list[str]:
        return self._lower("min.insync.replicas", config.min_insync_replicas, ErrorCode.INVALID_CONFIG)

    def _lower(self, what: str, wanted: int, code: ErrorCode) -> list[str]:
        there = len(self.view.nodes)
        if wanted <= there:
            return []
        reason = f"{what} {wanted} cannot be reached with {there} broker(s)"
        if self.settings.replication_factor_policy == "strict":
            raise KafkaError(code, reason)
        return [f"{reason} and counts as {there}"]


def check_addition(count: int) -> None:
    """
    Refuse so many new partitions in one request.
    """
    if count > MOST_PARTITIONS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _without_nulls(overrides: Mapping[str, str | None]) -> dict[str, str]:
    nulls = [name for name, value in overrides.items() if value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    return {name: value for name, value in overrides.items() if value is not None}


def _check_alone(wish: Wish) -> None:
    given = {"replication factor": wish.replication_factor, "numPartitions": wish.partition_count}
    for what, count in given.items():
        if count != DEFAULT:
            wrong = f"A manual partition assignment was specified, but {what} was not set to -1."
            raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)


def _check_counts(wish: Wish) -> None:
    if wish.replication_factor < DEFAULT or wish.replication_factor == 0:
        wrong = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, wrong)
    if wish.partition_count < DEFAULT or wish.partition_count == 0:
        wrong = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, wrong)
