"""
The rules for making topics.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.topic_creation import MOST_PARTITIONS, Assignment, TopicRequest, TopicRules, first_use
from kgateway.cluster.view import ClusterView, Node, PartitionState, Topic
from kgateway.config.settings import Settings
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import Uuid
from tests.cluster.clusters import hear_log, refusal


def _topic(name: str, partitions: int = 1, replicas: tuple[int, ...] = (1,)) -> Topic:
    return Topic(Uuid.random(), name, (PartitionState(1, 0, replicas, replicas),) * partitions)


def _rules(nodes: int = 1, topics: Sequence[Topic] = (), **settings: Any) -> TopicRules:
    view = ClusterView("cluster", tuple(Node(number) for number in range(1, nodes + 1)), 1)
    for topic in topics:
        view = view.with_topic(topic)
    return TopicRules(view, Settings(**settings))


def _assigned(*nodes: Sequence[int]) -> list[Assignment]:
    return [Assignment(index, on) for index, on in enumerate(nodes)]


class RulesTestCase(SynchronousTestCase):
    def assert_refused(self, code: ErrorCode, rules: TopicRules, wish: TopicRequest, says: str = "") -> None:
        error = refusal(rules.plan, wish)
        assert code == error.code, error
        assert says in str(error.message)


class CountTests(RulesTestCase):
    def test_defaults(self) -> None:
        """
        -1 stands for the numbers of partitions and replicas in the settings.
        """
        plan = _rules(3, num_partitions=5, default_replication_factor=2).plan(TopicRequest("a"))
        assert (plan.new.partition_count, plan.replication_factor) == (5, 2)

    def test_possible_counts_are_used(self) -> None:
        plan = _rules(3).plan(TopicRequest("a", 7, 3))
        assert (plan.new.partition_count, plan.replication_factor, plan.unmet) == (7, 3, ())

    def test_impossible_partitions(self) -> None:
        """
        A topic has at least one partition.
        """
        for count in (0, -2):
            self.assert_refused(ErrorCode.INVALID_PARTITIONS, _rules(), TopicRequest("a", count), "non-positive")

    def test_impossible_replicas(self) -> None:
        """
        A topic has at least one replica; Kafka checks this first.
        """
        for factor in (0, -2):
            self.assert_refused(
                ErrorCode.INVALID_REPLICATION_FACTOR, _rules(), TopicRequest("a", 0, factor), "larger than 0"
            )

    def test_clamped_replicas(self) -> None:
        """
        More replicas than nodes count as one on each, with a warning.
        """
        for wish in (TopicRequest("a", 1, 3), TopicRequest("a")):
            plan = _rules(2, default_replication_factor=3).plan(wish)
            assert plan.replication_factor == 2
            assert plan.unmet == ("replication factor 3 cannot be reached with 2 brokers and counts as 2",)

    def test_strict_replicas(self) -> None:
        """
        A strict operator refuses more replicas than nodes.
        """
        rules = _rules(2, replication_factor_policy="strict")
        self.assert_refused(
            ErrorCode.INVALID_REPLICATION_FACTOR, rules, TopicRequest("a", 1, 3), "3 cannot be reached with 2"
        )
        assert rules.plan(TopicRequest("a", 1, 2)).replication_factor == 2

    def test_in_sync(self) -> None:
        """
        min.insync.replicas above the number of nodes is stored with a warning, or refused by strict operators.
        """
        wish = TopicRequest("a", overrides={"min.insync.replicas": "2"})
        plan = _rules().plan(wish)
        assert plan.new.config.overrides["min.insync.replicas"] == "2"
        assert plan.unmet == ("min.insync.replicas 2 cannot be reached with 1 broker and counts as 1",)
        self.assert_refused(ErrorCode.INVALID_CONFIG, _rules(replication_factor_policy="strict"), wish)

    def test_total(self) -> None:
        """
        A request creates 10,000 partitions at most, whichever way it asks for them.
        """
        rules = _rules(num_partitions=4)
        most = [
            TopicRequest("a", MOST_PARTITIONS - 5),
            TopicRequest("b"),
            TopicRequest("c", assignments=_assigned([1])),
            TopicRequest("d", -2),
        ]
        rules.check_total(most)
        error = refusal(rules.check_total, [*most, TopicRequest("e", 1)])
        assert error.code == ErrorCode.POLICY_VIOLATION


class NameTests(RulesTestCase):
    def test_an_existing_name_is_refused(self) -> None:
        self.assert_refused(
            ErrorCode.TOPIC_ALREADY_EXISTS, _rules(topics=[_topic("a.b")]), TopicRequest("a.b"), "'a.b'"
        )

    def test_bad_names(self) -> None:
        """
        Illegal names, and those that collide with a topic, are refused.
        """
        self.assert_refused(ErrorCode.INVALID_TOPIC_EXCEPTION, _rules(), TopicRequest("a b"))
        self.assert_refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION, _rules(topics=[_topic("a.b")]), TopicRequest("a_b"), ": a.b"
        )

    def test_metadata_log(self) -> None:
        """
        The log of Kafka's controllers is no topic for clients to create.
        """
        self.assert_refused(ErrorCode.INVALID_REQUEST, _rules(), TopicRequest("__cluster_metadata"))

    def test_internal(self) -> None:
        """
        A topic of coordinators is marked internal, whichever client creates it.
        """
        assert _rules().plan(TopicRequest("__consumer_offsets")).new.internal
        assert not _rules().plan(TopicRequest("orders")).new.internal


class ConfigTests(RulesTestCase):
    def test_settings_are_defaults(self) -> None:
        """
        The gateway's settings apply where the topic sets nothing.
        """
        assert _rules(message_max_bytes=77).plan(TopicRequest("a")).new.config.max_message_bytes == 77

    def test_null(self) -> None:
        """
        A config without a value is refused by name.
        """
        overrides: Mapping[str, str | None] = {"retention.ms": None, "flush.ms": "1"}
        self.assert_refused(ErrorCode.INVALID_CONFIG, _rules(), TopicRequest("a", overrides=overrides), "retention.ms")

    def test_configs_are_checked_before_counts(self) -> None:
        """
        Kafka has the same order.
        """
        self.assert_refused(ErrorCode.INVALID_CONFIG, _rules(), TopicRequest("a", 0, overrides={"nope": "1"}))


class AssignmentTests(RulesTestCase):
    def test_counted(self) -> None:
        """
        Assignments determine the numbers of partitions and replicas, in any order.
        """
        plan = _rules(3).plan(TopicRequest("a", assignments=[Assignment(1, [2, 3]), Assignment(0, [1, 2])]))
        assert (plan.new.partition_count, plan.replication_factor) == (2, 2)

    def test_assignments_are_ignored_with_a_warning(self) -> None:
        """
        Several gateways ignore the assignment.
        """
        assert "not kept" in _rules(2).plan(TopicRequest("a", assignments=_assigned([2]))).unmet[0]
        assert _rules(1).plan(TopicRequest("a", assignments=_assigned([1]))).unmet == ()

    def test_assignments_exclude_counts(self) -> None:
        for wish, what in (
            (TopicRequest("a", 1, assignments=_assigned([1])), "numPartitions"),
            (TopicRequest("a", -1, 1, _assigned([1])), "replication factor"),
            (TopicRequest("a", 1, 1, _assigned([1])), "replication factor"),
        ):
            self.assert_refused(ErrorCode.INVALID_REQUEST, _rules(), wish, f"but {what} was not set to -1.")

    def test_impossible(self) -> None:
        """
        Missing, repeated or no nodes, and uneven partitions are refused.
        """
        wrong = {
            "broker 9, but no such broker is registered": _assigned([1, 9]),
            "the broker 1 more than once": _assigned([1, 1]),
            "an empty replica list": _assigned([1], []),
            "1 replica(s), but this is not consistent with previous partitions": _assigned([1, 2], [1]),
        }
        for says, assignments in wrong.items():
            wish = TopicRequest("a", assignments=assignments)
            self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _rules(2), wish, says)

    def test_numbering(self) -> None:
        """
        Partitions are numbered from 0, without gaps or repetitions.
        """
        consecutive = "partitions should be a consecutive 0-based integer sequence"
        for indexes in ((1, 2), (0, 2), (0, 0), (-1, 0)):
            wish = TopicRequest("a", assignments=[Assignment(index, [1]) for index in indexes])
            says = "assignments for partition 0" if indexes == (0, 0) else consecutive
            self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _rules(), wish, says)


class FirstUseTests(SynchronousTestCase):
    def test_defaults(self) -> None:
        """
        A topic created by its first use has the default number of partitions.
        """
        rules = _rules(num_partitions=6)
        assert rules.plan(first_use("orders")).new.partition_count == rules.partition_count(first_use("orders")) == 6

    def test_underscore(self) -> None:
        """
        A topic whose name begins with an underscore has one partition.
        """
        new = _rules(num_partitions=6).plan(first_use("_mine")).new
        assert (new.partition_count, dict(new.config.overrides)) == (1, {})

    def test_registry(self) -> None:
        """
        The topic of schema registries has one partition and is compacted.
        """
        new = _rules(num_partitions=6).plan(first_use("_schemas")).new
        assert (new.partition_count, dict(new.config.overrides)) == (1, {"cleanup.policy": "compact"})

    def test_internal(self) -> None:
        """
        Topics of coordinators and the log of controllers are not created by use.
        """
        for name in ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"):
            error = refusal(first_use, name)
            assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name


class GrowthTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.topic = _topic("orders", 3, (1, 2))
        self.rules = _rules(2, [self.topic, _topic("payments", 2)])

    def assert_refused(self, code: ErrorCode, count: int, nodes: Sequence[Sequence[int]] | None = None) -> None:
        error = refusal(self.rules.check_growth, self.topic, count, nodes)
        assert code == error.code, error

    def test_more(self) -> None:
        """
        A topic may grow, also with an assignment for each new partition.
        """
        self.rules.check_growth(self.topic, 4, None)
        self.rules.check_growth(self.topic, 5, [[1, 2], [2, 1]])

    def test_no_increase(self) -> None:
        """
        A total that is not larger is refused.
        """
        for count in (3, 2, 0, -1):
            self.assert_refused(ErrorCode.INVALID_PARTITIONS, count)

    def test_places(self) -> None:
        """
        Each new partition has an assignment with the topic's number of replicas.
        """
        self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, 5, [[1, 2]])
        self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, 4, [])
        self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, 4, [[1]])

    def test_total(self) -> None:
        """
        A request adds 10,000 partitions at most; missing and shrinking topics do not count.
        """
        self.rules.check_total_growth({"orders": 3 + MOST_PARTITIONS, "absent": 5, "payments": 1})
        error = refusal(self.rules.check_total_growth, {"orders": 4 + MOST_PARTITIONS, "payments": 1})
        assert error.code == ErrorCode.POLICY_VIOLATION


class WarningTests(SynchronousTestCase):
    def test_logged(self) -> None:
        """
        Whatever a topic does not get is logged, with its name.
        """
        events = hear_log(self)
        plan = _rules(1).plan(TopicRequest("orders", 1, 3, overrides={"min.insync.replicas": "2"}))
        assert events == []
        plan.warn()
        assert [event["topic"] for event in events] == ["orders", "orders"]
        assert "replication factor 3" in events[0]["what"]
        assert "min.insync.replicas 2" in events[1]["what"]
