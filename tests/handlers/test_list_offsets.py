"""
ListOffsets.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from handlers.list_offsets import list_offsets
from kgateway.cluster.partition import EpochEnd, Found
from kgateway.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.fetching.rigged import RiggedPartition, batch, rigged
from tests.serving import START_MS, Denying

VERSIONS = range(12)
LISTED = range(1, 12)  # all but the one with lists of offsets
NOTHING = (-1, -1, -1)

LATEST, EARLIEST, LARGEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_NOT_TIERED = range(-1, -7, -1)
SINCE = {LATEST: 0, EARLIEST: 0, LARGEST: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_NOT_TIERED: 11}

Answer = ListOffsetsResponse.Topic.Partition
Asked = ListOffsetsRequest.Topic.Partition


class Late(RiggedPartition):
    """
    A partition that has to look for timestamps.
    """

    def find_time(self, timestamp: int) -> Deferred[Found | None]:  # type: ignore[override]  # as a log on disk does
        self.found: Deferred[Found | None] = Deferred()
        return self.found


class Epochs(RiggedPartition):
    """
    Epoch 3 ends at offset 2, epoch 5 at 4, and 8 has just begun.
    """

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        ends = {3: 2, 5: 4, 8: self.log_end}
        before = [epoch for epoch in ends if epoch <= leader_epoch]
        return EpochEnd(before[-1], ends[before[-1]]) if before else None


class ListOffsetsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving, self.broker = rigged()
        self.partitions = self.broker.make(partitions=2)
        self.partition = self.partitions[0]
        self.partition.put(batch(count=3), batch(count=2))  # at START_MS, + 1, + 2, + 0, + 1

    def use(self, partition: RiggedPartition) -> None:
        self.partition = self.broker.rigged[partition.topic.id, 0] = partition
        self.partition.put(batch(count=4))

    def deny(self) -> Denying:
        denied = (Operation.DESCRIBE, Resource.TOPIC)
        authorizer = self.serving.parts.authorizer = Denying(lambda op, kind, _: (op, kind) == denied)
        return authorizer

    def request(self, timestamp: int, *partitions: int, name: str = "orders", **more: Any) -> ListOffsetsRequest:
        of_partition = {key: more.pop(key) for key in ("max_num_offsets", "current_leader_epoch") if key in more}
        asked = [Asked(partition_index=index, timestamp=timestamp, **of_partition) for index in partitions or (0,)]
        topics = [ListOffsetsRequest.Topic(name=name, partitions=asked)]
        return ListOffsetsRequest(**{"replica_id": -1, "topics": topics, **more})

    def start(self, request: ListOffsetsRequest, version: int = 11) -> Deferred[ListOffsetsResponse]:
        return self.serving.ask(list_offsets, request, version)

    def answers(self, result: Deferred[ListOffsetsResponse]) -> list[Answer]:
        [topic] = self.successResultOf(result).topics
        return topic.partitions

    def one(self, timestamp: int, version: int = 11, **more: Any) -> Answer:
        [answer] = self.answers(self.start(self.request(timestamp, **more), version))
        return answer

    def found(self, timestamp: int, version: int = 11, **more: Any) -> tuple[int, int, int]:
        """
        Offset, timestamp and leader epoch.
        """
        answer = self.one(timestamp, version, **more)
        self.assertEqual(ErrorCode.NONE, answer.error_code, version)
        return answer.offset, answer.timestamp, answer.leader_epoch

    def code(self, timestamp: int = LATEST, version: int = 11, **more: Any) -> int:
        """
        The error, with which nothing is found.
        """
        answer = self.one(timestamp, version, **more)
        self.assertEqual(
            (NOTHING, []), ((answer.offset, answer.timestamp, answer.leader_epoch), answer.old_style_offsets)
        )
        return answer.error_code


class EndsTests(ListOffsetsTestCase):
    def test_versions(self) -> None:
        """
        The versions of Kafka 4.3 are told of; one more is served.
        """
        self.assertEqual((VERSIONS, LISTED), (list_offsets.versions, list_offsets.advertised))

    def test_latest(self) -> None:
        """
        The latest offset is the one that the next record gets; it has no timestamp.
        """
        for version in LISTED:
            self.assertEqual((5, -1, 0 if version >= 4 else -1), self.found(LATEST, version), version)

    def test_latest_committed(self) -> None:
        """
        To who reads what is committed, the latest offset is the one up to which no transaction is open.
        """
        self.partition.stable = 4
        for version in range(2, 12):
            self.assertEqual(4, self.found(LATEST, version, isolation_level=1)[0], version)
            self.assertEqual(5, self.found(LATEST, version)[0], version)

    def test_latest_of_no_consumer(self) -> None:
        """
        Who is no consumer is told where the log ends.
        """
        self.partition.stable = 4
        self.assertEqual(5, self.found(LATEST, isolation_level=1, replica_id=-2)[0])

    def test_unknown_isolation(self) -> None:
        """
        Another isolation level is refused as a whole.
        """
        failure = self.failureResultOf(self.start(self.request(LATEST, isolation_level=2)), KafkaError)
        self.assertEqual(ErrorCode.INVALID_REQUEST, failure.value.code)

    def test_earliest(self) -> None:
        """
        The earliest offset is the first that is still there; it has no timestamp. So is the earliest on local disk.
        """
        self.partition.log_start = 3
        for version in LISTED:
            self.assertEqual((3, -1, 0 if version >= 4 else -1), self.found(EARLIEST, version), version)
        for version in range(8, 12):
            self.assertEqual((3, -1, 0), self.found(EARLIEST_LOCAL, version), version)

    def test_epoch_of_the_earliest(self) -> None:
        """
        With the earliest offset comes the epoch it was written in; in an empty log the one that the leader is in.
        """
        self.use(Epochs(self.partition.topic, 0))
        self.partition.leader_epoch = 8
        epochs = []
        for self.partition.log_start in range(5):
            epochs.append(self.found(EARLIEST)[2])
        self.assertEqual([3, 3, 5, 5, 8], epochs)

    def test_tiered(self) -> None:
        """
        There is nothing in tiered storage, and nothing that will go there.
        """
        for version in range(9, 12):
            self.assertEqual(NOTHING, self.found(LATEST_TIERED, version), version)
        self.assertEqual(NOTHING, self.found(EARLIEST_NOT_TIERED))

    def test_special_timestamps(self) -> None:
        """
        A timestamp below zero is refused where the version gives it no meaning.
        """
        for version in VERSIONS:
            for timestamp in (*SINCE, -7, -(1 << 63)):
                code = self.one(timestamp, version).error_code
                known = version >= SINCE.get(timestamp, 99)
                expected = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION
                self.assertEqual(expected, code, (version, timestamp))


class TimeTests(ListOffsetsTestCase):
    def test_by_time(self) -> None:
        """
        The first record with the timestamp or a later one is found, and the epoch it was written in.
        """
        for version in LISTED:
            epoch = 0 if version >= 4 else -1
            self.assertEqual((0, START_MS, epoch), self.found(START_MS - 9, version), version)
            self.assertEqual((2, START_MS + 2, epoch), self.found(START_MS + 2, version), version)

    def test_none_that_late(self) -> None:
        """
        Where all records are older nothing is found, which is no error.
        """
        for version in LISTED:
            self.assertEqual(NOTHING, self.found(START_MS + 3, version), version)

    def test_largest(self) -> None:
        """
        The record with the largest timestamp is found, if there is any.
        """
        for version in range(7, 12):
            self.assertEqual((2, START_MS + 2, 0), self.found(LARGEST, version), version)
        [answer] = self.answers(self.start(self.request(LARGEST, 1)))
        self.assertEqual((ErrorCode.NONE, -1, -1), (answer.error_code, answer.offset, answer.timestamp))

    def test_not_readable_yet(self) -> None:
        """
        What the client cannot read yet is not found.
        """
        self.partition.stable = 2
        for timestamp in (START_MS + 2, LARGEST):
            self.assertEqual(NOTHING, self.found(timestamp, isolation_level=1), timestamp)
            self.assertEqual(2, self.found(timestamp)[0], timestamp)
        self.partition.stable = 3
        self.assertEqual(2, self.found(LARGEST, isolation_level=1)[0])

    def test_found_late(self) -> None:
        """
        What takes time to find is waited for, after all was asked for.
        """
        self.use(Late(self.partition.topic, 0))
        second = self.broker.rigged[self.partition.topic.id, 1] = Late(self.partition.topic, 1)
        result = self.start(self.request(START_MS, 0, 1))
        second.put(batch())
        second.found.callback(Found(0, START_MS, 0))
        self.assertNoResult(result)
        assert isinstance(self.partition, Late)
        self.partition.found.callback(Found(3, START_MS + 3, 0))
        self.assertEqual([3, 0], [answer.offset for answer in self.answers(result)])

    def test_not_found_late(self) -> None:
        """
        A search that fails late is the error of its partition.
        """
        for error, code in (
            (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ErrorCode.KAFKA_STORAGE_ERROR),
            (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
        ):
            late = Late(self.partition.topic, 0)
            self.use(late)
            result = self.start(self.request(START_MS, 0, 1))
            late.found.errback(error)
            self.assertEqual([code, ErrorCode.NONE], [answer.error_code for answer in self.answers(result)])
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))


class OldStyleTests(ListOffsetsTestCase):
    def offsets(self, timestamp: int, most: int = 9) -> list[int]:
        answer = self.one(timestamp, 0, max_num_offsets=most)
        self.assertEqual(ErrorCode.NONE, answer.error_code)
        return answer.old_style_offsets

    def test_ends(self) -> None:
        """
        Version 0 lists the end and the start of the log, the latest first; before the earliest there is only that.
        """
        self.partition.log_start = 1
        self.assertEqual(([5, 1], [1]), (self.offsets(LATEST), self.offsets(EARLIEST)))

    def test_by_time(self) -> None:
        """
        By a time it lists the offset before which all records are older, and the start of the log.
        """
        self.assertEqual([2, 0], self.offsets(START_MS + 2))
        self.assertEqual([5, 0], self.offsets(START_MS + 9))
        self.assertEqual([0], self.offsets(START_MS))

    def test_no_more_than_asked(self) -> None:
        """
        It lists no more offsets than the client asks for.
        """
        self.assertEqual([[5], [], []], [self.offsets(LATEST, most) for most in (1, 0, -1)])

    def test_empty_log(self) -> None:
        """
        An empty log has one end.
        """
        [answer] = self.answers(self.start(self.request(LATEST, 1, max_num_offsets=9), 0))
        self.assertEqual([0], answer.old_style_offsets)


class RefusalTests(ListOffsetsTestCase):
    def test_unknown(self) -> None:
        """
        A topic or partition that is not there is refused; a partition beside it is answered.
        """
        for version in VERSIONS:
            code = self.code(version=version, name="missing")
            self.assertEqual(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, code, version)
            codes = [answer.error_code for answer in self.answers(self.start(self.request(LATEST, 0, 2), version))]
            self.assertEqual([ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], codes, version)

    def test_denied(self) -> None:
        """
        A client without DESCRIBE is refused, and not told whether the topic is there; it is asked once a topic.
        """
        authorizer = self.deny()
        for version in VERSIONS:
            for name in ("orders", "missing"):
                code = self.code(version=version, name=name)
                self.assertEqual(ErrorCode.TOPIC_AUTHORIZATION_FAILED, code, version)
        del authorizer.asked[:]
        self.start(self.request(LATEST, 0, 1))
        self.assertEqual([(Operation.DESCRIBE, Resource.TOPIC, "orders")], authorizer.asked)

    def test_twice(self) -> None:
        """
        A partition that is named more than once is refused each time.
        """
        for version in VERSIONS:
            answers = self.answers(self.start(self.request(LATEST, 0, 1, 0), version))
            codes = [answer.error_code for answer in answers]
            expected = [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
            self.assertEqual(expected, codes, version)

    def test_twice_in_two_topics(self) -> None:
        """
        The same number in two topics is two partitions; in one topic that is named twice it is one.
        """
        self.broker.make("other")
        for name, code in (("other", ErrorCode.NONE), ("orders", ErrorCode.INVALID_REQUEST)):
            request = self.request(LATEST)
            request.topics += self.request(LATEST, name=name).topics
            [first, _] = self.successResultOf(self.start(request)).topics
            self.assertEqual(code, first.partitions[0].error_code, name)

    def test_leader_epochs(self) -> None:
        """
        From version 4 on a client whose leader epoch is not ours is refused.
        """
        self.partition.leader_epoch = 5
        for version in range(4, 12):
            for epoch, code in ((4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)):
                self.assertEqual(code, self.code(version=version, current_leader_epoch=epoch), version)
            self.assertEqual(5, self.found(LATEST, version, current_leader_epoch=5)[0], version)

    def test_not_available(self) -> None:
        """
        That a new leader does not know yet is told to older clients by a code they know.
        """
        self.broker.failing[0] = KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "the high watermark lags")
        for version in VERSIONS:
            expected = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
            self.assertEqual(expected, self.code(version=version), version)

    def test_unforeseen(self) -> None:
        """
        What fails unforeseen is logged, and leaves the partition beside it.
        """
        self.broker.failing[0] = ZeroDivisionError()
        codes = [answer.error_code for answer in self.answers(self.start(self.request(LATEST, 0, 1)))]
        self.assertEqual([ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE], codes)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
