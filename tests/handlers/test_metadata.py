"""
Metadata.
"""

from typing import Any

from twisted.internet.defer import fail
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import NewTopic, Topic
from kgateway.handlers.metadata import metadata
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO, Uuid
from tests.cluster.clusters import FAR, GONE, NEAR, OWN, hear_log, serving_among
from tests.serving import Denying, Serving

VERSIONS = range(14)
_COMING = (
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.BROKER_NOT_AVAILABLE,
)


def _named(*names: str | None, topic_id: Uuid = ZERO, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequest.Topic(name=name, topic_id=topic_id) for name in names], **more)


class MetadataTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def make(self, name: str, partitions: int = 2, **more: Any) -> Topic:
        return self.successResultOf(self.serving.parts.broker.create_topic(NewTopic(name, partitions, **more)))

    def ask(self, request: MetadataRequest, version: int = 13) -> MetadataResponse:
        response: MetadataResponse = self.successResultOf(self.serving.ask(metadata, request, version))
        return response

    def one(self, request: MetadataRequest, version: int = 13) -> MetadataResponse.Topic:
        [topic] = self.ask(request, version).topics
        return topic

    def codes(self, request: MetadataRequest, version: int = 13) -> dict[str | None, int]:
        return {topic.name: topic.error_code for topic in self.ask(request, version).topics}

    def denying(self, operation: Operation, resource: Resource, *names: str) -> None:
        """
        Deny the operation, on the resources of these names, or on all.
        """
        asked = (operation, resource)
        self.serving = Serving(Denying(lambda op, kind, name: (op, kind) == asked and name in (names or {name})))


class ClusterTests(MetadataTestCase):
    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert metadata.versions == VERSIONS

    def test_reachable_brokers_are_listed(self) -> None:
        """
        They have the addresses of the client's listener.
        """
        self.serving, _ = serving_among(NEAR, FAR)
        for version in VERSIONS:
            response = self.ask(_named(), version)
            places = [(broker.node_id, broker.host, broker.port) for broker in response.brokers]
            assert [(OWN, "127.0.0.1", 9092), (NEAR.id, "two.example", 9092)] == places, version
            racks = [broker.rack for broker in response.brokers]
            assert ([None, "rack-b"] if version >= 1 else [None, None]) == racks, version

    def test_cluster_id_and_controller_are_returned(self) -> None:
        """
        Old versions lack these fields.
        """
        for version in VERSIONS:
            response = self.ask(_named(), version)
            assert (OWN if version >= 1 else -1) == response.controller_id, version
            known = self.serving.broker.view().cluster_id if version >= 2 else None
            assert known == response.cluster_id, version
            assert response.error_code == 0, version

    def test_an_unreachable_controller_is_not_named(self) -> None:
        self.serving, broker = serving_among(FAR)
        broker.controller_id = FAR.id
        assert self.ask(_named()).controller_id == -1


class WhichTests(MetadataTestCase):
    def test_all_topics(self) -> None:
        """
        Null requests them; in v0, which has no null, an empty list does.
        """
        self.make("a")
        self.make("b")
        for version in VERSIONS:
            request = MetadataRequest(topics=None if version else [])
            assert self.codes(request, version) == {"a": 0, "b": 0}, version

    def test_no_topics(self) -> None:
        """
        From v1 on an empty list requests none.
        """
        self.make("a")
        for version in VERSIONS[1:]:
            assert self.ask(_named(), version).topics == [], version

    def test_topics_by_name(self) -> None:
        """
        Exactly the named ones are returned, in every version.
        """
        topic = self.make("a", 3)
        self.make("b")
        for version in VERSIONS:
            found = self.one(_named("a"), version)
            assert (found.error_code, found.name, found.is_internal) == (0, "a", False), version
            assert (topic.id if version >= 10 else ZERO) == found.topic_id, version
            assert [partition.partition_index for partition in found.partitions] == [0, 1, 2], version
            first = found.partitions[0]
            assert (
                first.error_code,
                first.leader_id,
                first.replica_nodes,
                first.isr_nodes,
                first.offline_replicas,
            ) == (0, OWN, [OWN], [OWN], []), version
            assert (0 if version >= 7 else -1) == first.leader_epoch, version

    def test_topics_by_id(self) -> None:
        """
        Ids are accepted from v12 on.
        """
        topic = self.make("a")
        for version in (12, 13):
            found = self.one(_named(None, topic_id=topic.id), version)
            assert (0, "a", topic.id) == (found.error_code, found.name, found.topic_id), version
            assert len(found.partitions) == 2

    def test_an_id_beats_a_name(self) -> None:
        topic = self.make("a")
        assert self.one(_named("b", topic_id=topic.id)).name == "a"

    def test_an_unknown_id_has_no_name(self) -> None:
        unknown = Uuid.random()
        for version in (12, 13):
            found = self.one(_named(None, topic_id=unknown), version)
            told = (found.error_code, found.name, found.topic_id)
            assert (ErrorCode.UNKNOWN_TOPIC_ID, None, unknown) == told, version

    def test_ids_before_v12_are_refused(self) -> None:
        """
        v10 and v11 have fields for ids and null names, but must not use them.
        """
        for version in (10, 11):
            for request in (_named(None, topic_id=Uuid.random()), _named("a", topic_id=Uuid.random()), _named(None)):
                error = self.failureResultOf(self.serving.ask(metadata, request, version), KafkaError).value
                assert error.code == ErrorCode.INVALID_REQUEST, version

    def test_a_topic_needs_name_or_id(self) -> None:
        error = self.failureResultOf(self.serving.ask(metadata, _named(None), 13), KafkaError).value
        assert error.code == ErrorCode.INVALID_REQUEST

    def test_duplicates_are_returned_once(self) -> None:
        self.make("a")
        for version in VERSIONS:
            assert len(self.ask(_named("a", "a"), version).topics) == 1, version

    def test_internal_topics_are_marked(self) -> None:
        """
        The field exists from v1 on.
        """
        self.make("__consumer_offsets", internal=True)
        for version in VERSIONS:
            for name in ("__consumer_offsets", "__transaction_state"):  # one of them exists
                assert (version >= 1) == self.one(_named(name), version).is_internal, version


class AbsentTests(MetadataTestCase):
    def test_missing_topics_are_created(self) -> None:
        """
        They are returned with their partitions at once.
        """
        for version in VERSIONS:
            request = _named(f"new-{version}", allow_auto_topic_creation=True)
            found = self.one(request, version)
            assert (found.error_code, len(found.partitions)) == (0, 4), version
            assert f"new-{version}" in self.serving.broker.view().topics

    def test_the_request_may_forbid_creation(self) -> None:
        """
        The field exists from v4 on.
        """
        for version in VERSIONS[4:]:
            request = _named("new", allow_auto_topic_creation=False)
            assert self.codes(request, version) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, version
        assert dict(self.serving.broker.view().topics) == {}

    def test_the_settings_may_forbid_creation(self) -> None:
        self.serving = Serving(auto_create_topics=False)
        for version in VERSIONS:
            request = _named("new", allow_auto_topic_creation=True)
            assert self.codes(request, version) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, version

    def test_illegal_names_have_their_own_error(self) -> None:
        """
        It does not matter whether topics may be created.
        """
        for version in VERSIONS[4:]:
            for allowed in (True, False):
                request = _named("a b", allow_auto_topic_creation=allowed)
                assert self.codes(request, version) == {"a b": ErrorCode.INVALID_TOPIC_EXCEPTION}, version

    def test_one_failed_creation_does_not_hinder_others(self) -> None:
        request = _named("a b", "a", allow_auto_topic_creation=True)
        assert self.codes(request) == {"a b": ErrorCode.INVALID_TOPIC_EXCEPTION, "a": 0}

    def test_a_concurrent_creation_wins(self) -> None:
        """
        The topic that somebody else has just created is returned.
        """
        broker = self.serving.broker
        create = broker.create_topic
        self.patch(broker, "create_topic", lambda new: create(new).addCallback(lambda _: create(new)))
        found = self.one(_named("a", allow_auto_topic_creation=True))
        assert (0, broker.view().topics["a"].id) == (found.error_code, found.topic_id)

    def test_a_topic_being_created_has_no_leader(self) -> None:
        """
        So has one whose creation takes too long: clients retry soon.
        """
        told = dict.fromkeys(_COMING, ErrorCode.LEADER_NOT_AVAILABLE)
        told[ErrorCode.INVALID_CONFIG] = ErrorCode.INVALID_CONFIG
        for code in told:
            self.patch(self.serving.broker, "create_topic", lambda _, code=code: fail(KafkaError(code, "why")))
            assert self.codes(_named("a", allow_auto_topic_creation=True)) == {"a": told[code]}

    def test_created_partitions_are_limited(self) -> None:
        """
        One request creates 10,000 at most; existing topics are returned anyhow.
        """
        self.serving = Serving(num_partitions=10_000)
        self.make("there", 4)
        codes = self.codes(_named("a", "b", "there", allow_auto_topic_creation=True))
        assert codes == {"a": 0, "b": ErrorCode.POLICY_VIOLATION, "there": 0}

    def test_the_topic_of_schema_registries(self) -> None:
        """
        It has one partition and is compacted.
        """
        assert len(self.one(_named("_schemas", allow_auto_topic_creation=True)).partitions) == 1
        config: TopicConfig = self.serving.broker.view().topics["_schemas"].config
        assert config.overrides["cleanup.policy"] == "compact"

    def test_reasons_are_remembered_with_the_topic(self) -> None:
        self.ask(_named("new", allow_auto_topic_creation=False))
        [refusal] = self.serving.context.refusals or []
        assert (refusal.subject, refusal.error.message) == ("new", "there is no topic new")

    def test_missing_replicas_cause_a_warning(self) -> None:
        """
        The settings ask for more replicas than the created topic has.
        """
        self.serving = Serving(default_replication_factor=3)
        events = hear_log(self)
        self.ask(_named("a", "a b", allow_auto_topic_creation=True))
        self.ask(_named("a", allow_auto_topic_creation=True))
        assert [event["topic"] for event in events] == ["a"]


class DeniedTests(MetadataTestCase):
    def test_hidden_topics_are_not_listed(self) -> None:
        """
        A client sees only topics that it may describe.
        """
        self.denying(Operation.DESCRIBE, Resource.TOPIC, "secret")
        self.make("secret")
        self.make("a")
        for version in VERSIONS:
            request = MetadataRequest(topics=None if version else [])
            assert self.codes(request, version) == {"a": 0}, version

    def test_hidden_names_look_unknown(self) -> None:
        """
        They are not created either.
        """
        self.denying(Operation.DESCRIBE, Resource.TOPIC, "secret", "absent")
        self.make("secret")
        for version in VERSIONS:
            for name in ("secret", "absent"):
                found = self.one(_named(name, include_topic_authorized_operations=version >= 8), version)
                told = (found.error_code, found.name, found.topic_id, found.partitions)
                assert (ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, ZERO, []) == told, version
                assert found.topic_authorized_operations == UNKNOWN_OPERATIONS, version
        assert list(self.serving.broker.view().topics) == ["secret"]

    def test_hidden_ids_have_no_name(self) -> None:
        self.denying(Operation.DESCRIBE, Resource.TOPIC)
        topic = self.make("secret")
        found = self.one(_named(None, topic_id=topic.id))
        told = (found.error_code, found.name, found.topic_id, found.partitions)
        assert (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic.id, []) == told

    def test_permission_to_create_is_needed(self) -> None:
        """
        It may be on the cluster or on the topic.
        """
        request = _named("a", allow_auto_topic_creation=True)
        self.denying(Operation.CREATE, Resource.CLUSTER)
        assert self.codes(request) == {"a": 0}
        self.denying(Operation.CREATE, Resource.TOPIC)
        assert self.codes(request) == {"a": 0}
        self.serving = Serving(Denying(lambda operation, *_: operation is Operation.CREATE))
        assert self.codes(request) == {"a": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert dict(self.serving.broker.view().topics) == {}

    def test_existing_topics_need_no_permission_to_create(self) -> None:
        self.serving = Serving(Denying(lambda operation, *_: operation is Operation.CREATE))
        self.make("a")
        assert self.codes(_named("a", allow_auto_topic_creation=True)) == {"a": 0}


class OperationTests(MetadataTestCase):
    def test_topic_operations_are_listed_on_request(self) -> None:
        """
        Unknown topics have them too.
        """
        self.denying(Operation.WRITE, Resource.TOPIC)
        self.make("a")
        bits = sum(1 << bit for bit in (3, 5, 6, 7, 8, 10, 11))
        for version in VERSIONS[8:]:
            request = _named("a", "b", include_topic_authorized_operations=True, allow_auto_topic_creation=False)
            told = [topic.topic_authorized_operations for topic in self.ask(request, version).topics]
            assert [bits, bits] == told, version
            request = MetadataRequest(topics=None, include_topic_authorized_operations=True)
            assert bits == self.one(request, version).topic_authorized_operations, version

    def test_operations_are_not_listed_by_default(self) -> None:
        self.make("a")
        response = self.ask(_named("a"), 10)
        assert response.topics[0].topic_authorized_operations == UNKNOWN_OPERATIONS
        assert response.cluster_authorized_operations == UNKNOWN_OPERATIONS

    def test_cluster_operations_are_listed_on_request(self) -> None:
        """
        v8 to v10 have them; there are none if the client may not describe the cluster.
        """
        for version in (8, 9, 10):
            request = _named(include_cluster_authorized_operations=True)
            bits = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
            assert bits == self.ask(request, version).cluster_authorized_operations, version
        self.denying(Operation.DESCRIBE, Resource.CLUSTER)
        assert self.ask(request, 10).cluster_authorized_operations == 0


class ReachTests(MetadataTestCase):
    def setUp(self) -> None:
        self.serving, self.cluster = serving_among(NEAR, FAR)
        self.make("a", 1)

    def partition(self, version: int, *replicas: int) -> MetadataResponse.Topic.Partition:
        self.cluster.owners = {"a": replicas}
        [partition] = self.one(_named("a"), version).partitions
        return partition

    def test_partitions_of_another_leader(self) -> None:
        """
        They have that node and its epoch.
        """
        for version in VERSIONS:
            partition = self.partition(version, NEAR.id, OWN)
            assert (0, NEAR.id) == (partition.error_code, partition.leader_id), version
            assert [NEAR.id, OWN] == partition.isr_nodes, version
            assert (7 if version >= 7 else -1) == partition.leader_epoch, version

    def test_a_partition_without_its_leader(self) -> None:
        """
        Its replicas on nodes outside the cluster are offline.
        """
        for version in VERSIONS[1:]:
            partition = self.partition(version, GONE, OWN)
            told = (partition.error_code, partition.leader_id, partition.replica_nodes)
            assert told == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [GONE, OWN]), version
            assert ([GONE] if version >= 5 else []) == partition.offline_replicas, version

    def test_a_leader_on_another_listener(self) -> None:
        """
        From v6 on there is an error for a leader without an address on the client's listener.
        """
        for version in VERSIONS:
            wanted = ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
            partition = self.partition(version, FAR.id)
            assert (wanted, -1) == (partition.error_code, partition.leader_id), version

    def test_unreachable_replicas_of_old_clients(self) -> None:
        """
        v0 omits them with an error; later versions leave that to the client.
        """
        partition = self.partition(0, OWN, GONE)
        assert (partition.error_code, partition.leader_id) == (ErrorCode.REPLICA_NOT_AVAILABLE, OWN)
        assert (partition.replica_nodes, partition.isr_nodes) == ([OWN], [OWN])
        for version in VERSIONS[1:]:
            partition = self.partition(version, OWN, GONE)
            assert (partition.error_code, partition.replica_nodes) == (0, [OWN, GONE]), version
