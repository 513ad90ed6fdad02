"""
Tests of record deletion and retention that every broker passes.
"""

from functools import partial
from typing import Any

import pytest

from kgateway.broker.partition.retention import RetentionLimits
from kgateway.cluster.partition import Isolation, Origin, TimestampAndOffset
from kgateway.interfaces import IPartition
from kgateway.records.batch import TimestampType
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import (
    PLENTY,
    START_MS,
    Started,
    World,
    appended,
    at_times,
    batch,
    fetched,
    noted,
    offsets,
    placed,
    refusal,
    result,
    sequenced,
)


class Deletions(Started):
    """
    The oldest records are deleted on request.
    """

    @pytest.fixture
    def six(self, world: World) -> IPartition:
        """
        A partition with batches of 1, 3 and 2 records.
        """
        partition = world.partition()
        for count in (1, 3, 2):
            appended(partition, batch(count))
        return partition

    @pytest.mark.parametrize(
        ("offset", "found"), [(0, [0, 1, 4]), (1, [1, 4]), (2, [1, 4]), (3, [1, 4]), (4, [4]), (5, [4]), (6, [])]
    )
    def test_records_before_the_offset_are_deleted(self, offset: int, found: list[int], six: IPartition) -> None:
        """
        The log starts at the offset, even inside a batch; later records and the log end are unchanged.
        """
        assert result(six.delete_before(offset)) == six.log_start == offset
        assert offsets(fetched(six, offset)) == found
        assert (six.high_watermark, six.last_stable, six.log_end) == (6, 6, 6)
        assert fetched(six, 6).log_start == offset

    def test_deleted_offsets_are_out_of_range(self, six: IPartition) -> None:
        result(six.delete_before(3))
        for offset in (0, 2):
            error = refusal(partial(six.read, offset, PLENTY, Isolation.READ_UNCOMMITTED, True))
            assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE, offset

    def test_the_log_start_never_decreases(self, six: IPartition) -> None:
        """
        A request for an earlier offset changes nothing and is answered with the current log start.
        """
        result(six.delete_before(4))
        assert [result(six.delete_before(offset)) for offset in (4, 1, 0)] == [4, 4, 4]
        assert six.log_start == 4

    @pytest.mark.parametrize("offset", [-2, -1, 7, 1 << 62])
    def test_an_invalid_log_start_is_refused(self, offset: int, six: IPartition) -> None:
        """
        An offset below 0 or above the high watermark is refused, and nothing is deleted.
        """
        assert refusal(lambda: six.delete_before(offset)).code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert (six.log_start, offsets(fetched(six, 0))) == (0, [0, 1, 4])

    def test_an_emptied_log_continues(self, six: IPartition) -> None:
        """
        Appends get the next offsets, and the producer learns the log start.
        """
        result(six.delete_before(6))
        assert placed(appended(six, batch(2))) == (6, -1, 6)
        assert offsets(fetched(six, 6)) == [6]

    def test_time_searches_skip_deleted_records(self, world: World) -> None:
        """
        They are skipped even where other records of their batch are left.
        """
        partition = world.partition()
        for times in ([50], [20, 10, 30], [40]):
            appended(partition, at_times(*times))
        epoch = partition.leader_epoch
        result(partition.delete_before(2))
        assert result(partition.find_time(0)) == TimestampAndOffset(2, 10, epoch)
        assert result(partition.find_time(15)) == TimestampAndOffset(3, 30, epoch)
        assert result(partition.find_max_time()) == TimestampAndOffset(4, 40, epoch)
        assert result(partition.find_time(41)) is None
        result(partition.delete_before(5))
        assert result(partition.find_time(0)) is None
        assert result(partition.find_max_time()) is None

    def test_time_searches_with_log_append_time(self, world: World) -> None:
        """
        All records of a batch have its append time, so the first one left is found.
        """
        partition = world.partition(timestamp_type=TimestampType.LOG_APPEND_TIME)
        appended(partition, batch(3))
        result(partition.delete_before(1))
        found = TimestampAndOffset(1, START_MS, partition.leader_epoch)
        assert result(partition.find_time(0)) == result(partition.find_max_time()) == found

    def test_epoch_ends_survive_deletion(self, six: IPartition) -> None:
        """
        The epoch of the remaining records ends with the log, whatever was deleted.
        """
        for offset in (2, 6):
            result(six.delete_before(offset))
            end = six.epoch_end(six.leader_epoch)
            assert end
            assert (end.leader_epoch, end.end_offset) == (six.leader_epoch, 6)

    def test_producers_survive_deletion(self, world: World) -> None:
        """
        The sequence of a producer is known even after its batches are deleted.
        """
        partition = world.partition()
        appended(partition, sequenced(0))
        appended(partition, sequenced(1))
        result(partition.delete_before(2))
        assert appended(partition, sequenced(1)).base_offset == 1
        error = refusal(lambda: partition.append(sequenced(9), Origin.CLIENT))
        assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert appended(partition, sequenced(2)).base_offset == 2

    def test_partitions_of_a_deleted_topic_refuse_deletion(self, six: IPartition, world: World) -> None:
        result(world.broker.delete_topic(six.topic.id))
        for use in (lambda: six.delete_before(1), six.expire):
            assert str(refusal(use)) == "UNKNOWN_TOPIC_OR_PARTITION: topic t was deleted"


class Expiry(Started):
    """
    The oldest records are deleted by retention.
    """

    def settle(self, partition: IPartition) -> None:
        """
        Wait until retention knows of all records; most brokers know at once.
        """

    def kept(self, world: World, passed_ms: int, retention: RetentionLimits, **config: Any) -> list[int]:
        """
        The base offsets left of two batches, both of START_MS, after so much time.
        """
        partition = world.partition(retention_ms=retention.ms, retention_bytes=retention.bytes, **config)
        for _ in range(2):
            appended(partition, batch())
        self.settle(partition)
        world.now_ms += passed_ms
        result(partition.expire())
        assert partition.log_end == 2
        return offsets(fetched(partition, partition.log_start))

    def test_expired_records_are_deleted(self, world: World) -> None:
        """
        All records are deleted if all are older than retention.ms.
        """
        assert self.kept(world, 1_001, RetentionLimits(1_000, -1)) == []

    def test_records_are_kept_until_they_expire(self, world: World) -> None:
        assert self.kept(world, 1_000, RetentionLimits(1_000, -1)) == [0, 1]

    def test_retention_bytes_of_zero_keeps_nothing(self, world: World) -> None:
        assert self.kept(world, 0, RetentionLimits(-1, 0)) == []

    def test_a_log_within_retention_bytes_is_kept(self, world: World) -> None:
        assert self.kept(world, 0, RetentionLimits(-1, 2 * len(batch().data))) == [0, 1]

    def test_unlimited_retention_keeps_everything(self, world: World) -> None:
        assert self.kept(world, 1 << 50, RetentionLimits(-1, -1)) == [0, 1]

    @pytest.mark.parametrize("policy", [("compact",), ()])
    def test_topics_that_do_not_delete_keep_everything(self, policy: tuple[str, ...], world: World) -> None:
        """
        Age and size do not matter without the policy `delete`.
        """
        assert self.kept(world, 1 << 50, RetentionLimits(0, 0), cleanup_policy=policy) == [0, 1]

    def test_coordinator_state_does_not_expire(self, world: World) -> None:
        log = world.state_log()
        noted(log, [(b"a", b"1")])
        topic = world.broker.view().topics["__consumer_offsets"]
        world.now_ms += 1 << 50
        for index in range(len(topic.partitions)):
            result(world.broker.partition(topic.id, index).expire())
        assert [pair for piece in result(log.replay()) for pair in piece] == [(b"a", b"1")]

    def test_retention_of_an_empty_log_deletes_nothing(self, world: World) -> None:
        partition = world.partition(retention_ms=0, retention_bytes=0)
        appended(partition, batch())
        self.settle(partition)
        world.now_ms += 1
        for _ in range(3):
            result(partition.expire())
            assert (partition.log_start, partition.log_end) == (1, 1)
        assert appended(partition, batch()).base_offset == 1


class SegmentDeletion(Deletions, Expiry):
    pass
