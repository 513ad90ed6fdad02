"""
FindCoordinator.
"""

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import Address, Node
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.find_coordinator import find_coordinator
from kgateway.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgateway.security.authorizer import AllowAll
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.fake_replay import FakeReplay
from tests.serving import Denying, Serving

GROUP, TRANSACTION, SHARE = 0, 1, 2
ELSEWHERE = Node(2, addresses={"plaintext": Address("two.example", 9093), "inside": Address("10.0.0.2", 9094)})
HERE = (1, "127.0.0.1", 9092)
NOWHERE = (-1, "", -1)


class FindCoordinatorTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def find(self, version: int, key: str, kind: int = GROUP) -> FindCoordinatorResponse:
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        return self.ask(request, version)

    def ask(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        response: FindCoordinatorResponse = self.successResultOf(self.serving.ask(find_coordinator, request, version))
        return response

    def assert_refused(self, code: ErrorCode, version: int, key: str, kind: int) -> None:
        """
        Check that the response has the code, no node, and the remembered reason, in the form of its version.
        """
        response = self.find(version, key, kind)
        found = response if version < 4 else response.coordinators[0]
        assert (found.error_code, (found.node_id, found.host, found.port)) == (code, NOWHERE), version
        [refusal] = self.serving.context.refusals or []
        assert (refusal.error.code, refusal.subject) == (code, key)
        assert refusal.error.message
        if version:
            assert found.error_message == refusal.error.message

    def test_a_single_key(self) -> None:
        """
        Before v4 there is one key.
        """
        for version in range(4):
            found = self.find(version, "g")
            assert (found.error_code, (found.node_id, found.host, found.port)) == (ErrorCode.NONE, HERE)

    def test_several_keys(self) -> None:
        """
        From v4 on each key has a coordinator, in the requested order.
        """
        for version in range(4, 7):
            response = self.ask(FindCoordinatorRequest(coordinator_keys=["b", "a"]), version)
            found = [(c.key, c.error_code, (c.node_id, c.host, c.port)) for c in response.coordinators]
            assert found == [("b", ErrorCode.NONE, HERE), ("a", ErrorCode.NONE, HERE)]

    def test_no_keys_have_no_coordinator(self) -> None:
        assert self.ask(FindCoordinatorRequest(coordinator_keys=[]), 4).coordinators == []

    def test_another_node_may_be_the_coordinator(self) -> None:
        """
        It has its address on the client's listener.
        """
        self.patch(self.serving.broker, "coordinator", lambda resource, key: ELSEWHERE)
        found = self.find(3, "g")
        assert (found.node_id, found.host, found.port) == (2, "two.example", 9093)

    def test_one_key_does_not_hinder_others(self) -> None:
        def some(resource: Resource, key: str) -> Node:
            if key == "lost":
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "it is moving")
            return ELSEWHERE

        self.patch(self.serving.broker, "coordinator", some)
        response = self.ask(FindCoordinatorRequest(coordinator_keys=["lost", "g"]), 4)
        assert [(c.key, c.error_code) for c in response.coordinators] == [
            ("lost", ErrorCode.COORDINATOR_NOT_AVAILABLE),
            ("g", ErrorCode.NONE),
        ]

    def test_the_empty_group_has_a_coordinator(self) -> None:
        """
        As in Kafka, old consumers without a group commit under it.
        """
        for version in find_coordinator.versions:
            response = self.find(version, "")
            found = response if version < 4 else response.coordinators[0]
            assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1), version

    def test_an_unavailable_broker_has_no_coordinator(self) -> None:
        """
        The reason does not matter.
        """

        def nowhere(resource: Resource, key: str) -> Node:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{key} is moving")

        self.patch(self.serving.broker, "coordinator", nowhere)
        for version in find_coordinator.versions:
            self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, version, "g", GROUP)

    def loading(self) -> Deferred[object]:
        """
        Start another load of the log of all groups; the returned Deferred ends it.
        """
        self.find(4, "g")
        log = self.serving.broker.coordinator(Resource.GROUP, "g")
        self.serving.parts.stop()
        self.serving.parts.services.clear()
        read: Deferred[object] = Deferred()
        self.patch(log, "replay", lambda: read)
        return read

    def test_the_response_waits_for_the_load(self) -> None:
        """
        The first lookup of a group loads it, so that the next request finds it.
        """
        for version in (3, 4):
            read = self.loading()
            request = FindCoordinatorRequest(key="g", key_type=GROUP, coordinator_keys=["g"])
            asked = self.serving.ask(find_coordinator, request, version)
            self.assertNoResult(asked)
            groups = self.serving.parts.service(GroupCoordinator)
            assert (
                self.assertRaises(KafkaError, groups.entry_or_new, "g").code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            )
            read.callback(FakeReplay([]))
            response = self.successResultOf(asked)
            found = response.coordinators[0] if version == 4 else response
            assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
            assert groups.entry_or_new("g")

    def test_the_wait_is_limited(self) -> None:
        """
        After a second the group is still loading.
        """
        self.loading()
        asked = self.serving.ask(find_coordinator, FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        self.serving.clock.advance(0.9)
        self.assertNoResult(asked)
        self.serving.clock.advance(0.1)
        assert self.successResultOf(asked).coordinators[0].error_code == ErrorCode.NONE

    def test_other_lookups_do_not_wait(self) -> None:
        """
        Refusals and transactional ids are answered while groups are loaded.
        """
        self.loading()
        self.serving.parts.authorizer = Denying()
        denied = self.find(4, "g").coordinators[0]
        assert denied.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        self.serving.parts.authorizer = AllowAll()
        assert self.find(4, "g", TRANSACTION).coordinators[0].error_code == ErrorCode.NONE

    def test_a_broker_without_transactions(self) -> None:
        """
        It says so in a way that clients do not retry.
        """

        def never(resource: Resource, key: str) -> Node:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "there are none")

        self.patch(self.serving.broker, "coordinator", never)
        for version in range(1, 7):
            self.assert_refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, version, "t", TRANSACTION)

    def test_transactional_ids_have_a_coordinator(self) -> None:
        """
        Their state is separate.
        """
        asked: list[tuple[Resource, str]] = []

        def coordinator(resource: Resource, key: str) -> Node:
            asked.append((resource, key))
            return ELSEWHERE

        self.patch(self.serving.broker, "coordinator", coordinator)
        assert self.find(1, "t", TRANSACTION).node_id == 2
        assert asked == [(Resource.TRANSACTIONAL_ID, "t")]

    def test_other_key_types_are_refused(self) -> None:
        """
        They are share groups and unknown types.
        """
        for version in range(1, 7):
            for kind in (SHARE, 3, -1):
                self.assert_refused(ErrorCode.INVALID_REQUEST, version, "g", kind)

    def test_permission_is_needed(self) -> None:
        """
        Without DESCRIBE the client does not learn the coordinator; other keys are answered.
        """

        def secret(operation: Operation, resource: Resource, name: str) -> bool:
            return name == "secret"

        authorizer = Denying(secret)
        self.serving = Serving(authorizer)
        for kind, resource in ((GROUP, Resource.GROUP), (TRANSACTION, Resource.TRANSACTIONAL_ID)):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["secret", "g"])
            codes = [coordinator.error_code for coordinator in self.ask(request, 4).coordinators]
            assert codes == [ErrorCode[f"{resource.name}_AUTHORIZATION_FAILED"], ErrorCode.NONE]
            wanted = [(Operation.DESCRIBE, resource, "secret"), (Operation.DESCRIBE, resource, "g")]
            assert authorizer.asked[-2:] == wanted
