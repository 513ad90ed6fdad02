"""
The rules for making topics.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.creation import MOST_PARTITIONS, Rules, Wish
from kgateway.cluster.placement import Assignment
from kgateway.cluster.view import ClusterView, Node, PartitionState, Topic
from kgateway.config.settings import Settings
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import Uuid
from tests.cluster.clusters import hear_log, refusal


def _topic(name: str, partitions: int = 1, replicas: tuple[int, ...] = (1,)) -> Topic:
    return Topic(Uuid.random(), name, (PartitionState(1, 0, replicas, replicas),) * partitions)


def _rules(nodes: int = 1, topics: Sequence[Topic] = (), **settings: Any) -> Rules:
    view = ClusterView("cluster", tuple(Node(number) for number in range(1, nodes + 1)), 1)
    for topic in topics:
        view = view.with_topic(topic)
    return Rules(view, Settings(**settings))


def _assigned(*nodes: Sequence[int]) -> list[Assignment]:
    return [Assignment(index, on) for index, on in enumerate(nodes)]


class RulesTestCase(SynchronousTestCase):
    def assert_refused(self, code: ErrorCode, rules: Rules, wish: Wish, says: str = "") -> None:
        error = refusal(rules.plan, wish)
        assert code == error.code, error
        assert says in str(error.message)


class CountTests(RulesTestCase):
    def test_defaults(self) -> None:
        """
        -1 stands for the settings' numbers of partitions and replicas.
        """
        plan = _rules(3, num_partitions=5, default_replication_factor=2).plan(Wish("a"))
        assert (plan.new.partition_count, plan.replication_factor) == (5, 2)

    def test_as_asked(self) -> None:
        """
        Numbers that can be had are had.
        """
        plan = _rules(3).plan(Wish("a", 7, 3))
        assert (plan.new.partition_count, plan.replication_factor, plan.unmet) == (7, 3, ())

    def test_impossible_partitions(self) -> None:
        """
        No topic has no partitions, or fewer.
        """
        for count in (0, -2):
            self.assert_refused(ErrorCode.INVALID_PARTITIONS, _rules(), Wish("a", count), "non-positive")

    def test_impossible_replicas(self) -> None:
        """
        No topic has no replicas, or fewer, and Kafka says so first.
        """
        for factor in (0, -2):
            self.assert_refused(ErrorCode.INVALID_REPLICATION_FACTOR, _rules(), Wish("a", 0, factor), "larger than 0")

    def test_clamped_replicas(self) -> None:
        """
        More replicas than nodes count as one on each, and that is worth a warning.
        """
        for wish in (Wish("a", 1, 3), Wish("a")):
            plan = _rules(2, default_replication_factor=3).plan(wish)
            assert plan.replication_factor == 2
            assert plan.unmet == ("replication factor 3 cannot be reached with 2 broker(s) and counts as 2",)

    def test_strict_replicas(self) -> None:
        """
        Where the operator is strict, more replicas than nodes are refused.
        """
        rules = _rules(2, replication_factor_policy="strict")
        self.assert_refused(ErrorCode.INVALID_REPLICATION_FACTOR, rules, Wish("a", 1, 3), "3 cannot be reached with 2")
        assert rules.plan(Wish("a", 1, 2)).replication_factor == 2

    def test_in_sync(self) -> None:
        """
        min.insync.replicas above the number of nodes is kept as set with a warning, or refused by strict operators.
        """
        wish = Wish("a", overrides={"min.insync.replicas": "2"})
        plan = _rules().plan(wish)
        assert plan.new.config.overrides["min.insync.replicas"] == "2"
        assert plan.unmet == ("min.insync.replicas 2 cannot be reached with 1 broker(s) and counts as 1",)
        self.assert_refused(ErrorCode.INVALID_CONFIG, _rules(replication_factor_policy="strict"), wish)

    def test_total(self) -> None:
        """
        A request makes 10,000 partitions at most, whichever way it asks for them.
        """
        rules = _rules(num_partitions=4)
        most = [Wish("a", MOST_PARTITIONS - 5), Wish("b"), Wish("c", assignments=_assigned([1])), Wish("d", -2)]
        rules.check_total(most)
        error = refusal(rules.check_total, [*most, Wish("e", 1)])
        assert error.code == ErrorCode.POLICY_VIOLATION


class NameTests(RulesTestCase):
    def test_taken(self) -> None:
        """
        A name that a topic has is taken.
        """
        self.assert_refused(ErrorCode.TOPIC_ALREADY_EXISTS, _rules(topics=[_topic("a.b")]), Wish("a.b"), "'a.b'")

    def test_bad_names(self) -> None:
        """
        Illegal names, and those that collide with a topic, are refused.
        """
        self.assert_refused(ErrorCode.INVALID_TOPIC_EXCEPTION, _rules(), Wish("a b"))
        self.assert_refused(ErrorCode.INVALID_TOPIC_EXCEPTION, _rules(topics=[_topic("a.b")]), Wish("a_b"), ": a.b")

    def test_metadata_log(self) -> None:
        """
        The log of Kafka's controllers is no topic that clients make.
        """
        self.assert_refused(ErrorCode.INVALID_REQUEST, _rules(), Wish("__cluster_metadata"))

    def test_internal(self) -> None:
        """
        A topic of coordinators is marked, whoever makes it.
        """
        assert _rules().plan(Wish("__consumer_offsets")).new.internal
        assert not _rules().plan(Wish("orders")).new.internal


class ConfigTests(RulesTestCase):
    def test_settings_stand_behind(self) -> None:
        """
        The gateway's settings hold where the topic sets nothing.
        """
        assert _rules(message_max_bytes=77).plan(Wish("a")).new.config.max_message_bytes == 77

    def test_null(self) -> None:
        """
        A config without a value is refused by name.
        """
        overrides: Mapping[str, str | None] = {"retention.ms": None, "flush.ms": "1"}
        self.assert_refused(ErrorCode.INVALID_CONFIG, _rules(), Wish("a", overrides=overrides), "retention.ms")

    def test_before_counts(self) -> None:
        """
        Kafka looks at configs before it looks at counts.
        """
        self.assert_refused(ErrorCode.INVALID_CONFIG, _rules(), Wish("a", 0, overrides={"nope": "1"}))


class AssignmentTests(RulesTestCase):
    def test_counted(self) -> None:
        """
        Assignments say how many partitions and replicas there are, in any order.
        """
        plan = _rules(3).plan(Wish("a", assignments=[Assignment(1, [2, 3]), Assignment(0, [1, 2])]))
        assert (plan.new.partition_count, plan.replication_factor) == (2, 2)

    def test_not_kept(self) -> None:
        """
        Among several gateways an assignment is not kept, and that is worth a warning.
        """
        assert "not kept" in _rules(2).plan(Wish("a", assignments=_assigned([2]))).unmet[0]
        assert _rules(1).plan(Wish("a", assignments=_assigned([1]))).unmet == ()

    def test_and_counts(self) -> None:
        """
        Assignments and counts at a time contradict each other.
        """
        for wish, what in (
            (Wish("a", 1, assignments=_assigned([1])), "numPartitions"),
            (Wish("a", -1, 1, _assigned([1])), "replication factor"),
            (Wish("a", 1, 1, _assigned([1])), "replication factor"),
        ):
            self.assert_refused(ErrorCode.INVALID_REQUEST, _rules(), wish, f"but {what} was not set to -1.")

    def test_impossible(self) -> None:
        """
        Nodes that are not there, nodes given twice, no nodes, and uneven partitions are refused.
        """
        wrong = {
            "broker 9, but no such broker is registered": _assigned([1, 9]),
            "the broker 1 more than once": _assigned([1, 1]),
            "an empty replica list": _assigned([1], []),
            "1 replica(s), but this is not consistent with previous partitions": _assigned([1, 2], [1]),
        }
        for says, assignments in wrong.items():
            wish = Wish("a", assignments=assignments)
            self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _rules(2), wish, says)

    def test_numbering(self) -> None:
        """
        Partitions are numbered from 0, without gaps or repetitions.
        """
        consecutive = "partitions should be a consecutive 0-based integer sequence"
        for indexes in ((1, 2), (0, 2), (0, 0), (-1, 0)):
            wish = Wish("a", assignments=[Assignment(index, [1]) for index in indexes])
            says = "assignments for partition 0" if indexes == (0, 0) else consecutive
            self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, _rules(), wish, says)


class FirstUseTests(SynchronousTestCase):
    def test_defaults(self) -> None:
        """
        A topic that comes to be by being used has the default number of partitions.
        """
        assert _rules(num_partitions=6).first_use("orders").new.partition_count == 6

    def test_underscore(self) -> None:
        """
        One whose name begins with an underscore has one partition.
        """
        new = _rules(num_partitions=6).first_use("_mine").new
        assert (new.partition_count, dict(new.config.overrides)) == (1, {})

    def test_registry(self) -> None:
        """
        The topic of schema registries has one partition and is compacted.
        """
        new = _rules(num_partitions=6).first_use("_schemas").new
        assert (new.partition_count, dict(new.config.overrides)) == (1, {"cleanup.policy": "compact"})

    def test_internal(self) -> None:
        """
        Topics of coordinators, and the log of controllers, do not come to be so.
        """
        for name in ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"):
            error = refusal(_rules().first_use, name)
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
        A topic may have more partitions, also with places for each new one.
        """
        self.rules.check_growth(self.topic, 4, None)
        self.rules.check_growth(self.topic, 5, [[1, 2], [2, 1]])

    def test_no_increase(self) -> None:
        """
        As many as it has, or fewer, are no increase.
        """
        for count in (3, 2, 0, -1):
            self.assert_refused(ErrorCode.INVALID_PARTITIONS, count)

    def test_places(self) -> None:
        """
        There is one place for each new partition, with the topic's number of replicas.
        """
        self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, 5, [[1, 2]])
        self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, 4, [])
        self.assert_refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, 4, [[1]])

    def test_total(self) -> None:
        """
        A request adds 10,000 partitions at most; topics that are not there, or shrink, do not count.
        """
        self.rules.check_total_growth({"orders": 3 + MOST_PARTITIONS, "absent": 5, "payments": 1})
        error = refusal(self.rules.check_total_growth, {"orders": 4 + MOST_PARTITIONS, "payments": 1})
        assert error.code == ErrorCode.POLICY_VIOLATION


class WarningTests(SynchronousTestCase):
    def test_logged(self) -> None:
        """
        What a topic is not going to be is told to the operator, with its name.
        """
        events = hear_log(self)
        plan = _rules(1).plan(Wish("orders", 1, 3, overrides={"min.insync.replicas": "2"}))
        assert events == []
        plan.warn()
        assert [event["topic"] for event in events] == ["orders", "orders"]
        assert "replication factor 3" in events[0]["what"]
        assert "min.insync.replicas 2" in events[1]["what"]
