"""
What every broker does with records that are to go: the tests that each of them passes, beside those of `behaviour`.
"""

from functools import partial
from typing import Any

import pytest

from kgateway.broker.retention import Limits
from kgateway.cluster.partition import Found, Isolation, Origin
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
    refusal,
    result,
    sequenced,
)


class Deletions(Started):
    """
    The oldest records go, because somebody says so.
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
    def test_what_is_before_the_offset_goes(self, offset: int, found: list[int], six: IPartition) -> None:
        """
        The log begins with the offset, be it within a batch; what is behind it stays, and so does the end.
        """
        assert result(six.delete_before(offset)) == six.log_start == offset
        assert offsets(fetched(six, offset)) == found
        assert (six.high_watermark, six.last_stable, six.log_end) == (6, 6, 6)
        assert fetched(six, 6).log_start == offset

    def test_what_is_gone_is_out_of_range(self, six: IPartition) -> None:
        """
        Nobody reads what is before the log start.
        """
        result(six.delete_before(3))
        for offset in (0, 2):
            error = refusal(partial(six.read, offset, PLENTY, Isolation.READ_UNCOMMITTED, True))
            assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE, offset

    def test_the_log_start_does_not_go_back(self, six: IPartition) -> None:
        """
        An earlier offset changes nothing, and is answered with what there is.
        """
        result(six.delete_before(4))
        assert [result(six.delete_before(offset)) for offset in (4, 1, 0)] == [4, 4, 4]
        assert six.log_start == 4

    @pytest.mark.parametrize("offset", [-2, -1, 7, 1 << 62])
    def test_offsets_that_cannot_be_the_start(self, offset: int, six: IPartition) -> None:
        """
        An offset below 0 or behind the high watermark is refused, and nothing goes.
        """
        assert refusal(lambda: six.delete_before(offset)).code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert (six.log_start, offsets(fetched(six, 0))) == (0, [0, 1, 4])

    def test_an_empty_log_goes_on(self, six: IPartition) -> None:
        """
        What is appended after all is gone gets the offsets that come next, and the producer is told of the log start.
        """
        result(six.delete_before(6))
        assert appended(six, batch(2))[:3] == (6, -1, 6)
        assert offsets(fetched(six, 6)) == [6]

    def test_times_are_those_of_what_is_left(self, world: World) -> None:
        """
        A search by time finds no record that is gone, also where others of its batch are left.
        """
        partition = world.partition()
        for times in ([50], [20, 10, 30], [40]):
            appended(partition, at_times(*times))
        epoch = partition.leader_epoch
        result(partition.delete_before(2))
        assert result(partition.find_time(0)) == Found(2, 10, epoch)
        assert result(partition.find_time(15)) == Found(3, 30, epoch)
        assert result(partition.find_max_time()) == Found(4, 40, epoch)
        assert result(partition.find_time(41)) is None
        result(partition.delete_before(5))
        assert result(partition.find_time(0)) is None
        assert result(partition.find_max_time()) is None

    def test_times_of_the_broker(self, world: World) -> None:
        """
        All records of a batch have the time of its append: the first that is left is found.
        """
        partition = world.partition(timestamp_type=TimestampType.LOG_APPEND_TIME)
        appended(partition, batch(3))
        result(partition.delete_before(1))
        found = Found(1, START_MS, partition.leader_epoch)
        assert result(partition.find_time(0)) == result(partition.find_max_time()) == found

    def test_epochs_end_where_they_did(self, six: IPartition) -> None:
        """
        The epoch of what is left ends with the log, whatever is gone.
        """
        for offset in (2, 6):
            result(six.delete_before(offset))
            end = six.epoch_end(six.leader_epoch)
            assert end
            assert (end.leader_epoch, end.end_offset) == (six.leader_epoch, 6)

    def test_producers_are_remembered(self, world: World) -> None:
        """
        Of a producer whose batches are gone it is still known what it sent.
        """
        partition = world.partition()
        appended(partition, sequenced(0))
        appended(partition, sequenced(1))
        result(partition.delete_before(2))
        assert appended(partition, sequenced(1)).base_offset == 1
        error = refusal(lambda: partition.append(sequenced(9), Origin.CLIENT))
        assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert appended(partition, sequenced(2)).base_offset == 2

    def test_partitions_of_a_deleted_topic(self, six: IPartition, world: World) -> None:
        """
        Nothing goes any more from a partition whose topic is deleted.
        """
        result(world.broker.delete_topic(six.topic.id))
        for use in (lambda: six.delete_before(1), six.expire):
            assert str(refusal(use)) == "UNKNOWN_TOPIC_OR_PARTITION: topic t was deleted"


class Expiry(Started):
    """
    The oldest records go, because the topic does not keep them any longer.
    """

    def settle(self, partition: IPartition) -> None:
        """
        Wait until retention knows of all records; most brokers do at once.
        """

    def kept(self, world: World, passed_ms: int, retention: Limits, **config: Any) -> list[int]:
        """
        Where the batches begin that are left of two, both of START_MS, when so much time has passed.
        """
        partition = world.partition(retention_ms=retention.ms, retention_bytes=retention.bytes, **config)
        for _ in range(2):
            appended(partition, batch())
        self.settle(partition)
        world.now_ms += passed_ms
        result(partition.expire())
        assert partition.log_end == 2
        return offsets(fetched(partition, partition.log_start))

    def test_old_records_go(self, world: World) -> None:
        """
        Records go when they are older than the topic keeps them, all of them if need be.
        """
        assert self.kept(world, 1_001, Limits(1_000, -1)) == []

    def test_young_records_stay(self, world: World) -> None:
        """
        Records stay until they are older.
        """
        assert self.kept(world, 1_000, Limits(1_000, -1)) == [0, 1]

    def test_what_is_too_much_goes(self, world: World) -> None:
        """
        A log that is to keep nothing keeps nothing.
        """
        assert self.kept(world, 0, Limits(-1, 0)) == []

    def test_what_is_not_too_much_stays(self, world: World) -> None:
        """
        A log that is no larger than it may be keeps all.
        """
        assert self.kept(world, 0, Limits(-1, 2 * len(batch().data))) == [0, 1]

    def test_without_limits_all_stays(self, world: World) -> None:
        """
        Nothing goes by itself where neither age nor size is limited.
        """
        assert self.kept(world, 1 << 50, Limits(-1, -1)) == [0, 1]

    @pytest.mark.parametrize("policy", [("compact",), ()])
    def test_only_where_the_policy_is_to_delete(self, policy: tuple[str, ...], world: World) -> None:
        """
        Whatever its age and size, nothing goes from a topic whose policy is another.
        """
        assert self.kept(world, 1 << 50, Limits(0, 0), cleanup_policy=policy) == [0, 1]

    def test_state_stays(self, world: World) -> None:
        """
        The state of a coordinator does not go with age.
        """
        log = world.state_log()
        noted(log, [(b"a", b"1")])
        topic = world.broker.view().topics["__consumer_offsets"]
        world.now_ms += 1 << 50
        for index in range(len(topic.partitions)):
            result(world.broker.partition(topic.id, index).expire())
        assert [pair for piece in result(log.replay()) for pair in piece] == [(b"a", b"1")]

    def test_an_empty_log(self, world: World) -> None:
        """
        Of nothing, nothing goes, again and again.
        """
        partition = world.partition(retention_ms=0, retention_bytes=0)
        appended(partition, batch())
        self.settle(partition)
        world.now_ms += 1
        for _ in range(3):
            result(partition.expire())
            assert (partition.log_start, partition.log_end) == (1, 1)
        assert appended(partition, batch()).base_offset == 1


class LettingGo(Deletions, Expiry):
    """
    Both.
    """
