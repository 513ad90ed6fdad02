"""
Produce.
"""

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from handlers.produce import produce
from kgateway.broker.memory_partition import MemoryPartition
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Isolation
from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import TimestampType
from kgateway.records.compression import Codec
from kgateway.records.record import Record
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ONE, ZERO, Uuid
from tests.cluster.clusters import NEAR
from tests.fetching.rigged import batch, rigged
from tests.records.sealed import sealed, three
from tests.records.values import built
from tests.serving import START_MS, Denying

VERSIONS = range(3, 14)
PLENTY = 1 << 20
LEGACY = bytes(16) + b"\1" + bytes(60)  # a message set, by its magic

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
    def test_versions(self) -> None:
        """
        All versions are served, and told of.
        """
        self.assertEqual((range(14), range(14)), (produce.versions, produce.advertised))

    def test_next_may_start(self) -> None:
        """
        The next request of the connection need not wait for the answer.
        """
        self.assertTrue(produce.overlaps)

    def test_batch_is_stored(self) -> None:
        """
        A batch is stored as it came, at the end of its partition.
        """
        for count, version in enumerate(VERSIONS):
            [answer] = self.ask(self.request(batch(b"%d" % version)), version)
            self.assertEqual((0, ErrorCode.NONE, count), (answer.index, answer.error_code, answer.base_offset), version)
            self.assertEqual(batch(b"%d" % version)[16:], self.stored()[-1][16:], version)

    def test_partitions_know_the_client(self) -> None:
        """
        By its id, also where records are judged one by one before.
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

    def test_names_come_back(self) -> None:
        """
        An answer calls a topic what the request called it: by name, from version 13 on by id.
        """
        for version in VERSIONS:
            [topic] = self.successResultOf(self.start(self.request(batch()), version)).responses
            known = ("", self.topic.id) if version >= 13 else ("orders", ZERO)
            self.assertEqual(known, (topic.name, topic.topic_id), version)

    def test_several_partitions(self) -> None:
        """
        Each partition gets its own batch, and an answer of its own.
        """
        answers = self.ask(self.request(batch(b"0"), batch(b"1", count=3)))
        self.assertEqual([(0, 0), (1, 0)], [(answer.index, answer.base_offset) for answer in answers])
        self.assertEqual([1, 3], [partition.log_end for partition in self.partitions])

    def test_log_start(self) -> None:
        """
        From version 5 on an answer says where the log starts.
        """
        self.partitions[0].log_start = 0
        self.ask(self.request(batch()))
        self.partitions[0].log_start = 1
        for version in VERSIONS:
            [answer] = self.ask(self.request(batch()), version)
            self.assertEqual(1 if version >= 5 else -1, answer.log_start_offset, version)

    def test_log_append_time(self) -> None:
        """
        Where the topic has LogAppendTime, an answer says which time that was; elsewhere -1.
        """
        self.assertEqual(-1, self.ask(self.request(batch()))[0].log_append_time_ms)
        self.broker.make("stamped", config=TopicConfig(timestamp_type=TimestampType.LOG_APPEND_TIME))
        topic_id = self.broker.view().topics["stamped"].id
        for version in VERSIONS:
            [answer] = self.ask(self.request(batch(), name="stamped", topic_id=topic_id), version)
            self.assertEqual(START_MS, answer.log_append_time_ms, version)


class FindingTests(ProduceTestCase):
    def test_unknown_topic(self) -> None:
        """
        A topic that is not there is refused by its name, and by its id where that was named.
        """
        for version in VERSIONS:
            expected = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            code = self.code(batch(), name="missing", topic_id=ONE, version=version)
            self.assertEqual(expected, code, version)
        self.assertNotIn("missing", self.broker.view().topics)

    def test_unknown_partition_leaves_the_others(self) -> None:
        """
        A partition that is not there is refused, and the one beside it written.
        """
        answers = self.ask(self.request(batch(), batch(), first=1))
        codes = [answer.error_code for answer in answers]
        self.assertEqual([ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], codes)
        self.assertEqual(1, self.partitions[1].log_end)

    def test_internal_topics(self) -> None:
        """
        Clients do not write to internal topics; Kafka's own tools, by their client id, may.
        """
        [partition] = self.broker.make("__state", internal=True)
        request = self.request(batch(), name="__state", topic_id=partition.topic.id)
        self.assertEqual(ErrorCode.INVALID_TOPIC_EXCEPTION, self.ask(request)[0].error_code)
        self.assertEqual(0, partition.log_end)
        admin = Context(self.serving.parts, self.serving.session, 13, "__admin_client")
        response = produce.handle(request, admin)
        assert isinstance(response, ProduceResponse)
        self.assertEqual(ErrorCode.NONE, response.responses[0].partition_responses[0].error_code)

    def test_leader_is_elsewhere(self) -> None:
        """
        Who writes to a partition that another node leads is told, from version 10 on, which one and where it is.
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

    def test_leader_is_unknown(self) -> None:
        """
        A leader that is no node of the cluster is named without an address.
        """
        self.broker.failing[0] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "ask node 9")
        self.broker.owners["orders"] = (9,)
        response = self.successResultOf(self.start(self.request(batch())))
        [answer] = response.responses[0].partition_responses
        assert answer.current_leader
        self.assertEqual((9, []), (answer.current_leader.leader_id, response.node_endpoints))

    def test_partition_is_unknown_here(self) -> None:
        """
        Of a partition that is not in view yet, no leader is named.
        """
        for index in (2, -1):
            self.broker.failing[index] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "it is new")
            self.assertIsNone(self.ask(self.request(batch(), first=index))[0].current_leader)


class PermissionTests(ProduceTestCase):
    def test_write_is_asked_once_a_topic(self) -> None:
        """
        WRITE is asked for each topic, however many partitions it has.
        """
        authorizer = self.deny(Operation.READ, Resource.TOPIC)
        self.ask(self.request(batch(), batch()))
        self.assertEqual([(Operation.WRITE, Resource.TOPIC, "orders")], authorizer.asked)

    def test_denied_topic(self) -> None:
        """
        A client without WRITE is refused, and by a name is not told whether the topic is there.
        """
        self.deny(Operation.WRITE, Resource.TOPIC)
        for version in VERSIONS:
            self.assertEqual(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.code(batch(), version=version), version)
        self.assertEqual(0, self.partitions[0].log_end)
        self.assertEqual(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.code(batch(), name="missing", version=12))

    def test_denied_transactional_id(self) -> None:
        """
        A client without WRITE on the transactional id it names is refused as a whole.
        """
        self.deny(Operation.WRITE, Resource.TRANSACTIONAL_ID)
        code = self.refused_whole(self.request(batch(), transactional_id="tx"))
        self.assertEqual(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, code)
        self.assertEqual(0, self.partitions[0].log_end)

    def test_transactional_batch_without_id(self) -> None:
        """
        A transactional batch is refused where the request names no transactional id.
        """
        data = batch(is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
        self.assertEqual(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, self.code(data))
        self.assertEqual(0, self.partitions[0].log_end)


class RecordsTests(ProduceTestCase):
    def test_no_batch(self) -> None:
        """
        A partition without a whole batch is refused.
        """
        for records in (None, b"", batch()[:-1], batch()[:30]):
            self.assertEqual(ErrorCode.INVALID_RECORD, self.code(records), records)

    def test_more_than_a_batch(self) -> None:
        """
        A partition with two batches, or with bytes behind the one, is refused, and nothing is written.
        """
        for records in (batch() + batch(), batch() + b"\0"):
            self.assertEqual(ErrorCode.INVALID_RECORD, self.code(records))
        self.assertEqual(0, self.partitions[0].log_end)

    def test_old_magic(self) -> None:
        """
        Message sets are refused in versions that have batches.
        """
        for version in VERSIONS:
            self.assertEqual(ErrorCode.INVALID_RECORD, self.code(LEGACY, version=version), version)

    def test_no_magic_at_all(self) -> None:
        """
        A magic that never was, and a length that cannot be, mean that the bytes are damaged.
        """
        data = batch()
        for records in (data[:16] + b"\3" + data[17:], data[:8] + bytes(4) + data[12:]):
            self.assertEqual(ErrorCode.CORRUPT_MESSAGE, self.code(records))

    def test_damaged_batch(self) -> None:
        """
        What the log refuses is answered with the log's code, and its words where the version has a place for them.
        """
        for version in VERSIONS:
            [answer] = self.ask(self.request(batch()[:-1] + b"\1"), version)
            self.assertEqual((ErrorCode.CORRUPT_MESSAGE, -1), (answer.error_code, answer.base_offset), version)
            self.assertEqual("CRC" in (answer.error_message or ""), version >= 8, version)

    def test_refused_records_are_named(self) -> None:
        """
        Where single records are to blame, each is named with its place in the batch and the reason, from version 8 on.
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

    def test_refused_batch_names_log_start(self) -> None:
        """
        A batch that the log refuses is answered with the start of the log, so that a producer can tell what was lost
        from what was deleted.
        """
        self.partitions[0].log_start = 0
        data = batch(producer_id=7, producer_epoch=0, base_sequence=0)
        self.ask(self.request(data))
        self.partitions[0].log_start = 1
        [answer] = self.ask(self.request(batch(producer_id=7, producer_epoch=0, base_sequence=9)))
        self.assertEqual((ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1), (answer.error_code, answer.log_start_offset))

    def test_zstd(self) -> None:
        """
        Batches compressed with zstd are taken from version 7 on.
        """
        data = batch(b"value" * 100, codec=Codec.ZSTD)
        for version in VERSIONS:
            [answer] = self.ask(self.request(data), version)
            expected = ErrorCode.NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            self.assertEqual(expected, answer.error_code, version)

    def test_codec_without_meaning(self) -> None:
        """
        A codec that nobody knows is refused in all versions.
        """
        data = bytes(sealed(three(), attributes=5).data)
        for version in VERSIONS:
            self.assertEqual(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, self.code(data, version=version), version)

    def test_unforeseen_failure(self) -> None:
        """
        What fails unforeseen is logged, and leaves the partition beside it alone.
        """
        self.broker.failing[0] = ZeroDivisionError("a bug")
        answers = self.ask(self.request(batch(), batch()))
        codes = [answer.error_code for answer in answers]
        self.assertEqual([ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE], codes)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertNotIn("a bug", answers[0].error_message or "")

    def test_authorizer_fails(self) -> None:
        """
        Where the authorizer fails for one topic, what was written to another is still answered.
        """
        topics = self.request(batch()).topic_data + self.request(batch(), name="x" * 9).topic_data
        self.serving.parts.authorizer = Denying(lambda _, __, name: 1 // (name == "orders") < 1)
        response = self.successResultOf(self.start(self.request(topic_data=topics), 12))
        codes = [topic.partition_responses[0].error_code for topic in response.responses]
        self.assertEqual([ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR], codes)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_reason_is_remembered(self) -> None:
        """
        Why a partition was refused is remembered with its name.
        """
        self.code(b"")
        [refusal] = self.serving.context.refusals or []
        self.assertEqual(("orders-0", ErrorCode.INVALID_RECORD), (refusal.subject, refusal.error.code))


class AcksTests(ProduceTestCase):
    def setUp(self) -> None:
        super().setUp()
        for partition in self.partitions:
            partition.stored, partition.safe = Deferred(), Deferred()

    def test_impossible_acks(self) -> None:
        """
        Acks other than -1, 0 and 1 are refused as a whole.
        """
        for acks in (-2, 2):
            code = self.refused_whole(self.request(batch(), acks=acks))
            self.assertEqual(ErrorCode.INVALID_REQUIRED_ACKS, code)
        self.assertEqual(0, self.partitions[0].log_end)

    def test_none(self) -> None:
        """
        With acks=0 there is no answer, and nothing is waited for.
        """
        self.assertIsNone(self.successResultOf(self.start(self.request(batch(), acks=0))))
        self.assertEqual((1, None), (self.partitions[0].log_end, self.serving.context.hang_up))
        self.assertEqual([], self.serving.clock.getDelayedCalls())

    def test_none_with_an_error(self) -> None:
        """
        With acks=0 an error ends the connection, for there is no answer to tell of it.
        """
        self.assertIsNone(self.successResultOf(self.start(self.request(b"", batch(), acks=0))))
        self.assertIn("INVALID_RECORD", self.serving.context.hang_up or "")
        self.assertEqual(1, self.partitions[1].log_end)

    def test_none_of_a_whole_request(self) -> None:
        """
        With acks=0 the same happens where the whole request is refused; the reason is remembered.
        """
        self.deny(Operation.WRITE, Resource.TRANSACTIONAL_ID)
        self.assertIsNone(self.successResultOf(self.start(self.request(batch(), acks=0, transactional_id="tx"))))
        self.assertIn("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", self.serving.context.hang_up or "")
        self.assertEqual(1, len(self.serving.context.refusals or ()))

    def test_leader(self) -> None:
        """
        With acks=1 the answer comes when the batch is stored.
        """
        result = self.start(self.request(batch(), acks=1))
        self.settle(self.partitions[0].safe)
        self.assertNoResult(result)
        self.settle(self.partitions[0].stored)
        self.assertEqual(ErrorCode.NONE, self.answers(result)[0].error_code)

    def test_all(self) -> None:
        """
        With acks=-1 the answer comes when the batches of all partitions are safe.
        """
        result = self.start(self.request(batch(), batch()))
        self.settle(self.partitions[0].stored)
        self.settle(self.partitions[0].safe)
        self.assertNoResult(result)
        self.settle(self.partitions[1].safe)
        self.assertEqual([0, 0], [answer.error_code for answer in self.answers(result)])
        self.assertEqual([], self.serving.clock.getDelayedCalls())

    def test_safe_already(self) -> None:
        """
        A promise that was kept before it was looked at is as good as none.
        """
        self.settle(self.partitions[0].safe)
        self.assertEqual(ErrorCode.NONE, self.ask(self.request(batch()))[0].error_code)

    def test_time_is_up(self) -> None:
        """
        What is not acknowledged in time is answered so, with the offset it has; the append stands, and what comes
        later is of no interest.
        """
        result = self.start(self.request(batch(), batch(), timeout_ms=3_000))
        self.settle(self.partitions[1].safe)
        self.serving.clock.advance(2.9)
        self.assertNoResult(result)
        self.serving.clock.advance(0.1)
        answers = [(answer.error_code, answer.base_offset) for answer in self.answers(result)]
        self.assertEqual([(ErrorCode.REQUEST_TIMED_OUT, 0), (ErrorCode.NONE, 0)], answers)
        self.errback(self.partitions[0].safe, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.assertEqual([None, 1], [self.left(self.partitions[0].safe), self.partitions[0].log_end])

    def test_acknowledged_too_late(self) -> None:
        """
        Nor is it of interest that a batch became safe when its time was up.
        """
        result = self.start(self.request(batch(), timeout_ms=3_000))
        self.serving.clock.advance(3)
        self.settle(self.partitions[0].safe)
        self.assertEqual(ErrorCode.REQUEST_TIMED_OUT, self.answers(result)[0].error_code)
        self.assertIsNone(self.left(self.partitions[0].safe))

    def test_no_time_at_all(self) -> None:
        """
        With no time to wait the answer does not wait; a time below zero is none.
        """
        for timeout_ms in (0, -1):
            result = self.start(self.request(batch(), timeout_ms=timeout_ms))
            self.assertEqual([0], [call.getTime() for call in self.serving.clock.getDelayedCalls()])
            self.serving.clock.advance(0)
            self.assertEqual(ErrorCode.REQUEST_TIMED_OUT, self.answers(result)[0].error_code)

    def test_acknowledgement_fails(self) -> None:
        """
        Where a batch does not become safe the answer says why, beside the offset that it had.
        """
        result = self.start(self.request(batch(), batch()))
        self.settle(self.partitions[1].safe)
        lost = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "node 2 is gone")
        self.errback(self.partitions[0].safe, lost)
        [first, second] = self.answers(result)
        self.assertEqual((ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0), (first.error_code, first.base_offset))
        self.assertEqual(("node 2 is gone", ErrorCode.NONE), (first.error_message, second.error_code))

    def test_leadership_is_lost_meanwhile(self) -> None:
        """
        Who waits while the partition moves is told where it went.
        """
        result = self.start(self.request(batch()))
        self.broker.owners["orders"] = (NEAR.id,)
        self.errback(self.partitions[0].safe, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved"))
        self.assertEqual([2], [node.node_id for node in self.successResultOf(result).node_endpoints])

    def test_acknowledgement_fails_unforeseen(self) -> None:
        """
        An unforeseen failure is logged and answered.
        """
        result = self.start(self.request(batch()))
        self.errback(self.partitions[0].safe, ZeroDivisionError())
        self.assertEqual(ErrorCode.UNKNOWN_SERVER_ERROR, self.answers(result)[0].error_code)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_failures_nobody_waits_for(self) -> None:
        """
        What acks does not wait for may fail without a word.
        """
        for acks in (0, 1, -1):
            partition = self.partitions[0]
            partition.stored, partition.safe = Deferred(), Deferred()
            self.start(self.request(batch(), acks=acks))
            for promised in (partition.stored, partition.safe):
                self.errback(promised, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
                self.assertIsNone(self.left(promised), acks)

    def test_records_are_not_kept_until_the_answer(self) -> None:
        """
        What the log has, the request that waits lets go of.
        """
        self.assertNoResult(self.start(self.request(batch(), batch())))
        self.assertEqual([None, None], [data.records for data in self.serving.request.topic_data[0].partition_data])
        self.assertEqual((1, 1), (self.partitions[0].log_end, self.partitions[1].log_end))

    def test_client_goes(self) -> None:
        """
        A wait that is cancelled leaves no timer, and the batch where it is.
        """
        result = self.start(self.request(batch()))
        result.cancel()
        self.failureResultOf(result, CancelledError)
        self.assertEqual(([], 1), (self.serving.clock.getDelayedCalls(), self.partitions[0].log_end))
        self.settle(self.partitions[0].safe)

    def settle(self, promised: Deferred[None] | None) -> None:
        assert promised
        promised.callback(None)

    def errback(self, promised: Deferred[None] | None, error: Exception) -> None:
        assert promised
        promised.errback(error)

    def left(self, promised: Deferred[None] | None) -> object:
        """
        What is left of a promise that was kept or broken, after everybody has heard of it.
        """
        assert promised
        results: list[object] = []
        promised.addBoth(results.append)
        [result] = results
        return result
