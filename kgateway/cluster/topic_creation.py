"""
The rules for creating topics, adding partitions to them, and changing their configs.

A plan is what a topic is going to be. Making one changes nothing, so a request that is only validated ends there. The
number of replicas is decided by the gateways and their storage: a client's number is checked against the nodes, as in
Kafka, and then granted, or lowered to the number of nodes with a line in the log.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from twisted.logger import Logger

from kgateway.cluster.broker_config import topic_defaults
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.names import METADATA_LOG, check_collision, check_name, is_internal
from kgateway.cluster.view import ClusterView, NewTopic, Topic
from kgateway.config.settings import Settings
from kgateway.log_messages import TOPIC_CONFIG_UNMET
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError

DEFAULT = -1  # the gateway chooses the count
MOST_PARTITIONS = 10_000  # for one request
_REGISTRY_TOPIC = "_schemas"  # the topic of schema registries, whose records must never expire
_REGISTRY = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True)
class Assignment:
    """
    A partition and its nodes, the first of which is to lead it.
    """

    index: int
    nodes: Sequence[int]


def check_assignments(assignments: Sequence[Assignment], view: ClusterView) -> None:
    for assignment in assignments:
        check_nodes(assignment.nodes, view, len(assignments[0].nodes))
    counted = Counter(sorted(assignment.index for assignment in assignments))
    twice = [index for index, count in counted.items() if count > 1]
    if twice:
        wrong = f"Found multiple manual partition assignments for partition {twice[0]}"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)
    if [*counted] != list(range(len(counted))):
        wrong = "partitions should be a consecutive 0-based integer sequence"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, wrong)


def check_nodes(nodes: Sequence[int], view: ClusterView, replication_factor: int) -> None:
    """
    Refuse the nodes of one partition. `replication_factor` is that of the other partitions of the topic.
    """
    strangers = [node for node in nodes if view.node(node) is None]
    twice = [node for node, count in Counter(sorted(nodes)).items() if count > 1]
    wrong = None
    if not nodes:
        wrong = "includes an empty replica list."
    elif twice:
        wrong = f"includes the broker {twice[0]} more than once."
    elif strangers:
        wrong = f"includes broker {strangers[0]}, but no such broker is registered."
    elif len(nodes) != replication_factor:
        wrong = (
            f"includes a partition with {len(nodes)} replica(s), but this is not consistent with previous partitions, "
            f"which have {replication_factor} replica(s)."
        )
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {wrong}")


@dataclass(frozen=True, slots=True)
class TopicRequest:
    name: str
    partition_count: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[Assignment] = ()
    overrides: Mapping[str, str | None] = field(default_factory=dict)


def first_use(name: str) -> TopicRequest:
    """
    The topic that is created because a client uses it as if it existed.
    """
    if is_internal(name) or name == METADATA_LOG:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} is not created when a client uses it")
    count = 1 if name.startswith("_") else DEFAULT
    return TopicRequest(name, count, overrides=_REGISTRY if name == _REGISTRY_TOPIC else {})


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """
    What a new topic is going to be, and which parts of the request it will not fulfil.
    """

    new: NewTopic
    replication_factor: int
    unmet: tuple[str, ...] = ()

    _log = Logger()

    def warn(self) -> None:
        for what in self.unmet:
            self._log.warn(TOPIC_CONFIG_UNMET, topic=self.new.name, what=what)


@dataclass(frozen=True, slots=True)
class TopicRules:
    view: ClusterView
    settings: Settings

    def plan(self, wish: TopicRequest) -> TopicPlan:
        """
        The topic that a client asks for; a KafkaError if it cannot be.
        """
        self._check_free(wish.name)
        config = TopicConfig.of(_without_nulls(wish.overrides), topic_defaults(self.settings, self.view.overrides))
        replicas = self._replicas(wish)
        unmet = [
            *self._lower("replication factor", replicas, ErrorCode.INVALID_REPLICATION_FACTOR),
            *self._lower_in_sync(config),
        ]
        if wish.assignments and len(self.view.nodes) > 1:
            unmet.append("the requested assignment is not kept: gateways distribute partitions among themselves")
        new = NewTopic(wish.name, self.partition_count(wish), config, is_internal(wish.name))
        return TopicPlan(new, min(replicas, len(self.view.nodes)), tuple(unmet))

    def partition_count(self, wish: TopicRequest) -> int:
        if wish.assignments:
            return len(wish.assignments)
        return self.settings.num_partitions if wish.partition_count == DEFAULT else wish.partition_count

    def altered(self, topic: Topic, overrides: Mapping[str, str]) -> TopicConfig:
        return topic.config.altered(overrides, topic_defaults(self.settings, self.view.overrides))

    def unmet(self, topic: Topic, config: TopicConfig) -> list[str]:
        """
        What of its new config the topic would not get.
        """
        if config.min_insync_replicas == topic.config.min_insync_replicas:
            return []
        return self._lower_in_sync(config)

    def check_total(self, wishes: Iterable[TopicRequest]) -> None:
        check_addition(sum(max(0, self.partition_count(wish)) for wish in wishes))

    def check_total_growth(self, partition_counts: Mapping[str, int]) -> None:
        topics = self.view.topics
        growth = [count - len(topics[name].partitions) for name, count in partition_counts.items() if name in topics]
        check_addition(sum(max(0, added) for added in growth))

    def check_growth(self, topic: Topic, partition_count: int, assignments: Sequence[Sequence[int]] | None) -> None:
        """
        Refuse a number of partitions that is no increase, or new partitions that cannot be placed as asked.
        """
        now = len(topic.partitions)
        if topic.internal:  # the hash of a group id finds its partition among this many
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

    def _replicas(self, wish: TopicRequest) -> int:
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
        reason = f"{what} {wanted} cannot be reached with {counted(there, 'broker')}"
        if self.settings.replication_factor_policy == "strict":
            raise KafkaError(code, reason)
        return [f"{reason} and counts as {there}"]


def check_addition(count: int) -> None:
    if count > MOST_PARTITIONS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _without_nulls(overrides: Mapping[str, str | None]) -> dict[str, str]:
    nulls = [name for name, value in overrides.items() if value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    return {name: value for name, value in overrides.items() if value is not None}


def _check_alone(wish: TopicRequest) -> None:
    given = {"replication factor": wish.replication_factor, "numPartitions": wish.partition_count}
    for what, count in given.items():
        if count != DEFAULT:
            wrong = f"A manual partition assignment was specified, but {what} was not set to -1."
            raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)


def _check_counts(wish: TopicRequest) -> None:
    if wish.replication_factor < DEFAULT or wish.replication_factor == 0:
        wrong = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, wrong)
    if wish.partition_count < DEFAULT or wish.partition_count == 0:
        wrong = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, wrong)
