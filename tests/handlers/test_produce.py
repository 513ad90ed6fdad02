"""
Produce.
"""

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.memory import MemoryPartition
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Isolation
from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.handlers.produce import produce
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import TimestampType
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ONE, ZERO, Uuid
from tests.cluster.clusters import NEAR
from tests.fetch.rigged_broker import batch, rigged
from tests.records.crc_batches import sealed, three
from tests.records.values import built
from tests.serving import START_MS, Denying

VERSIONS = range(3, 14)
PLENTY = 1 << 20
LEGACY = bytes(16) + b"\1" + bytes(60)  # a message set by its magic

PartitionData = ProduceRequest.TopicData.PartitionData
Answer = ProduceResponse.Response.PartitionResponse


class ProduceTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving, self.broker = rigged(NEAR)
        self.partitions = self.broker.make(partitions=2)

    @property
    def topic(self) -> Topic:
        return self.broker.view().topics["orders"]

    def deny(self, operation: Operation, resource: Resource) -> Denying:
        authorizer = Denying(lambda op, kind, _: (op, kind) == (operation, resource))
        self.serving.parts.authorizer = authorizer
        return authorizer

    def request(
        self, *records: bytes | None, name: str = "orders", topic_id: Uuid | None = None, first: int = 0, **more: Any
    ) -> ProduceRequest:
        """
        Records for partition 0, 1, and so on.
        """
        data = [PartitionData(index=index, records=one) for index, one in enumerate(records, first)]
        topic = ProduceRequest.TopicData(name=name, topic_id=topic_id or self.topic.id, partition_data=data)
        return ProduceRequest(**{"acks": -1, "timeout_ms": 5_000, "topic_data": [topic], **more})

    def start(self, request: ProduceRequest, version: int = 13) -> Deferred[ProduceResponse]:
        return self.serving.ask(produce, request, version)

    def ask(self, request: ProduceRequest, version: int = 13) -> list[Answer]:
        """
        The answers for the partitions of the one topic.
        """
        return self.answers(self.start(request, version))

    def answers(self, result: Deferred[ProduceResponse]) -> list[Answer]:
        [topic] = self.successResultOf(result).responses
        return topic.partition_responses

    def code(self, *records: bytes | None, version: int = 13, **more: Any) -> int:
        [answer] = self.ask(self.request(*records, **more), version)
        self.assertEqual((-1, []), (answer.base_offset, answer.record_errors))
        return answer.error_code

    def refused_whole(self, request: ProduceRequest, version: int = 13) -> ErrorCode:
        with self.assertRaises(KafkaError) as caught:
            self.start(request, version)
        code: ErrorCode = caught.exception.code
        return code

    def stored(self, index: int = 0) -> list[bytes]:
        found = MemoryPartition.read(self.partitions[index], 0, PLENTY, Isolation.READ_UNCOMMITTED, True)
        return [bytes(one) for one in found.batches]


class AppendTests(ProduceTestCase):
    def test_all_versions_are_served(self) -> None:
        """
        They are advertised.
        """
        self.assertEqual((range(14), range(14)), (produce.versions, produce.advertised))

    def test_the_next_request_may_start(self) -> None:
        """
        It need not wait for the response.
        """
        self.assertTrue(produce.overlaps)

    def test_a_batch_is_stored_unchanged(self) -> None:
        """
        It is appended to its partition.
        """
        for count, version in enumerate(VERSIONS):
            [answer] = self.ask(self.request(batch(b"%d" % version)), version)
            self.assertEqual((0, ErrorCode.NONE, count), (answer.index, answer.error_code, answer.base_offset), version)
            self.assertEqual(batch(b"%d" % version)[16:], self.stored()[-1][16:], version)

    def test_partitions_know_the_client_id(self) -> None:
        """
        This holds even after a check of single records.
        """
        self.partitions = [
            *self.broker.make("plain"),
            *self.broker.make("bounded", config=TopicConfig(timestamp_before_max_ms=5)),
        ]
        for name in ("plain", "bounded"):
            self.ask(self.request(batch(), topic_id=self.broker.view().topics[name].id))
        client_id = self.serving.context.client_id
        self.assertTrue(client_id)
        self.assertEqual([[client_id], [client_id]], [partition.client_ids for partition in self.partitions])

    def test_topics_are_answered_as_requested(self) -> None:
        """
        They have their name, and from v13 on their id.
        """
        for version in VERSIONS:
            [topic] = self.successResultOf(self.start(self.request(batch()), version)).responses
            known = ("", self.topic.id) if version >= 13 else ("orders", ZERO)
            self.assertEqual(known, (topic.name, topic.topic_id), version)

    def test_each_partition_has_its_own_answer(self) -> None:
        answers = self.ask(self.request(batch(b"0"), batch(b"1", count=3)))
        self.assertEqual([(0, 0), (1, 0)], [(answer.index, answer.base_offset) for answer in answers])
        self.assertEqual([1, 3], [partition.log_end for partition in self.partitions])

    def test_log_start_is_returned(self) -> None:
        """
        The field exists from v5 on.
        """
        self.partitions[0].log_start = 0
        self.ask(self.request(batch()))
        self.partitions[0].log_start = 1
        for version in VERSIONS:
            [answer] = self.ask(self.request(batch()), version)
            self.assertEqual(1 if version >= 5 else -1, answer.log_start_offset, version)

    def test_log_append_time_is_returned(self) -> None:
        """
        Without LogAppendTime it is -1.
        """
        self.assertEqual(-1, self.ask(self.request(batch()))[0].log_append_time_ms)
        self.broker.make("stamped", config=TopicConfig(timestamp_type=TimestampType.LOG_APPEND_TIME))
        topic_id = self.broker.view().topics["stamped"].id
        for version in VERSIONS:
            [answer] = self.ask(self.request(batch(), name="stamped", topic_id=topic_id), version)
            self.assertEqual(START_MS, answer.log_append_time_ms, version)


class FindingTests(ProduceTestCase):
    def test_unknown_topics_are_refused(self) -> None:
        """
        They have their name, or their id if that was sent.
        """
        for version in VERSIONS:
            expected = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            code = self.code(batch(), name="missing", topic_id=ONE, version=version)
            self.assertEqual(expected, code, version)
        self.assertNotIn("missing", self.broker.view().topics)

    def test_unknown_partitions_do_not_hinder_others(self) -> None:
        answers = self.ask(self.request(batch(), batch(), first=1))
        codes = [answer.error_code for answer in answers]
        self.assertEqual([ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], codes)
        self.assertEqual(1, self.partitions[1].log_end)

    def test_clients_cannot_write_internal_topics(self) -> None:
        """
        Kafka's own tools may, by their client id.
        """
        [partition] = self.broker.make("__state", internal=True)
        request = self.request(batch(), name="__state", topic_id=partition.topic.id)
        self.assertEqual(ErrorCode.INVALID_TOPIC_EXCEPTION, self.ask(request)[0].error_code)
        self.assertEqual(0, partition.log_end)
        admin = Context(self.serving.parts, self.serving.session, 13, "__admin_client")
        response = produce.handle(request, admin)
        assert isinstance(response, ProduceResponse)
        self.assertEqual(ErrorCode.NONE, response.responses[0].partition_responses[0].error_code)

    def test_the_current_leader_is_returned(self) -> None:
        """
        From v10 on a client that writes to the wrong node learns the leader and its address.
        """
        self.broker.failing[1] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "ask node 2")
        self.broker.owners["orders"] = (NEAR.id,)
        for version in VERSIONS:
            response = self.successResultOf(self.start(self.request(batch(), batch()), version))
            [here, there] = response.responses[0].partition_responses
            self.assertEqual(ErrorCode.NOT_LEADER_OR_FOLLOWER, there.error_code, version)
            self.assertIsNone(here.current_leader, version)
            leader = there.current_leader and (there.current_leader.leader_id, there.current_leader.leader_epoch)
            nodes = [(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
            told = ((2, 7), [(2, "two.example", 9092, "rack-b")]) if version >= 10 else (None, [])
            self.assertEqual(told, (leader, nodes), version)

    def test_an_unknown_leader_has_no_address(self) -> None:
        """
        It is no node of the cluster.
        """
        self.broker.failing[0] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "ask node 9")
        self.broker.owners["orders"] = (9,)
        response = self.successResultOf(self.start(self.request(batch())))
        [answer] = response.responses[0].partition_responses
        assert answer.current_leader
        self.assertEqual((9, []), (answer.current_leader.leader_id, response.node_endpoints))

    def test_a_partition_outside_the_view_has_no_leader(self) -> None:
        for index in (2, -1):
            self.broker.failing[index] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "it is new")
            self.assertIsNone(self.ask(self.request(batch(), first=index))[0].current_leader)


class PermissionTests(ProduceTestCase):
    def test_permission_is_checked_once_for_each_topic(self) -> None:
        authorizer = self.deny(Operation.READ, Resource.TOPIC)
        self.ask(self.request(batch(), batch()))
        self.assertEqual([(Operation.WRITE, Resource.TOPIC, "orders")], authorizer.asked)

    def test_permission_is_needed(self) -> None:
        """
        Without WRITE existing and unknown names look alike.
        """
        self.deny(Operation.WRITE, Resource.TOPIC)
        for version in VERSIONS:
            self.assertEqual(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.code(batch(), version=version), version)
        self.assertEqual(0, self.partitions[0].log_end)
        self.assertEqual(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.code(batch(), name="missing", version=12))

    def test_permission_on_the_transactional_id_is_needed(self) -> None:
        """
        Without WRITE on it the whole request is refused.
        """
        self.deny(Operation.WRITE, Resource.TRANSACTIONAL_ID)
        code = self.refused_whole(self.request(batch(), transactional_id="tx"))
        self.assertEqual(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, code)
        self.assertEqual(0, self.partitions[0].log_end)

    def test_a_transactional_batch_needs_a_transactional_id(self) -> None:
        data = batch(is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
        self.assertEqual(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, self.code(data))
        self.assertEqual(0, self.partitions[0].log_end)


class RecordsTests(ProduceTestCase):
    def test_a_partition_without_a_whole_batch_is_refused(self) -> None:
        for records in (None, b"", batch()[:-1], batch()[:30]):
            self.assertEqual(ErrorCode.INVALID_RECORD, self.code(records), records)

    def test_several_batches_are_refused(self) -> None:
        """
        So are bytes behind the batch, and nothing is written.
        """
        for records in (batch() + batch(), batch() + b"\0"):
            self.assertEqual(ErrorCode.INVALID_RECORD, self.code(records))
        self.assertEqual(0, self.partitions[0].log_end)

    def test_message_sets_in_new_versions_are_refused(self) -> None:
        for version in VERSIONS:
            self.assertEqual(ErrorCode.INVALID_RECORD, self.code(LEGACY, version=version), version)

    def test_unknown_magic_is_damage(self) -> None:
        """
        So is an impossible length.
        """
        data = batch()
        for records in (data[:16] + b"\3" + data[17:], data[:8] + bytes(4) + data[12:]):
            self.assertEqual(ErrorCode.CORRUPT_MESSAGE, self.code(records))

    def test_refusals_of_the_log_are_returned(self) -> None:
        """
        They have its code, and its message where the version has a field.
        """
        for version in VERSIONS:
            [answer] = self.ask(self.request(batch()[:-1] + b"\1"), version)
            self.assertEqual((ErrorCode.CORRUPT_MESSAGE, -1), (answer.error_code, answer.base_offset), version)
            self.assertEqual("CRC" in (answer.error_message or ""), version >= 8, version)

    def test_refused_records_are_named(self) -> None:
        """
        From v8 on each has its index in the batch and the reason.
        """
        self.partitions = self.broker.make("bounded", config=TopicConfig(timestamp_before_max_ms=5))
        times = (START_MS, START_MS - 6, START_MS, START_MS - 7)
        data = built([Record(offset, time, b"key", b"value") for offset, time in enumerate(times)])
        topic_id = self.broker.view().topics["bounded"].id
        within = f"The timestamp should be within [{START_MS - 5}, {START_MS + 3_600_000}]"
        for version in VERSIONS:
            [answer] = self.ask(self.request(data, name="bounded", topic_id=topic_id), version)
            self.assertEqual(ErrorCode.INVALID_TIMESTAMP, answer.error_code)
            told = [(row.batch_index, row.batch_index_error_message) for row in answer.record_errors]
            named = [(n, f"Timestamp {times[n]} of message with offset {n} is out of range. {within}") for n in (1, 3)]
            self.assertEqual(named if version >= 8 else [], told, version)
            self.assertEqual("due to invalid timestamp" in (answer.error_message or ""), version >= 8, version)

    def test_a_refused_batch_has_the_log_start(self) -> None:
        """
        A producer can tell lost records from deleted ones by it.
        """
        self.partitions[0].log_start = 0
        data = batch(producer_id=7, producer_epoch=0, base_sequence=0)
        self.ask(self.request(data))
        self.partitions[0].log_start = 1
        [answer] = self.ask(self.request(batch(producer_id=7, producer_epoch=0, base_sequence=9)))
        self.assertEqual((ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1), (answer.error_code, answer.log_start_offset))

    def test_zstd_needs_v7(self) -> None:
        data = batch(b"value" * 100, codec=Codec.ZSTD)
        for version in VERSIONS:
            [answer] = self.ask(self.request(data), version)
            expected = ErrorCode.NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            self.assertEqual(expected, answer.error_code, version)

    def test_unknown_codecs_are_refused(self) -> None:
        """
        The version does not matter.
        """
        data = bytes(sealed(three(), attributes=5).data)
        for version in VERSIONS:
            self.assertEqual(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, self.code(data, version=version), version)

    def test_unexpected_failures_are_logged(self) -> None:
        """
        Other partitions are written.
        """
        self.broker.failing[0] = ZeroDivisionError("a bug")
        answers = self.ask(self.request(batch(), batch()))
        codes = [answer.error_code for answer in answers]
        self.assertEqual([ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE], codes)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertNotIn("a bug", answers[0].error_message or "")

    def test_a_failing_authorizer_fails_its_topic(self) -> None:
        """
        The answer for another topic is returned.
        """
        topics = self.request(batch()).topic_data + self.request(batch(), name="x" * 9).topic_data
        self.serving.parts.authorizer = Denying(lambda _, __, name: 1 // (name == "orders") < 1)
        response = self.successResultOf(self.start(self.request(topic_data=topics), 12))
        codes = [topic.partition_responses[0].error_code for topic in response.responses]
        self.assertEqual([ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR], codes)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_reasons_are_remembered_with_the_partition(self) -> None:
        self.code(b"")
        [refusal] = self.serving.context.refusals or []
        self.assertEqual(("orders-0", ErrorCode.INVALID_RECORD), (refusal.subject, refusal.error.code))


class AcksTests(ProduceTestCase):
    def setUp(self) -> None:
        super().setUp()
        for partition in self.partitions:
            partition.stored, partition.committed = Deferred(), Deferred()

    def test_other_acks_are_refused(self) -> None:
        """
        They must be -1, 0 or 1.
        """
        for acks in (-2, 2):
            code = self.refused_whole(self.request(batch(), acks=acks))
            self.assertEqual(ErrorCode.INVALID_REQUIRED_ACKS, code)
        self.assertEqual(0, self.partitions[0].log_end)

    def test_acks_0_has_no_response(self) -> None:
        """
        Nothing is waited for.
        """
        self.assertIsNone(self.successResultOf(self.start(self.request(batch(), acks=0))))
        self.assertEqual((1, None), (self.partitions[0].log_end, self.serving.context.hang_up))
        self.assertEqual([], self.serving.clock.getDelayedCalls())

    def test_an_error_with_acks_0_closes_the_connection(self) -> None:
        """
        No response can report it.
        """
        self.assertIsNone(self.successResultOf(self.start(self.request(b"", batch(), acks=0))))
        self.assertIn("INVALID_RECORD", self.serving.context.hang_up or "")
        self.assertEqual(1, self.partitions[1].log_end)

    def test_a_refused_request_with_acks_0_closes_the_connection(self) -> None:
        """
        The reason is remembered.
        """
        self.deny(Operation.WRITE, Resource.TRANSACTIONAL_ID)
        self.assertIsNone(self.successResultOf(self.start(self.request(batch(), acks=0, transactional_id="tx"))))
        self.assertIn("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", self.serving.context.hang_up or "")
        self.assertEqual(1, len(self.serving.context.refusals or ()))

    def test_acks_1_waits_until_the_batch_is_stored(self) -> None:
        result = self.start(self.request(batch(), acks=1))
        self.settle(self.partitions[0].committed)
        self.assertNoResult(result)
        self.settle(self.partitions[0].stored)
        self.assertEqual(ErrorCode.NONE, self.answers(result)[0].error_code)

    def test_acks_all_waits_until_all_batches_are_committed(self) -> None:
        result = self.start(self.request(batch(), batch()))
        self.settle(self.partitions[0].stored)
        self.settle(self.partitions[0].committed)
        self.assertNoResult(result)
        self.settle(self.partitions[1].committed)
        self.assertEqual([0, 0], [answer.error_code for answer in self.answers(result)])
        self.assertEqual([], self.serving.clock.getDelayedCalls())

    def test_kept_promises_are_not_waited_for(self) -> None:
        self.settle(self.partitions[0].committed)
        self.assertEqual(ErrorCode.NONE, self.ask(self.request(batch()))[0].error_code)

    def test_a_timeout_has_the_offset(self) -> None:
        """
        The append stands, and its later outcome is ignored.
        """
        result = self.start(self.request(batch(), batch(), timeout_ms=3_000))
        self.settle(self.partitions[1].committed)
        self.serving.clock.advance(2.9)
        self.assertNoResult(result)
        self.serving.clock.advance(0.1)
        answers = [(answer.error_code, answer.base_offset) for answer in self.answers(result)]
        self.assertEqual([(ErrorCode.REQUEST_TIMED_OUT, 0), (ErrorCode.NONE, 0)], answers)
        self.errback(self.partitions[0].committed, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.assertEqual([None, 1], [self.left(self.partitions[0].committed), self.partitions[0].log_end])

    def test_a_commit_after_the_timeout_is_ignored(self) -> None:
        result = self.start(self.request(batch(), timeout_ms=3_000))
        self.serving.clock.advance(3)
        self.settle(self.partitions[0].committed)
        self.assertEqual(ErrorCode.REQUEST_TIMED_OUT, self.answers(result)[0].error_code)
        self.assertIsNone(self.left(self.partitions[0].committed))

    def test_a_timeout_of_zero_does_not_wait(self) -> None:
        """
        A negative one does not either.
        """
        for timeout_ms in (0, -1):
            result = self.start(self.request(batch(), timeout_ms=timeout_ms))
            self.assertEqual([0], [call.getTime() for call in self.serving.clock.getDelayedCalls()])
            self.serving.clock.advance(0)
            self.assertEqual(ErrorCode.REQUEST_TIMED_OUT, self.answers(result)[0].error_code)

    def test_a_failed_commit_is_an_error(self) -> None:
        """
        The answer has the offset that the batch had.
        """
        result = self.start(self.request(batch(), batch()))
        self.settle(self.partitions[1].committed)
        lost = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "node 2 is gone")
        self.errback(self.partitions[0].committed, lost)
        [first, second] = self.answers(result)
        self.assertEqual((ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0), (first.error_code, first.base_offset))
        self.assertEqual(("node 2 is gone", ErrorCode.NONE), (first.error_message, second.error_code))

    def test_a_lost_leadership_ends_the_wait(self) -> None:
        """
        The client learns the new leader.
        """
        result = self.start(self.request(batch()))
        self.broker.owners["orders"] = (NEAR.id,)
        self.errback(self.partitions[0].committed, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved"))
        self.assertEqual([2], [node.node_id for node in self.successResultOf(result).node_endpoints])

    def test_an_unexpected_failure_of_the_commit_is_logged(self) -> None:
        """
        It is answered, too.
        """
        result = self.start(self.request(batch()))
        self.errback(self.partitions[0].committed, ZeroDivisionError())
        self.assertEqual(ErrorCode.UNKNOWN_SERVER_ERROR, self.answers(result)[0].error_code)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_failures_that_acks_ignores_are_not_logged(self) -> None:
        for acks in (0, 1, -1):
            partition = self.partitions[0]
            partition.stored, partition.committed = Deferred(), Deferred()
            self.start(self.request(batch(), acks=acks))
            for promised in (partition.stored, partition.committed):
                self.errback(promised, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
                self.assertIsNone(self.left(promised), acks)

    def test_a_waiting_request_keeps_no_records(self) -> None:
        """
        The log has them.
        """
        self.assertNoResult(self.start(self.request(batch(), batch())))
        self.assertEqual([None, None], [data.records for data in self.serving.request.topic_data[0].partition_data])
        self.assertEqual((1, 1), (self.partitions[0].log_end, self.partitions[1].log_end))

    def test_a_cancelled_wait_leaves_no_timer(self) -> None:
        """
        The batch is still in the log.
        """
        result = self.start(self.request(batch()))
        result.cancel()
        self.failureResultOf(result, CancelledError)
        self.assertEqual(([], 1), (self.serving.clock.getDelayedCalls(), self.partitions[0].log_end))
        self.settle(self.partitions[0].committed)

    def settle(self, promised: Deferred[None] | None) -> None:
        assert promised
        promised.callback(None)

    def errback(self, promised: Deferred[None] | None, error: Exception) -> None:
        assert promised
        promised.errback(error)

    def left(self, promised: Deferred[None] | None) -> object:
        """
        The outcome left on a promise after all callbacks.
        """
        assert promised
        results: list[object] = []
        promised.addBoth(results.append)
        [result] = results
        return result
