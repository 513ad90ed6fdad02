"""
ConsumerGroupHeartbeat.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config_resource import group
from kgateway.cluster.view import NewTopic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.empty_groups import empty_consumer
from tests.serving import Denying, Serving


class HeartbeatTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serve(Serving())

    def serve(self, serving: Serving) -> None:
        self.serving = serving
        self.topic = self.successResultOf(serving.broker.create_topic(NewTopic("t", 2)))

    def ask(self, version: int = 1, **values: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(**{"group_id": "g", **values})
        response: ConsumerGroupHeartbeatResponse = self.successResultOf(
            self.serving.ask(consumer_group_heartbeat, request, version)
        )
        return response

    def join(self, version: int = 1, **values: Any) -> ConsumerGroupHeartbeatResponse:
        asked: dict[str, Any] = {
            "member_id": "m",
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
        }
        return self.ask(version, **{**asked, **values})

    def assert_refused(self, code: ErrorCode, answer: ConsumerGroupHeartbeatResponse) -> None:
        assert answer.error_code == code
        assert answer.error_message
        [refusal] = self.serving.context.refusals or []
        assert refusal.error.code is code

    def test_a_member_joins(self) -> None:
        """
        It gets its partitions, in each version.
        """
        for version in (0, 1):
            self.serve(Serving())
            answer = self.join(version)
            assert (answer.error_code, answer.member_id, answer.heartbeat_interval_ms) == (0, "m", 5000), version
            assert answer.assignment
            assert [(part.topic_id, part.partitions) for part in answer.assignment.topic_partitions] == [
                (self.topic.id, [0, 1])
            ]
            assert self.ask(version, member_id="m", member_epoch=answer.member_epoch).error_code == 0

    def configure(self, **values: int) -> None:
        given = {f"consumer.{name.replace('_', '.')}.ms": str(value) for name, value in values.items()}
        self.successResultOf(self.serving.broker.change_config(group("g"), lambda _: given))

    def test_heartbeat_interval_is_a_group_config(self) -> None:
        """
        It applies from the next heartbeat on.
        """
        epoch = self.join().member_epoch
        for told in (6_000, 7_000):
            self.configure(heartbeat_interval=told)
            assert self.ask(member_id="m", member_epoch=epoch).heartbeat_interval_ms == told
        self.configure()
        assert self.ask(member_id="m", member_epoch=epoch).heartbeat_interval_ms == 5_000
        assert self.join(group_id="other").heartbeat_interval_ms == 5_000

    def test_session_timeout_is_a_group_config(self) -> None:
        """
        It is that of the group when the member last sent a heartbeat.
        """
        epoch = self.join().member_epoch
        groups = self.serving.parts.service(GroupCoordinator)
        self.configure(session_timeout=60_000)
        self.serving.clock.advance(44.9)
        self.ask(member_id="m", member_epoch=epoch)
        self.configure()
        self.serving.clock.advance(59.9)
        assert groups.find("g").state == "Stable"
        self.serving.clock.advance(0.2)
        assert groups.find("g").state == "Empty"

    def test_assignment_interval_is_a_group_config(self) -> None:
        """
        The group waits that long between two assignments.
        """
        self.configure(assignment_interval=10_000)
        epoch = self.join().member_epoch
        self.join(member_id="n")
        waited = 0
        while self.ask(member_id="m", member_epoch=epoch).assignment is None:
            self.serving.clock.advance(1)
            waited += 1
        assert waited == 10

    def test_the_group_knows_client_and_host(self) -> None:
        self.join()
        [member] = self.serving.parts.service(GroupCoordinator).consumer("g", False).describe().members
        assert (member.client_id, member.client_host) == ("test-client", "/127.0.0.1")

    def test_unknown_groups_are_not_created(self) -> None:
        """
        Only a joining member creates its group.
        """
        self.assert_refused(ErrorCode.GROUP_ID_NOT_FOUND, self.ask(member_id="m", member_epoch=1))

    def test_a_contradictory_request_creates_no_group(self) -> None:
        self.assert_refused(ErrorCode.INVALID_REQUEST, self.join(topic_partitions=None))
        self.assert_refused(ErrorCode.INVALID_REQUEST, self.join(member_id=""))
        assert self.join(0, member_id="").member_id
        self.assert_refused(ErrorCode.UNSUPPORTED_ASSIGNOR, self.join(server_assignor="mine"))

    def test_assignors_are_limited_by_the_settings(self) -> None:
        self.serve(Serving(group_consumer_assignors="range"))
        self.assert_refused(ErrorCode.UNSUPPORTED_ASSIGNOR, self.join(server_assignor="uniform"))
        assert self.join(server_assignor="range").error_code == 0

    def test_hidden_topics_are_not_assigned(self) -> None:
        """
        A client that may not describe a topic cannot name it, and no expression of its matches it.
        """
        self.serve(Serving(Denying(lambda operation, resource, name: name == "t")))
        with self.assertRaises(KafkaError) as raised:
            self.join()
        assert raised.exception.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self.successResultOf(self.serving.broker.create_topic(NewTopic("t2", 1)))
        answer = self.join(subscribed_topic_names=None, subscribed_topic_regex="t.*")
        assert answer.assignment
        assert [part.partitions for part in answer.assignment.topic_partitions] == [[0]]

    def test_permission_on_the_group_is_needed(self) -> None:
        denied = (Operation.READ, Resource.GROUP)
        self.serve(Serving(Denying(lambda operation, resource, name: (operation, resource) == denied)))
        with self.assertRaises(KafkaError) as raised:
            self.join()
        assert raised.exception.code is ErrorCode.GROUP_AUTHORIZATION_FAILED

    def test_failed_writes_are_reported(self) -> None:
        """
        The member that waits for the write gets the error.
        """
        group = empty_consumer(self.serving.parts.service(GroupCoordinator), "g")
        failing: Deferred[None] = Deferred()
        self.patch(group, "heartbeat", lambda request, client: failing)
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
        asked = self.serving.ask(consumer_group_heartbeat, request, 1)
        self.assertNoResult(asked)
        failing.errback(KafkaError(ErrorCode.NOT_COORDINATOR, "elsewhere"))
        self.assert_refused(ErrorCode.NOT_COORDINATOR, self.successResultOf(asked))
