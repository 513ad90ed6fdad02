"""
DescribeTopicPartitions.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic, Topic
from kgateway.handlers.describe_topic_partitions import describe_topic_partitions
from kgateway.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.security.permissions import Operation
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import ZERO
from tests.cluster.clusters import FAR, NEAR, OWN, refusal, serving_among
from tests.serving import Denying, Serving

Place = tuple[str, int]


def _request(*names: str, limit: int = 2000, cursor: Place | None = None) -> DescribeTopicPartitionsRequest:
    place = cursor and DescribeTopicPartitionsRequest.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    topics = [DescribeTopicPartitionsRequest.Topic(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=place)


def _next(response: DescribeTopicPartitionsResponse) -> Place | None:
    cursor = response.next_cursor
    return (cursor.topic_name, cursor.partition_index) if cursor else None


def _shown(response: DescribeTopicPartitionsResponse) -> dict[str | None, list[int]]:
    return {topic.name: [partition.partition_index for partition in topic.partitions] for topic in response.topics}


class DescribeTopicPartitionsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def make(self, **partitions: int) -> None:
        for name, count in partitions.items():
            self.successResultOf(self.serving.parts.broker.create_topic(NewTopic(name, count)))

    def ask(self, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
        response: DescribeTopicPartitionsResponse
        response = self.successResultOf(self.serving.ask(describe_topic_partitions, request, 0))
        return response


class WhichTests(DescribeTopicPartitionsTestCase):
    def test_version_of_kafka_4_3_is_served(self) -> None:
        assert range(1) == describe_topic_partitions.versions

    def test_all_topics_are_listed(self) -> None:
        """
        They are sorted by name.
        """
        self.make(c=1, a=2, b=1)
        response = self.ask(_request())
        assert list(_shown(response).items()) == [("a", [0, 1]), ("b", [0]), ("c", [0])]
        assert response.next_cursor is None

    def test_named_topics_are_listed(self) -> None:
        """
        They are sorted by name, and each is there once.
        """
        self.make(c=1, a=2, b=1)
        assert list(_shown(self.ask(_request("c", "a", "c"))).items()) == [("a", [0, 1]), ("c", [0])]

    def test_partitions_have_leader_and_replicas(self) -> None:
        self.serving, cluster = serving_among(NEAR, FAR)
        self.make(a=1)
        cluster.owners = {"a": (NEAR.id, FAR.id)}
        [topic] = self.ask(_request("a")).topics
        made: Topic = cluster.view().topics["a"]
        assert (0, made.id, False) == (topic.error_code, topic.topic_id, topic.is_internal)
        [found] = topic.partitions
        assert (0, NEAR.id, 7) == (found.error_code, found.leader_id, found.leader_epoch)
        assert ([NEAR.id, FAR.id], [NEAR.id, FAR.id]) == (found.replica_nodes, found.isr_nodes)
        assert [FAR.id] == found.offline_replicas
        assert (found.eligible_leader_replicas, found.last_known_elr) == ([], [])
        cluster.owners = {"a": (FAR.id, OWN)}
        assert self.ask(_request("a")).topics[0].partitions[0].leader_id == -1

    def test_internal_topics_are_marked(self) -> None:
        """
        They need not exist yet.
        """
        self.successResultOf(self.serving.broker.create_topic(NewTopic("__consumer_offsets", 1, internal=True)))
        for name in ("__consumer_offsets", "__transaction_state"):
            assert self.ask(_request(name)).topics[0].is_internal, name

    def test_unknown_and_illegal_names_have_different_errors(self) -> None:
        codes = {topic.name: topic.error_code for topic in self.ask(_request("b", "a b")).topics}
        wanted = {"a b": ErrorCode.INVALID_TOPIC_EXCEPTION, "b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert wanted == codes

    def test_operations_are_always_listed(self) -> None:
        """
        Unknown topics have them too.
        """
        self.serving = Serving(Denying(lambda operation, *_: operation is Operation.WRITE))
        self.make(a=1)
        bits = sum(1 << bit for bit in (3, 5, 6, 7, 8, 10, 11))
        told = [topic.topic_authorized_operations for topic in self.ask(_request("a", "b")).topics]
        assert [bits, bits] == told

    def test_hidden_topics_look_unknown(self) -> None:
        """
        They are left out of all topics, and by name they look like unknown ones.
        """
        self.serving = Serving(Denying(lambda _, __, name: name in {"b", "x"}))
        self.make(a=1, b=1, c=1)
        assert _shown(self.ask(_request())) == {"a": [0], "c": [0]}
        response = self.ask(_request("a", "b", "x"))
        assert [topic.name for topic in response.topics] == ["a", "b", "x"]
        for hidden in response.topics[1:]:
            told = (hidden.error_code, hidden.topic_id, hidden.partitions, hidden.topic_authorized_operations)
            assert told == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ZERO, [], UNKNOWN_OPERATIONS)


class PageTests(DescribeTopicPartitionsTestCase):
    def test_pages_are_complete(self) -> None:
        """
        They have no gaps or repetitions, whatever their size.
        """
        self.make(a=3, b=1, c=4)
        every = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1), ("c", 2), ("c", 3)]
        for limit in range(1, 10):
            seen: list[tuple[str | None, int]] = []
            cursor: Place | None = ("", 0)
            while cursor:
                response = self.ask(_request(limit=limit, cursor=cursor if cursor[0] else None))
                page = [(name, index) for name, indexes in _shown(response).items() for index in indexes]
                assert len(page) <= limit
                seen += page
                cursor = _next(response)
            assert every == seen, limit

    def test_a_page_may_end_inside_a_topic(self) -> None:
        """
        The cursor is the topic's next partition.
        """
        self.make(a=3, b=1)
        assert _next(self.ask(_request(limit=2))) == ("a", 2)

    def test_a_page_may_end_between_topics(self) -> None:
        """
        The cursor is the next topic, and the last page has none.
        """
        self.make(a=3, b=1)
        assert _next(self.ask(_request(limit=3))) == ("b", 0)
        assert _next(self.ask(_request(limit=4))) is None

    def test_page_sizes_are_limited(self) -> None:
        """
        A page has between one and 2,000 partitions.
        """
        self.make(a=2001)
        for limit, last in ((0, 0), (-5, 0), (5000, 1999)):
            assert last == self.ask(_request(limit=limit)).topics[0].partitions[-1].partition_index, limit

    def test_unknown_topics_take_no_room(self) -> None:
        """
        They are listed until the page is full.
        """
        self.make(b=1)
        response = self.ask(_request("a", "b", "c", limit=1))
        assert (list(_shown(response)), _next(response)) == (["a", "b"], ("c", 0))

    def test_a_cursor_applies_to_its_topic(self) -> None:
        """
        Later topics begin with their first partition.
        """
        self.make(a=2, b=2)
        assert _shown(self.ask(_request(cursor=("a", 1)))) == {"a": [1], "b": [0, 1]}

    def test_a_cursor_at_a_deleted_topic(self) -> None:
        """
        The page begins with the next topic.
        """
        self.make(a=2, c=2)
        assert _shown(self.ask(_request(cursor=("b", 1)))) == {"c": [0, 1]}

    def test_a_cursor_behind_a_topic(self) -> None:
        """
        No partition of the topic is listed.
        """
        self.make(a=2, b=1)
        assert _shown(self.ask(_request(cursor=("a", 7)))) == {"a": [], "b": [0]}

    def test_impossible_cursors_are_refused(self) -> None:
        """
        A cursor stands at one of the named topics, and at no negative partition.
        """
        self.make(a=2, b=1)
        for request in (_request("a", cursor=("b", 0)), _request("a", cursor=("a", -1)), _request(cursor=("a", -1))):
            error = refusal(self.ask, request)
            assert error.code == ErrorCode.INVALID_REQUEST
