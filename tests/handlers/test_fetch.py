"""
Fetch.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import Aborted, EpochEnd, Isolation
from kgateway.handlers.fetch import fetch
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.records.compression import Codec
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ONE, ZERO, Uuid
from tests.cluster.clusters import NEAR
from tests.fetch.rigged_broker import RiggedPartition, batch, rigged
from tests.serving import Denying

VERSIONS = range(4, 19)
SESSIONS = range(7, 19)
SIZE = len(batch())
PLENTY = 1 << 20

OF_PARTITION = {"current_leader_epoch", "last_fetched_epoch", "partition_max_bytes"}

Answer = FetchResponse.Response.Partition
Asked = FetchRequest.Topic.Partition


class FetchTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serve()

    def serve(self, **settings: Any) -> None:
        self.serving, self.broker = rigged(NEAR, **settings)
        self.partitions = self.broker.make(partitions=2)

    @property
    def topic_id(self) -> Uuid:
        return self.broker.view().topics["orders"].id

    def deny(self, operation: Operation, resource: Resource) -> Denying:
        authorizer = Denying(lambda op, kind, _: (op, kind) == (operation, resource))
        self.serving.parts.authorizer = authorizer
        return authorizer

    def request(
        self, *offsets: int, name: str = "orders", topic_id: Uuid | None = None, first: int = 0, **more: Any
    ) -> FetchRequest:
        """
        A fetch from these offsets of partitions 0, 1, and so on; sequences of values are one for each partition.
        """
        values: dict[str, Any] = {"max_wait_ms": 500, "min_bytes": 1, **more}
        of_partition = {key: values.pop(key) for key in OF_PARTITION & values.keys()}
        asked = [
            Asked(**{"partition": index, "fetch_offset": offset, "partition_max_bytes": PLENTY, **of_partition})
            for index, offset in enumerate(offsets, first)
        ]
        topics = [FetchRequest.Topic(topic=name, topic_id=topic_id or self.topic_id, partitions=asked)]
        return FetchRequest(**{"topics": topics if asked else [], **values})

    def start(self, request: FetchRequest, version: int = 18) -> Deferred[FetchResponse]:
        return self.serving.ask(fetch, request, version)

    def ask(self, request: FetchRequest, version: int = 18) -> FetchResponse:
        response: FetchResponse = self.successResultOf(self.start(request, version))
        return response

    def one(self, request: FetchRequest, version: int = 18) -> Answer:
        """
        The answer for the single partition.
        """
        [topic] = self.ask(request, version).responses
        [answer] = topic.partitions
        return answer

    def code(self, *offsets: int, version: int = 18, **more: Any) -> int:
        """
        The error of a partition, whose answer has no offsets of the log.
        """
        answer = self.one(self.request(*(offsets or (0,)), **more), version)
        log = (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset, data(answer))
        self.assertEqual((-1, -1, -1, b""), log, version)
        return answer.error_code


def data(answer: Answer) -> bytes:
    assert isinstance(answer.records, memoryview | bytes)
    return bytes(answer.records)


class ReadTests(FetchTestCase):
    def test_all_versions_are_served(self) -> None:
        """
        They are advertised.
        """
        self.assertEqual((range(19), range(19)), (fetch.versions, fetch.advertised))

    def test_a_fetch_is_a_poll(self) -> None:
        """
        The gateway may cut its wait short.
        """
        self.assertTrue(fetch.polls)

    def test_available_records_are_returned_at_once(self) -> None:
        """
        The response has the log start and the ends.
        """
        self.partitions[0].put(batch(b"a", count=2), batch(b"b"))
        for version in VERSIONS:
            answer = self.one(self.request(2), version)
            self.assertEqual((0, ErrorCode.NONE), (answer.partition_index, answer.error_code), version)
            self.assertEqual((3, 3), (answer.high_watermark, answer.last_stable_offset), version)
            self.assertEqual(0 if version >= 5 else -1, answer.log_start_offset, version)
            self.assertEqual(-1, answer.preferred_read_replica, version)
            self.assertEqual(batch(b"b")[16:], data(answer)[16:], version)

    def test_topics_are_answered_as_requested(self) -> None:
        """
        They have their name, and from v13 on their id.
        """
        self.partitions[0].put(batch())
        for version in VERSIONS:
            [topic] = self.ask(self.request(0), version).responses
            known = ("", self.topic_id) if version >= 13 else ("orders", ZERO)
            self.assertEqual(known, (topic.topic, topic.topic_id), version)

    def test_the_order_of_partitions_is_kept(self) -> None:
        """
        Those of a topic are answered together.
        """
        self.broker.make("other")
        request = self.request(0, 0, max_wait_ms=0)
        request.topics += self.request(0, name="other", topic_id=self.broker.view().topics["other"].id).topics
        request.topics[0].partitions.reverse()
        for version in (12, 18):
            response = self.ask(request, version)
            told = [[answer.partition_index for answer in topic.partitions] for topic in response.responses]
            self.assertEqual([[1, 0], [0]], told, version)

    def test_sizes_are_limited(self) -> None:
        """
        The client limits each partition and the whole response, and the gateway limits the whole response too.
        """
        for partition in self.partitions:
            partition.put(*[batch()] * 20)

        def sizes(**limits: Any) -> list[int]:
            [topic] = self.ask(self.request(0, 0, **limits)).responses
            return [len(data(answer)) // SIZE for answer in topic.partitions]

        self.assertEqual([20, 20], sizes())
        self.assertEqual([2, 2], sizes(partition_max_bytes=2 * SIZE))
        self.assertEqual([3, 0], sizes(max_bytes=3 * SIZE))
        self.assertEqual([1, 0], sizes(max_bytes=1))
        self.serve(fetch_max_bytes=1024)
        self.partitions[0].put(*[batch()] * 20)
        self.assertEqual([1024 // SIZE, 0], sizes())

    def test_the_gateway_limit_ends_the_wait(self) -> None:
        """
        A client may wait for more bytes than the gateway returns.
        """
        self.serve(fetch_max_bytes=1024)
        self.partitions[0].put(*[batch(b"x" * 1024)] * 2)
        self.assertEqual(ErrorCode.NONE, self.one(self.request(0, min_bytes=PLENTY)).error_code)


class IsolationTests(FetchTestCase):
    def test_isolation_levels(self) -> None:
        """
        With read_committed the list of aborted transactions is there, even if empty; otherwise it is null.
        """
        self.partitions[0].put(batch(count=3))
        self.partitions[0].stable = 2
        for version in VERSIONS:
            answer = self.one(self.request(0), version)
            self.assertEqual(
                (3, 2, None), (answer.high_watermark, answer.last_stable_offset, answer.aborted_transactions)
            )
            self.assertEqual([], self.one(self.request(0, isolation_level=1), version).aborted_transactions, version)
        levels = [isolation for _, _, isolation, _ in self.partitions[0].reads[:2]]
        self.assertEqual([Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED], levels)

    def test_aborted_transactions_are_listed(self) -> None:
        """
        They have their producer and first offset.
        """
        self.partitions[0].put(batch())
        self.partitions[0].aborted = [Aborted(7, 0)]
        aborted = self.one(self.request(0, isolation_level=1)).aborted_transactions or []
        self.assertEqual([(7, 0)], [(one.producer_id, one.first_offset) for one in aborted])

    def test_unknown_isolation_levels_are_refused(self) -> None:
        with self.assertRaises(KafkaError) as caught:
            self.start(self.request(0, isolation_level=2))
        self.assertEqual(ErrorCode.INVALID_REQUEST, caught.exception.code)


class RefusalTests(FetchTestCase):
    def test_unknown_topics_are_refused(self) -> None:
        """
        They have their name or their id.
        """
        for version in VERSIONS:
            expected = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self.assertEqual(expected, self.code(name="missing", topic_id=ONE, version=version), version)

    def test_unknown_partitions_are_refused(self) -> None:
        for version in VERSIONS:
            code = self.code(first=2, version=version)
            self.assertEqual(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, code, version)

    def test_permission_is_needed(self) -> None:
        """
        Without READ existing and unknown names look alike.
        """
        self.partitions[0].put(batch())
        self.deny(Operation.READ, Resource.TOPIC)
        for version in VERSIONS:
            self.assertEqual(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.code(version=version), version)
        self.assertEqual(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.code(name="missing", version=12))

    def test_permission_is_checked_once(self) -> None:
        """
        A topic is checked once, however many partitions it has and however often they are polled.
        """
        authorizer = self.deny(Operation.WRITE, Resource.TOPIC)
        self.start(self.request(0, 0))
        self.partitions[0].move()
        self.serving.clock.advance(0)
        self.assertEqual(2, len(self.partitions[0].reads))
        self.assertEqual([(Operation.READ, Resource.TOPIC, "orders")], authorizer.asked)

    def test_offsets_outside_the_log_are_refused(self) -> None:
        self.partitions[0].put(batch())
        for version in VERSIONS:
            self.assertEqual(ErrorCode.OFFSET_OUT_OF_RANGE, self.code(2, version=version), version)

    def test_leader_epochs_are_checked(self) -> None:
        """
        From v9 on a client with another leader epoch is refused; one without is not.
        """
        self.partitions[0].put(batch())
        self.partitions[0].leader_epoch = 5
        for version in range(9, 19):
            code = self.code(current_leader_epoch=4, version=version)
            self.assertEqual(ErrorCode.FENCED_LEADER_EPOCH, code, version)
            code = self.code(current_leader_epoch=6, version=version)
            self.assertEqual(ErrorCode.UNKNOWN_LEADER_EPOCH, code, version)
            for epoch in (5, -1):
                answer = self.one(self.request(0, current_leader_epoch=epoch), version)
                self.assertEqual(ErrorCode.NONE, answer.error_code, version)

    def test_the_current_leader_is_returned(self) -> None:
        """
        From v16 on a client that asks the wrong node, or has an old leader epoch, learns the leader and its address.
        """
        self.broker.failing[0] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "ask node 2")
        self.partitions[1].leader_epoch = 8
        self.broker.owners["orders"] = (NEAR.id,)
        for version in VERSIONS:
            response = self.ask(self.request(0, 0, current_leader_epoch=7), version)
            answers = response.responses[0].partitions
            fenced = ErrorCode.FENCED_LEADER_EPOCH if version >= 9 else ErrorCode.NONE
            self.assertEqual(
                [ErrorCode.NOT_LEADER_OR_FOLLOWER, fenced], [answer.error_code for answer in answers], version
            )
            leaders = [
                one.current_leader and (one.current_leader.leader_id, one.current_leader.leader_epoch)
                for one in answers
            ]
            nodes = [(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
            told: tuple[Any, Any] = ([None, None], [])
            if version >= 16:
                told = ([(2, 7), (2, 7)], [(2, "two.example", 9092, "rack-b")])
            self.assertEqual(told, (leaders, nodes), version)

    def test_other_errors_name_no_leader(self) -> None:
        self.assertIsNone(self.one(self.request(9)).current_leader)

    def test_storage_errors_of_old_versions(self) -> None:
        """
        KAFKA_STORAGE_ERROR exists from v6 on; older clients get a code that makes them retry.
        """
        self.broker.failing[0] = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left")
        for version in VERSIONS:
            expected = ErrorCode.KAFKA_STORAGE_ERROR if version >= 6 else ErrorCode.NOT_LEADER_OR_FOLLOWER
            self.assertEqual(expected, self.code(version=version), version)

    def test_zstd_batches_are_returned(self) -> None:
        """
        They are sent to all clients that know batches, if producers compressed them.
        """
        self.partitions[0].put(batch(b"x" * 100, codec=Codec.ZSTD))
        for version in VERSIONS:
            self.assertTrue(data(self.one(self.request(0), version)), version)

    def test_followers_are_refused(self) -> None:
        """
        Either field may name the replica.
        """
        self.partitions[0].put(batch())
        for version in VERSIONS:
            more: dict[str, Any] = {"replica_id": 3}
            if version >= 15:
                more = {"replica_state": FetchRequest.ReplicaState(replica_id=3)}
            self.assertEqual(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.code(version=version, **more), version)
            if version >= 9:
                code = self.code(version=version, current_leader_epoch=0, **more)
                self.assertEqual(ErrorCode.UNKNOWN_LEADER_EPOCH, code, version)

    def test_an_error_does_not_affect_other_partitions(self) -> None:
        """
        It is answered at once.
        """
        self.partitions[1].put(batch())
        [topic] = self.ask(self.request(9, 0, min_bytes=PLENTY)).responses
        codes = [answer.error_code for answer in topic.partitions]
        self.assertEqual([ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NONE], codes)
        self.assertEqual(SIZE, len(data(topic.partitions[1])))

    def test_reasons_are_remembered_with_the_partition(self) -> None:
        self.code(9)
        [refusal] = self.serving.context.refusals or []
        self.assertEqual(("orders-0", ErrorCode.OFFSET_OUT_OF_RANGE), (refusal.subject, refusal.error.code))


class Epochs(RiggedPartition):
    """
    Epoch 3 ends at offset 2, and epoch 5 at the log end.
    """

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        if leader_epoch < 3:
            return None
        return EpochEnd(3, 2) if leader_epoch < 5 else EpochEnd(5, self.log_end)


class DivergenceTests(FetchTestCase):
    def setUp(self) -> None:
        super().setUp()
        view = self.broker.view()
        self.partition = Epochs(view.topics["orders"], 0)
        self.broker.rigged[self.topic_id, 0] = self.partition
        self.partition.put(*[batch()] * 4)

    def diverging(self, offset: int, epoch: int, version: int = 18) -> tuple[int, int] | None:
        answer = self.one(self.request(offset, last_fetched_epoch=epoch, max_wait_ms=0), version)
        self.assertEqual((ErrorCode.NONE, 4), (answer.error_code, answer.high_watermark))
        if answer.diverging_epoch is None:
            return None
        self.assertEqual(b"", data(answer))
        return answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset

    def test_a_client_with_the_same_log_gets_records(self) -> None:
        self.assertEqual([None, None, None], [self.diverging(2, 3), self.diverging(4, 5), self.diverging(1, 5)])

    def test_an_epoch_that_ended_earlier_diverges(self) -> None:
        """
        A client that has read more of an epoch than the log has learns its end.
        """
        for version in range(12, 19):
            self.assertEqual((3, 2), self.diverging(3, 3, version), version)

    def test_an_epoch_that_never_was_diverges(self) -> None:
        """
        The client learns the epoch before it, and its end.
        """
        self.assertEqual((3, 2), self.diverging(1, 4))

    def test_a_divergence_is_answered_at_once(self) -> None:
        self.assertIsNotNone(self.one(self.request(3, last_fetched_epoch=3)).diverging_epoch)

    def test_unknown_epochs_are_out_of_range(self) -> None:
        """
        So are offsets below the log start.
        """
        self.assertEqual(ErrorCode.OFFSET_OUT_OF_RANGE, self.code(3, last_fetched_epoch=2))
        self.partition.log_start = 3
        self.assertEqual(ErrorCode.OFFSET_OUT_OF_RANGE, self.code(2, last_fetched_epoch=4))


class WaitTests(FetchTestCase):
    def test_a_fetch_waits_for_bytes(self) -> None:
        for version in VERSIONS:
            offset = self.partitions[0].log_end
            result = self.start(self.request(offset), version)
            self.assertNoResult(result)
            self.partitions[0].put(batch())
            self.serving.clock.advance(0)
            [answer] = self.successResultOf(result).responses[0].partitions
            self.assertEqual((SIZE, offset + 1), (len(data(answer)), answer.high_watermark), version)

    def test_a_wait_ends_with_an_empty_response(self) -> None:
        """
        The client limits the time.
        """
        result = self.start(self.request(0, max_wait_ms=300))
        self.serving.clock.advance(0.299)
        self.assertNoResult(result)
        self.serving.clock.advance(0.001)
        [answer] = self.successResultOf(result).responses[0].partitions
        self.assertEqual((ErrorCode.NONE, b""), (answer.error_code, data(answer)))

    def test_some_fetches_do_not_wait(self) -> None:
        """
        They have no time, want no bytes, or name no partition.
        """
        for request in (
            self.request(0, max_wait_ms=0),
            self.request(0, max_wait_ms=-1),
            self.request(0, min_bytes=0),
            self.request(),
        ):
            self.ask(request)
        self.assertEqual([], self.serving.clock.getDelayedCalls())

    def test_slow_reads_are_waited_for(self) -> None:
        """
        A reader of cold data would otherwise make no progress, even if it does not wait for bytes.
        """
        self.partitions[0].put(batch())
        self.partitions[0].cold = True
        for max_wait_ms in (0, -1, -(1 << 31)):
            result = self.start(self.request(0, max_wait_ms=max_wait_ms))
            [end] = self.serving.clock.getDelayedCalls()
            self.assertEqual(self.serving.clock.seconds(), end.getTime())  # a reactor refuses times in the past
            self.serving.clock.advance(0)
            self.assertNoResult(result)
            self.partitions[0].arrive()
            [answer] = self.successResultOf(result).responses[0].partitions
            self.assertEqual(SIZE, len(data(answer)))

    def test_reads_have_the_deadline_of_the_client(self) -> None:
        """
        Cold reads have a moment in any case.
        """
        for max_wait_ms, wait_s in ((300, 0.3), (0, 0.02), (5, 0.02), (-1, 0.02)):
            self.start(self.request(0, max_wait_ms=max_wait_ms))
            self.assertEqual(self.serving.clock.seconds() + wait_s, self.partitions[0].due, max_wait_ms)
            self.serving.clock.advance(1)

    def test_later_reads_have_the_same_deadline(self) -> None:
        self.start(self.request(0, max_wait_ms=300, min_bytes=PLENTY))
        due = self.partitions[0].due
        self.serving.clock.advance(0.1)
        self.partitions[0].put(batch())
        self.serving.clock.advance(0.1)
        self.assertEqual((2, due), (len(self.partitions[0].reads), self.partitions[0].due))

    def test_a_cancelled_wait_returns_available_records(self) -> None:
        """
        It leaves nothing behind.
        """
        self.partitions[1].put(batch())
        result = self.start(self.request(0, 0, min_bytes=PLENTY))
        self.assertEqual([1, 1], [partition.watchers for partition in self.partitions])
        result.cancel()
        answers = self.successResultOf(result).responses[0].partitions
        self.assertEqual([0, SIZE], [len(data(answer)) for answer in answers])
        self.assertEqual([0, 0], [partition.watchers for partition in self.partitions])
        self.assertEqual([], self.serving.clock.getDelayedCalls())

    def test_deletion_ends_the_wait(self) -> None:
        """
        The response has the name known before.
        """
        for version in VERSIONS:
            result = self.start(self.request(0), version)
            self.broker.remove()
            self.serving.clock.advance(0)
            [answer] = self.successResultOf(result).responses[0].partitions
            self.assertEqual(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, answer.error_code, version)
            self.partitions = self.broker.make(partitions=2)

    def test_recreation_ends_the_wait(self) -> None:
        """
        A client that reads by id learns that the name has another id.
        """
        result = self.start(self.request(0))
        self.broker.remove()
        self.broker.make()
        self.serving.clock.advance(0)
        [answer] = self.successResultOf(result).responses[0].partitions
        self.assertEqual(ErrorCode.INCONSISTENT_TOPIC_ID, answer.error_code)


class SessionTests(FetchTestCase):
    def open(self, *offsets: int, version: int = 18) -> int:
        response = self.ask(self.request(*offsets, session_epoch=0, max_wait_ms=0), version)
        self.assertNotEqual(0, response.session_id)
        return response.session_id

    def next(self, session_id: int, epoch: int, *offsets: int, version: int = 18, **more: Any) -> FetchResponse:
        more = {"max_wait_ms": 0, **more}
        return self.ask(self.request(*offsets, session_id=session_id, session_epoch=epoch, **more), version)

    def told(self, response: FetchResponse) -> list[int]:
        return [answer.partition_index for topic in response.responses for answer in topic.partitions]

    def test_sessions_are_optional(self) -> None:
        for version in VERSIONS:
            self.assertEqual(0, self.ask(self.request(0, max_wait_ms=0), version).session_id, version)

    def test_a_session_returns_changes_only(self) -> None:
        """
        Partitions without news are left out.
        """
        for version in SESSIONS:
            ends = [partition.log_end for partition in self.partitions]
            session_id = self.open(*ends, version=version)
            self.assertEqual([], self.told(self.next(session_id, 1, version=version)), version)
            self.partitions[1].put(batch())
            response = self.next(session_id, 2, version=version)
            self.assertEqual(([1], session_id), (self.told(response), response.session_id), version)

    def test_an_empty_fetch_waits_for_the_whole_session(self) -> None:
        session_id = self.open(0, 0)
        result = self.start(self.request(session_id=session_id, session_epoch=1))
        self.assertNoResult(result)
        self.partitions[1].put(batch())
        self.serving.clock.advance(0)
        self.assertEqual([1], self.told(self.successResultOf(result)))

    def test_a_disconnected_client_opens_no_session(self) -> None:
        """
        No other session is evicted for a client that left during its first fetch.
        """
        self.serve(fetch_sessions=1)
        result = self.start(self.request(0, session_epoch=0))
        self.serving.session.connected = False
        result.cancel()
        self.assertEqual(0, self.successResultOf(result).session_id)
        self.serving.session.connected = True
        self.open(0)

    def test_a_refused_fetch_keeps_its_session(self) -> None:
        session_id = self.open(0)
        wrong = self.request(session_id=session_id, session_epoch=1, isolation_level=5)
        self.assertRaises(KafkaError, self.start, wrong)
        self.assertEqual(ErrorCode.NONE, self.next(session_id, 1).error_code)

    def test_partitions_rotate(self) -> None:
        """
        A partition that had records comes last the next time, so that none starves.
        """
        for partition in self.partitions:
            partition.put(batch())
        session_id = self.open(0, 0)
        told = [self.told(self.next(session_id, epoch, max_bytes=SIZE)) for epoch in (1, 2, 3)]
        self.assertEqual([[0], [1], [0]], told)

    def test_the_order_between_topics_is_kept(self) -> None:
        """
        A topic is listed twice if partitions of another one come in between.
        """
        [other] = self.broker.make("other")
        request = self.request(0, session_epoch=0, max_wait_ms=0)
        request.topics += self.request(0, name="other", topic_id=other.topic.id).topics
        request.topics += self.request(0, first=1).topics
        response = self.ask(request)
        ids = [topic.topic_id for topic in response.responses]
        self.assertEqual([self.topic_id, other.topic.id, self.topic_id], ids)

    def test_unknown_sessions_and_epochs_are_refused(self) -> None:
        """
        The error is that of the whole response.
        """
        for version in SESSIONS:
            session_id = self.open(0, version=version)
            for named, epoch, code in (
                (session_id, 5, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
                (0, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            ):
                response = self.next(named, epoch, version=version)
                self.assertEqual((code, 0, []), (response.error_code, response.session_id, response.responses))

    def test_an_overtaken_fetch_is_refused(self) -> None:
        """
        Its session has continued while it waited.
        """
        session_id = self.open(0)
        result = self.start(self.request(session_id=session_id, session_epoch=1))
        self.next(session_id, 2)
        self.serving.clock.advance(1)
        self.assertEqual(ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.successResultOf(result).error_code)

    def test_a_session_keeps_names_or_ids(self) -> None:
        session_id = self.open(0, version=12)
        self.assertEqual(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, self.next(session_id, 1).error_code)

    def test_a_recreated_topic_in_a_session(self) -> None:
        """
        By name it is read on; by id it is another topic.
        """
        for version in SESSIONS:
            session_id = self.open(0, version=version)
            self.broker.remove()
            self.partitions = self.broker.make(partitions=2)
            self.partitions[0].put(batch())
            [topic] = self.next(session_id, 1, version=version).responses
            expected = ErrorCode.INCONSISTENT_TOPIC_ID if version >= 13 else ErrorCode.NONE
            self.assertEqual(expected, topic.partitions[0].error_code, version)

    def test_unknown_ids_have_an_error_each_time(self) -> None:
        session_id = self.ask(self.request(0, topic_id=ONE, session_epoch=0)).session_id
        for epoch in (1, 2):
            [topic] = self.next(session_id, epoch).responses
            self.assertEqual(ErrorCode.UNKNOWN_TOPIC_ID, topic.partitions[0].error_code)

    def test_a_full_cache_opens_no_session(self) -> None:
        """
        The response is complete.
        """
        self.serve(fetch_sessions=0)
        response = self.ask(self.request(0, 0, session_epoch=0, max_wait_ms=0))
        self.assertEqual((0, [0, 1]), (response.session_id, self.told(response)))
