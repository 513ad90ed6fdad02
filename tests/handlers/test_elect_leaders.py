"""
ElectLeaders.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic
from kgateway.handlers.elect_leaders import elect_leaders
from kgateway.messages.elect_leaders import ElectLeadersRequest
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import NEAR, OWN, refusal, serving_among

Told = dict[str, list[tuple[int, int, str | None]]]
NEEDLESS = (ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
Asked = ElectLeadersRequest.TopicPartition


class ElectLeadersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving, self.broker = serving_among(NEAR)
        for name in ("orders", "other"):
            self.successResultOf(self.broker.create_topic(NewTopic(name, 2)))

    def request(self, topics: dict[str, list[int]] | None, kind: int = 0) -> ElectLeadersRequest:
        asked = [Asked(topic=name, partitions=indexes) for name, indexes in (topics or {}).items()]
        named = None if topics is None else asked
        return ElectLeadersRequest(election_type=kind, topic_partitions=named, timeout_ms=1000)

    def ask(self, topics: dict[str, list[int]] | None, kind: int = 0, version: int = 2) -> Told:
        answer = self.successResultOf(self.serving.ask(elect_leaders, self.request(topics, kind), version))
        assert answer.error_code == 0
        return {
            result.topic: [(one.partition_id, one.error_code, one.error_message) for one in result.partition_result]
            for result in answer.replica_election_results
        }

    def test_no_election_is_needed(self) -> None:
        """
        The owner of a partition leads it, for elections of both types.
        """
        for version in elect_leaders.versions:
            for kind in (0, 1):
                told = self.ask({"orders": [1, 0]}, kind if version else 0, version)
                assert told == {"orders": [(1, *NEEDLESS), (0, *NEEDLESS)]}, version

    def test_unknown_partitions_are_refused(self) -> None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert self.ask({"orders": [2, -1], "nowhere": [0]}) == {
            "orders": [(2, code, "No such partition as orders-2"), (-1, code, "No such partition as orders--1")],
            "nowhere": [(0, code, "No such topic as nowhere")],
        }

    def test_all_partitions_need_no_election(self) -> None:
        """
        Without a list the response is empty, because no election is needed.
        """
        assert self.ask(None) == {"orders": [], "other": []}

    def test_other_gateways_lead_their_partitions(self) -> None:
        self.broker.owners["orders"] = (NEAR.id, OWN)
        assert self.ask({"orders": [0]}) == {"orders": [(0, *NEEDLESS)]}

    def test_there_are_two_election_types(self) -> None:
        for kind in (-1, 2):
            refused = refusal(self.serving.ask, elect_leaders, self.request({"orders": [0]}, kind), 2)
            assert (refused.code, refused.message) == (ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
