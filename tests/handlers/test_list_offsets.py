"""
ListOffsets.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.partition import EpochEnd, TimestampAndOffset
from kgateway.handlers.list_offsets import list_offsets
from kgateway.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.fetch.rigged_broker import RiggedPartition, batch, rigged
from tests.serving import START_MS, Denying

VERSIONS = range(12)
LISTED = range(1, 12)  # all except the one with lists of offsets
NOTHING = (-1, -1, -1)

LATEST, EARLIEST, LARGEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_NOT_TIERED = range(-1, -7, -1)
SINCE = {LATEST: 0, EARLIEST: 0, LARGEST: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_NOT_TIERED: 11}

Answer = ListOffsetsResponse.Topic.Partition
Asked = ListOffsetsRequest.Topic.Partition


class SlowSearch(RiggedPartition):
    """
    A partition that needs time to find timestamps.
    """

    def find_time(self, timestamp: int) -> Deferred[TimestampAndOffset | None]:  # type: ignore[override]  # as a log on disk does
        self.found: Deferred[TimestampAndOffset | None] = Deferred()
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
        The error of an answer without an offset.
        """
        answer = self.one(timestamp, version, **more)
        self.assertEqual(
            (NOTHING, []), ((answer.offset, answer.timestamp, answer.leader_epoch), answer.old_style_offsets)
        )
        return answer.error_code


class EndsTests(ListOffsetsTestCase):
    def test_versions_of_kafka_4_3_are_advertised(self) -> None:
        """
        One more is served.
        """
        self.assertEqual((VERSIONS, LISTED), (list_offsets.versions, list_offsets.advertised))

    def test_the_latest_offset_is_the_next_one(self) -> None:
        """
        It has no timestamp.
        """
        for version in LISTED:
            self.assertEqual((5, -1, 0 if version >= 4 else -1), self.found(LATEST, version), version)

    def test_read_committed_ends_at_the_last_stable_offset(self) -> None:
        self.partition.stable = 4
        for version in range(2, 12):
            self.assertEqual(4, self.found(LATEST, version, isolation_level=1)[0], version)
            self.assertEqual(5, self.found(LATEST, version)[0], version)

    def test_other_clients_get_the_log_end_offset(self) -> None:
        """
        They are no consumers.
        """
        self.partition.stable = 4
        self.assertEqual(5, self.found(LATEST, isolation_level=1, replica_id=-2)[0])

    def test_unknown_isolation_levels_are_refused(self) -> None:
        failure = self.failureResultOf(self.start(self.request(LATEST, isolation_level=2)), KafkaError)
        self.assertEqual(ErrorCode.INVALID_REQUEST, failure.value.code)

    def test_the_earliest_offset_is_the_log_start(self) -> None:
        """
        It has no timestamp, and is the earliest on local disk, too.
        """
        self.partition.log_start = 3
        for version in LISTED:
            self.assertEqual((3, -1, 0 if version >= 4 else -1), self.found(EARLIEST, version), version)
        for version in range(8, 12):
            self.assertEqual((3, -1, 0), self.found(EARLIEST_LOCAL, version), version)

    def test_the_earliest_offset_has_its_epoch(self) -> None:
        """
        In an empty log it is the leader's.
        """
        self.use(Epochs(self.partition.topic, 0))
        self.partition.leader_epoch = 8
        epochs = []
        for self.partition.log_start in range(5):
            epochs.append(self.found(EARLIEST)[2])
        self.assertEqual([3, 3, 5, 5, 8], epochs)

    def test_tiered_storage_is_empty(self) -> None:
        """
        Nothing will be moved there either.
        """
        for version in range(9, 12):
            self.assertEqual(NOTHING, self.found(LATEST_TIERED, version), version)
        self.assertEqual(NOTHING, self.found(EARLIEST_NOT_TIERED))

    def test_unknown_special_timestamps_are_refused(self) -> None:
        """
        A negative timestamp must have a meaning in the version.
        """
        for version in VERSIONS:
            for timestamp in (*SINCE, -7, -(1 << 63)):
                code = self.one(timestamp, version).error_code
                known = version >= SINCE.get(timestamp, 99)
                expected = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION
                self.assertEqual(expected, code, (version, timestamp))


class TimeTests(ListOffsetsTestCase):
    def test_records_are_found_by_time(self) -> None:
        """
        The first record with the timestamp or a later one is found, with its epoch.
        """
        for version in LISTED:
            epoch = 0 if version >= 4 else -1
            self.assertEqual((0, START_MS, epoch), self.found(START_MS - 9, version), version)
            self.assertEqual((2, START_MS + 2, epoch), self.found(START_MS + 2, version), version)

    def test_no_record_is_that_late(self) -> None:
        """
        This is no error.
        """
        for version in LISTED:
            self.assertEqual(NOTHING, self.found(START_MS + 3, version), version)

    def test_the_record_with_the_largest_timestamp_is_found(self) -> None:
        """
        A log may have none.
        """
        for version in range(7, 12):
            self.assertEqual((2, START_MS + 2, 0), self.found(LARGEST, version), version)
        [answer] = self.answers(self.start(self.request(LARGEST, 1)))
        self.assertEqual((ErrorCode.NONE, -1, -1), (answer.error_code, answer.offset, answer.timestamp))

    def test_unreadable_records_are_not_found(self) -> None:
        """
        The client cannot read them yet.
        """
        self.partition.stable = 2
        for timestamp in (START_MS + 2, LARGEST):
            self.assertEqual(NOTHING, self.found(timestamp, isolation_level=1), timestamp)
            self.assertEqual(2, self.found(timestamp)[0], timestamp)
        self.partition.stable = 3
        self.assertEqual(2, self.found(LARGEST, isolation_level=1)[0])

    def test_slow_searches_are_waited_for(self) -> None:
        """
        All searches are begun first.
        """
        self.use(SlowSearch(self.partition.topic, 0))
        second = self.broker.rigged[self.partition.topic.id, 1] = SlowSearch(self.partition.topic, 1)
        result = self.start(self.request(START_MS, 0, 1))
        second.put(batch())
        second.found.callback(TimestampAndOffset(0, START_MS, 0))
        self.assertNoResult(result)
        assert isinstance(self.partition, SlowSearch)
        self.partition.found.callback(TimestampAndOffset(3, START_MS + 3, 0))
        self.assertEqual([3, 0], [answer.offset for answer in self.answers(result)])

    def test_a_failed_search_is_an_error_of_its_partition(self) -> None:
        for error, code in (
            (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ErrorCode.KAFKA_STORAGE_ERROR),
            (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
        ):
            late = SlowSearch(self.partition.topic, 0)
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

    def test_version_0_lists_log_end_and_start(self) -> None:
        """
        The latest comes first; for the earliest there is only the start.
        """
        self.partition.log_start = 1
        self.assertEqual(([5, 1], [1]), (self.offsets(LATEST), self.offsets(EARLIEST)))

    def test_version_0_lists_offsets_by_time(self) -> None:
        """
        It has the offset below which all records are older, and the log start.
        """
        self.assertEqual([2, 0], self.offsets(START_MS + 2))
        self.assertEqual([5, 0], self.offsets(START_MS + 9))
        self.assertEqual([0], self.offsets(START_MS))

    def test_version_0_limits_the_offsets(self) -> None:
        """
        The client gives the limit.
        """
        self.assertEqual([[5], [], []], [self.offsets(LATEST, most) for most in (1, 0, -1)])

    def test_version_0_lists_an_empty_log_once(self) -> None:
        [answer] = self.answers(self.start(self.request(LATEST, 1, max_num_offsets=9), 0))
        self.assertEqual([0], answer.old_style_offsets)


class RefusalTests(ListOffsetsTestCase):
    def test_unknown_partitions_are_refused(self) -> None:
        """
        Other partitions are answered.
        """
        for version in VERSIONS:
            code = self.code(version=version, name="missing")
            self.assertEqual(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, code, version)
            codes = [answer.error_code for answer in self.answers(self.start(self.request(LATEST, 0, 2), version))]
            self.assertEqual([ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], codes, version)

    def test_permission_is_needed(self) -> None:
        """
        Without DESCRIBE existing and unknown topics look alike; each topic is checked once.
        """
        authorizer = self.deny()
        for version in VERSIONS:
            for name in ("orders", "missing"):
                code = self.code(version=version, name=name)
                self.assertEqual(ErrorCode.TOPIC_AUTHORIZATION_FAILED, code, version)
        del authorizer.asked[:]
        self.start(self.request(LATEST, 0, 1))
        self.assertEqual([(Operation.DESCRIBE, Resource.TOPIC, "orders")], authorizer.asked)

    def test_duplicate_partitions_are_refused(self) -> None:
        for version in VERSIONS:
            answers = self.answers(self.start(self.request(LATEST, 0, 1, 0), version))
            codes = [answer.error_code for answer in answers]
            expected = [ErrorCode.INVALID_REQUEST, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
            self.assertEqual(expected, codes, version)

    def test_duplicates_belong_to_one_topic(self) -> None:
        """
        The same index in two topics is no duplicate; in one topic named twice it is.
        """
        self.broker.make("other")
        for name, code in (("other", ErrorCode.NONE), ("orders", ErrorCode.INVALID_REQUEST)):
            request = self.request(LATEST)
            request.topics += self.request(LATEST, name=name).topics
            [first, _] = self.successResultOf(self.start(request)).topics
            self.assertEqual(code, first.partitions[0].error_code, name)

    def test_leader_epochs_are_checked(self) -> None:
        """
        From v4 on a client with another leader epoch is refused.
        """
        self.partition.leader_epoch = 5
        for version in range(4, 12):
            for epoch, code in ((4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)):
                self.assertEqual(code, self.code(version=version, current_leader_epoch=epoch), version)
            self.assertEqual(5, self.found(LATEST, version, current_leader_epoch=5)[0], version)

    def test_offset_not_available_of_old_versions(self) -> None:
        """
        Older clients get another code.
        """
        self.broker.failing[0] = KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "the high watermark lags")
        for version in VERSIONS:
            expected = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
            self.assertEqual(expected, self.code(version=version), version)

    def test_unexpected_failures_are_logged(self) -> None:
        """
        Other partitions are answered.
        """
        self.broker.failing[0] = ZeroDivisionError()
        codes = [answer.error_code for answer in self.answers(self.start(self.request(LATEST, 0, 1)))]
        self.assertEqual([ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE], codes)
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
