"""
Tests that every broker passes.

The tests of a broker are a fixture `make`, which creates it, and a class that inherits all tests:

    @pytest.fixture(scope="module")
    def make() -> Make: ...


    class TestMine(Behaviour): ...
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.logger import LogEvent, capturedLogs
from twisted.python.failure import Failure

from kgateway.broker.partition.producer_state import SEQUENCE_MAX
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import ConfigResource, Overrides, ResourceType, group
from kgateway.cluster.partition import Appended, EpochEnd, Isolation, Origin, Read, TimestampAndOffset
from kgateway.cluster.view import NewTopic, Topic
from kgateway.interfaces import IBroker, IPartition, IStateLog, KeyValue
from kgateway.records.batch import (
    CONTROL_BIT,
    HEAD_SIZE,
    LOG_APPEND_TIME_BIT,
    Batch,
    TimestampType,
    batches,
    crc_holds,
)
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ONE, ZERO, Uuid
from tests.records.crc_batches import sealed
from tests.records.values import batch_of

Make = Callable[
    [Callable[[], int], int], IBroker
]  # arguments: the wall clock, and how long idle producers are remembered

T = TypeVar("T")

START_MS = 1_800_000_000_000
EXPIRY_MS = 60_000
PLENTY = 1 << 20


patience: Callable[[Deferred[None]], None] | None = None  # runs the reactor until the Deferred fires


@overload
def result(value: Deferred[T]) -> T: ...
@overload
def result(value: T) -> T: ...
def result(value: Any) -> Any:
    """
    Return the result of a call or raise its failure, waiting for brokers behind a network.
    """
    if not isinstance(value, Deferred):
        return value
    outcome: list[Any] = []
    value.addBoth(outcome.append)
    if not outcome and patience:
        reported: Deferred[None] = Deferred()
        value.addCallback(lambda _: reported.callback(None))
        patience(reported)
    assert outcome, "there is no result yet"
    if isinstance(outcome[0], Failure):
        outcome[0].raiseException()
    return outcome[0]


def refusal(call: Callable[[], Any]) -> KafkaError:
    """
    Return the error that the call raises or its Deferred fails with.
    """
    with pytest.raises(KafkaError) as error:
        result(call())
    return error.value


def batch(count: int = 1, *, timestamp: int = START_MS, **options: Any) -> Batch:
    """
    A batch of `count` records as a producer sends it.
    """
    return at_times(*[timestamp] * count, **options)


def at_times(*timestamps: int, **options: Any) -> Batch:
    """
    A batch with one record for each timestamp.
    """
    return batch_of([Record(n, time, b"key", b"value") for n, time in enumerate(timestamps)], **options)


def sequenced(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7) -> Batch:
    """
    A batch of an idempotent producer.
    """
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def placed(answer: Appended) -> tuple[int, int, int]:
    """
    What a producer learns of a batch that was appended.
    """
    return answer.base_offset, answer.log_append_time_ms, answer.log_start


def appended(partition: IPartition, sent: Batch, origin: Origin = Origin.CLIENT) -> Appended:
    """
    Append a batch and wait until it is committed.
    """
    answer = partition.append(sent, origin)
    for waited in (answer.stored, answer.committed):
        if waited is not None:
            result(waited)
    return answer


def noted(log: IStateLog, records: list[KeyValue]) -> Appended:
    """
    Append to a coordinator's state log and wait until it is committed.
    """
    answer = log.append(records)
    for waited in (answer.stored, answer.committed):
        if waited is not None:
            result(waited)
    return answer


def fetched(
    partition: IPartition,
    offset: int,
    max_bytes: int = PLENTY,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    at_least_one: bool = False,
) -> Read:
    return result(partition.read(offset, max_bytes, isolation, at_least_one))


def stored(read: Read) -> list[Batch]:
    """
    Split the buffers of a read into batches; one buffer may hold several.
    """
    return [found for data in read.batches for found in batches(data)]


def offsets(read: Read) -> list[int]:
    """
    The base offsets of the batches that were read.
    """
    return [found.header.base_offset for found in stored(read)]


def ours(logged: Sequence[LogEvent]) -> list[LogEvent]:
    """
    The logged events without those of the reactor itself.
    """
    return [event for event in logged if not event["log_namespace"].startswith("twisted.internet")]


class World:
    """
    A broker and its clock.
    """

    def __init__(self, make: Make) -> None:
        self.now_ms = START_MS
        self.broker = make(lambda: self.now_ms, EXPIRY_MS)
        self.configs: dict[str, Any] = getattr(make, "configs", {})  # of all topics

    def topic(self, name: str = "t", partition_count: int = 1, **config: Any) -> Topic:
        new = NewTopic(name, partition_count, TopicConfig(**{**self.configs, **config}))
        return result(self.broker.create_topic(new))

    def partition(self, name: str = "t", **config: Any) -> IPartition:
        return self.broker.partition(self.topic(name, **config).id, 0)

    def state_log(self, key: str = "group", resource: Resource = Resource.GROUP) -> IStateLog:
        log = self.broker.coordinator(resource, key)
        assert IStateLog.providedBy(log)
        return log


@contextmanager
def running(make: Make) -> Iterator[World]:
    """
    Start a broker, and stop it in the end.
    """
    world = World(make)
    result(world.broker.start())
    try:
        yield world
    finally:
        result(world.broker.stop())


class Started:
    """
    Gives each test a running broker.
    """

    @pytest.fixture
    def world(self, make: Make) -> Iterator[World]:
        with running(make) as world:
            yield world


class Topics(Started):
    """
    Topics are created, grow and are deleted, and the view shows it.
    """

    def test_cluster_has_this_node(self, world: World) -> None:
        """
        The view names the cluster, this node, and one of the nodes as controller.
        """
        view = world.broker.view()
        assert str(Uuid.parse(view.cluster_id)) == view.cluster_id
        assert view.node(world.broker.node_id)
        assert view.node(view.controller_id)

    def test_new_topic_is_in_the_view(self, world: World) -> None:
        """
        A topic is found by name and by id; its partitions have the requested count and are led by nodes of the
        cluster.
        """
        topic = world.topic("orders", 3, max_message_bytes=77)
        view = world.broker.view()
        assert view.topics["orders"] == view.topics_by_id[topic.id] == topic
        assert (topic.name, len(topic.partitions), topic.config.max_message_bytes) == ("orders", 3, 77)
        assert not topic.internal
        assert topic.id not in (ZERO, ONE)
        for state in topic.partitions:
            assert state.leader_id in state.in_sync
            assert state.leader_id in state.replicas
            assert view.node(state.leader_id)

    def test_internal_topics_are_marked(self, world: World) -> None:
        assert result(world.broker.create_topic(NewTopic("_schemas", 1, internal=True))).internal

    def test_partition_knows_its_topic(self, world: World) -> None:
        """
        A partition knows its topic, its index, and the leader epoch of the view.
        """
        topic = world.topic(partition_count=2)
        partition = world.broker.partition(topic.id, 1)
        assert (partition.topic, partition.index) == (topic, 1)
        assert partition.leader_epoch == topic.partitions[1].leader_epoch
        assert partition.lost is None

    def test_topic_names_are_unique(self, world: World) -> None:
        topic = world.topic("orders")
        error = refusal(lambda: world.broker.create_topic(NewTopic("orders", 1)))
        assert str(error) == "TOPIC_ALREADY_EXISTS: topic orders already exists"
        assert world.broker.view().topics["orders"] == topic

    def test_topics_have_at_least_one_partition(self, world: World) -> None:
        error = refusal(lambda: world.broker.create_topic(NewTopic("orders", 0)))
        assert error.code is ErrorCode.INVALID_PARTITIONS
        assert not world.broker.view().topics

    def test_topics_grow(self, world: World) -> None:
        """
        New partitions are empty; existing ones keep their records and see the new partition count.
        """
        topic = world.topic(partition_count=1)
        first = world.broker.partition(topic.id, 0)
        appended(first, batch())
        grown = result(world.broker.add_partitions(topic.id, 3))
        assert world.broker.view().topics["t"] == grown == first.topic
        assert len(grown.partitions) == 3
        assert world.broker.partition(topic.id, 0) is first
        partitions = [world.broker.partition(topic.id, index) for index in range(3)]
        assert [(partition.index, partition.log_end) for partition in partitions] == [(0, 1), (1, 0), (2, 0)]

    def test_topics_do_not_shrink(self, world: World) -> None:
        """
        The number of partitions can only be raised, and only for an existing topic.
        """
        topic = world.topic(partition_count=3)
        for count in (2, 3):
            error = refusal(partial(world.broker.add_partitions, topic.id, count))
            assert (
                str(error) == f"INVALID_PARTITIONS: topic t has 3 partitions already; {count} would not be an increase"
            )
        assert refusal(lambda: world.broker.add_partitions(ONE, 9)).code is ErrorCode.UNKNOWN_TOPIC_ID

    def test_unknown_topics_and_unknown_partitions_have_different_errors(self, world: World) -> None:
        topic = world.topic(partition_count=2)
        assert refusal(lambda: world.broker.partition(ONE, 0)).code is ErrorCode.UNKNOWN_TOPIC_ID
        for index in (-1, 2):
            error = refusal(partial(world.broker.partition, topic.id, index))
            assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, index

    def test_deleted_topic_is_gone(self, world: World) -> None:
        """
        A deleted topic is in no view, has no partitions and cannot be deleted again; other topics are untouched.
        """
        topic, other = world.topic(), world.topic("other")
        result(world.broker.delete_topic(topic.id))
        view = world.broker.view()
        assert (dict(view.topics), dict(view.topics_by_id)) == ({"other": other}, {other.id: other})
        assert refusal(lambda: world.broker.partition(topic.id, 0)).code is ErrorCode.UNKNOWN_TOPIC_ID
        assert refusal(lambda: world.broker.delete_topic(topic.id)).code is ErrorCode.UNKNOWN_TOPIC_ID

    @pytest.mark.parametrize(
        "use",
        [
            lambda partition: partition.append(batch(), Origin.CLIENT),
            lambda partition: partition.read(0, PLENTY, Isolation.READ_UNCOMMITTED, True),
            lambda partition: partition.find_time(0),
            lambda partition: partition.find_max_time(),
            lambda partition: partition.epoch_end(0),
        ],
        ids=["append", "read", "find_time", "find_max_time", "epoch_end"],
    )
    def test_partitions_of_deleted_topics_refuse_everything(
        self, use: Callable[[IPartition], Any], world: World
    ) -> None:
        partition = world.partition()
        appended(partition, batch())
        result(world.broker.delete_topic(partition.topic.id))
        error = refusal(lambda: use(partition))
        assert str(error) == "UNKNOWN_TOPIC_OR_PARTITION: topic t was deleted" == str(partition.lost)
        assert error is not partition.lost  # one error raised again and again would collect all tracebacks

    def test_the_name_of_a_deleted_topic_can_be_reused(self, world: World) -> None:
        """
        The name then belongs to another topic.
        """
        before = world.partition(partition_count=1)
        appended(before, batch())
        result(world.broker.delete_topic(before.topic.id))
        after = world.partition()
        assert after.topic.id != before.topic.id
        assert after.log_end == 0
        assert not fetched(after, 0).batches

    def test_views_do_not_change(self, world: World) -> None:
        """
        Views are immutable: each change creates one with a higher epoch.
        """
        views = [world.broker.view()]
        topic = world.topic()
        views.append(world.broker.view())
        grown = result(world.broker.add_partitions(topic.id, 2))
        views.append(world.broker.view())
        result(world.broker.delete_topic(topic.id))
        views.append(world.broker.view())
        assert [dict(view.topics) for view in views] == [{}, {"t": topic}, {"t": grown}, {}]
        assert [dict(view.topics_by_id) for view in views] == [{}, {topic.id: topic}, {topic.id: grown}, {}]
        epochs = [view.epoch for view in views]
        assert epochs == sorted(set(epochs))
        assert {view.cluster_id for view in views} == {views[0].cluster_id}

    def test_watchers_see_each_new_view(self, world: World) -> None:
        """
        A listener is called after each change until it is cancelled.
        """
        seen: list[list[int]] = []
        cancel = world.broker.watch(
            lambda: seen.append([len(topic.partitions) for topic in world.broker.view().topics.values()])
        )
        topic = world.topic()
        result(world.broker.add_partitions(topic.id, 2))
        result(world.broker.delete_topic(topic.id))
        assert seen == [[1], [2], []]
        cancel()
        world.topic()
        assert len(seen) == 3

    def test_producer_ids_are_never_repeated(self, world: World) -> None:
        """
        No id is assigned twice, and never the one that means "no producer".
        """
        given_out = [result(world.broker.new_producer_id()) for _ in range(100)]
        assert len(set(given_out)) == 100
        assert min(given_out) >= 0


class Appends(Started):
    """
    Batches get offsets and are stored unchanged.
    """

    def test_offsets_are_dense(self, world: World) -> None:
        """
        Each batch begins where the previous one of its partition ended.
        """
        first, second = world.partition("a"), world.partition("b")
        assert [appended(first, batch(count)).base_offset for count in (3, 1, 2)] == [0, 3, 4]
        assert appended(second, batch()).base_offset == 0
        assert (first.log_start, first.last_stable, first.high_watermark, first.log_end) == (0, 6, 6, 6)

    @pytest.mark.parametrize("codec", Codec)
    def test_batches_are_stored_unchanged(self, codec: Codec, world: World) -> None:
        """
        Only offset and leader epoch are written into the header; not a bit behind it changes.
        """
        partition, sent = world.partition(), batch(2, codec=codec)
        appended(partition, sent)
        appended(partition, sent)
        for found, base_offset in zip(stored(fetched(partition, 0)), (0, 2), strict=True):
            assert found.header.base_offset == base_offset
            assert found.header.partition_leader_epoch == partition.leader_epoch
            assert found.data[8:12] == sent.data[8:12]
            assert found.data[HEAD_SIZE:] == sent.data[HEAD_SIZE:]

    def test_stored_batches_are_copies(self, world: World) -> None:
        """
        The buffer of the request may be reused.
        """
        partition, sent = world.partition(), batch()
        frame = bytearray(sent.data)
        appended(partition, Batch(sent.header, memoryview(frame)))
        frame[:] = bytes(len(frame))
        assert [bytes(found.data[HEAD_SIZE:]) for found in stored(fetched(partition, 0))] == [sent.data[HEAD_SIZE:]]

    def test_answer_to_an_append(self, world: World) -> None:
        """
        The producer learns the offset, the log start, and that its timestamps were kept.
        """
        answer = appended(world.partition(), batch())
        assert placed(answer) == (0, -1, 0)

    @pytest.mark.parametrize(
        ("code", "config", "sent"),
        [
            (ErrorCode.MESSAGE_TOO_LARGE, {"max_message_bytes": len(batch().data) - 1}, batch()),
            (ErrorCode.CORRUPT_MESSAGE, {}, replace(batch(), data=memoryview(bytes(len(batch().data))))),
            (ErrorCode.INVALID_RECORD, {}, sealed(batch(), records_count=9)),
            (ErrorCode.INVALID_RECORD, {}, batch(is_control=True)),
            (ErrorCode.INVALID_TIMESTAMP, {"timestamp_before_max_ms": 5}, batch(timestamp=START_MS - 6)),
            (ErrorCode.INVALID_TIMESTAMP, {"timestamp_after_max_ms": 5}, batch(timestamp=START_MS + 6)),
            (ErrorCode.INVALID_TIMESTAMP, {}, batch(log_append_time_ms=START_MS)),
        ],
        ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
    )
    def test_refused_batches_leave_nothing(
        self, code: ErrorCode, config: dict[str, Any], sent: Batch, world: World
    ) -> None:
        """
        A batch that breaks a rule is refused with the error code of that rule, and the log is unchanged.
        """
        partition, called = world.partition(**config), list[str]()
        partition.watch(lambda: called.append("moved"))
        assert refusal(lambda: partition.append(sent, Origin.CLIENT)).code is code
        assert (partition.log_end, called) == (0, [])

    def test_coordinators_write_control_batches(self, world: World) -> None:
        """
        Control batches get offsets like all others.
        """
        partition = world.partition()
        marker = batch(is_control=True, producer_id=7, producer_epoch=0)
        assert appended(partition, marker, Origin.COORDINATOR).base_offset == 0
        assert stored(fetched(partition, 0))[0].header.attributes & CONTROL_BIT
        assert appended(partition, batch()).base_offset == 1

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
    def test_broker_stamps_where_the_topic_says_so(self, codec: Codec, world: World) -> None:
        """
        With LogAppendTime all records get the time of the append, whatever the producer set.
        """
        partition = world.partition(timestamp_type=TimestampType.LOG_APPEND_TIME)
        world.now_ms += 5
        answer = appended(partition, at_times(0, START_MS * 2, -1, codec=codec))
        assert placed(answer) == (0, START_MS + 5, 0)
        (found,) = stored(fetched(partition, 0))
        assert found.header.attributes & LOG_APPEND_TIME_BIT
        assert crc_holds(found)
        assert [(record.timestamp, record.value) for record in records(found)] == [(START_MS + 5, b"value")] * 3


class Reads(Started):
    """
    Appended records are read back in whole batches.
    """

    @pytest.fixture
    def three(self, world: World) -> IPartition:
        """
        A partition with batches of 2, 3 and 1 records at offsets 0, 2 and 5.
        """
        partition = world.partition()
        for count in (2, 3, 1):
            appended(partition, batch(count))
        return partition

    @pytest.mark.parametrize(
        ("offset", "found"), [(0, [0, 2, 5]), (1, [0, 2, 5]), (2, [2, 5]), (3, [2, 5]), (4, [2, 5]), (5, [5])]
    )
    def test_reads_begin_with_the_batch_of_the_offset(self, offset: int, found: list[int], three: IPartition) -> None:
        """
        The first batch is the one that contains the offset, even in its middle.
        """
        read = fetched(three, offset)
        assert offsets(read) == found
        assert read.size == sum(len(found.data) for found in stored(read))
        assert (read.high_watermark, read.last_stable, read.log_start, read.aborted) == (6, 6, 0, None)

    def test_reads_return_as_many_batches_as_fit(self, three: IPartition) -> None:
        """
        Whole batches are returned up to `max_bytes`.
        """
        first, second, third = (len(found.data) for found in stored(fetched(three, 0)))
        fitting = {0: 0, first - 1: 0, first: 1, first + second - 1: 1, first + second: 2, first + second + third: 3}
        for max_bytes, count in fitting.items():
            read = fetched(three, 0, max_bytes)
            assert (len(stored(read)), read.size) == (count, sum((first, second, third)[:count])), max_bytes
        assert offsets(fetched(three, 2, second)) == [2]

    @pytest.mark.parametrize("max_bytes", [-1, 0, 1])
    def test_a_read_returns_one_batch_at_least(self, max_bytes: int, three: IPartition) -> None:
        """
        A consumer that accepts one oversized batch gets the first one only.
        """
        assert offsets(fetched(three, 3, max_bytes, at_least_one=True)) == [2]
        assert offsets(fetched(three, 3, max_bytes)) == []

    def test_a_read_at_the_end_is_empty(self, three: IPartition) -> None:
        """
        It is no error.
        """
        assert fetched(three, 6, at_least_one=True) == Read([], 0, 6, 6, 0)

    def test_nothing_in_an_empty_log(self, world: World) -> None:
        assert fetched(world.partition(), 0, at_least_one=True) == Read([], 0, 0, 0, 0)

    @pytest.mark.parametrize("offset", [-1, 7])
    def test_offsets_outside_the_log_are_out_of_range(self, offset: int, three: IPartition) -> None:
        error = refusal(lambda: fetched(three, offset))
        assert str(error) == f"OFFSET_OUT_OF_RANGE: offset {offset} is not in the log, which ranges from 0 to 6"

    def test_committed_records_are_read(self, three: IPartition) -> None:
        """
        With read_committed a read ends at the last stable offset, and reports that nothing was aborted.
        """
        for offset, found in {0: [0, 2, 5], 6: []}.items():
            read = fetched(three, offset, isolation=Isolation.READ_COMMITTED)
            assert (offsets(read), read.aborted) == (found, [])

    def test_epochs_end(self, three: IPartition) -> None:
        """
        The current epoch ends at the log end; later epochs and none are unknown.
        """
        epoch = three.leader_epoch
        assert three.epoch_end(epoch) == EpochEnd(epoch, 6)
        assert three.epoch_end(epoch + 1) is None
        assert three.epoch_end(-1) is None

    @pytest.mark.hypothesis
    def test_log_is_a_list_of_batches(self, make: Make) -> None:
        """
        Any sequence of appends and reads gives what a list of batches would give.
        """

        reads = st.tuples(st.integers(0, 20), st.integers(0, 400), st.booleans())

        # A function of its own: Hypothesis wants a test to belong to one class, and every broker inherits this one.
        @given(st.lists(st.integers(1, 4) | reads, max_size=40))
        def holds(steps: list[int | tuple[int, int, bool]]) -> None:
            with running(make) as world:
                compare(world.partition(), steps)

        holds()


def compare(partition: IPartition, steps: list[int | tuple[int, int, bool]]) -> None:
    """
    Apply the same steps to a partition and to a list of batches: append `n` records, or read.
    """
    model = list[tuple[range, Batch]]()
    for step in steps:
        end = model[-1][0].stop if model else 0
        if isinstance(step, int):
            sent = batch(step, timestamp=START_MS + end)
            assert appended(partition, sent).base_offset == end
            model.append((range(end, end + step), sent))
        elif step[0] > end:
            assert refusal(partial(fetched, partition, step[0])).code is ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            offset, max_bytes, at_least_one = step
            read = fetched(partition, offset, max_bytes, at_least_one=at_least_one)
            found = [(each.header.base_offset, each.data[HEAD_SIZE:]) for each in stored(read)]
            assert found == expected(model, offset, max_bytes, at_least_one)


def expected(
    model: list[tuple[range, Batch]], offset: int, max_bytes: int, at_least_one: bool
) -> list[tuple[int, memoryview]]:
    """
    What a read finds in the model: the base offset of each batch, and its bytes behind the header.
    """
    found: list[tuple[int, memoryview]] = []
    for place, sent in model:
        if place.stop <= offset:
            continue
        max_bytes -= len(sent.data)
        if max_bytes < 0 and (found or not at_least_one):
            break
        found.append((place.start, sent.data[HEAD_SIZE:]))
    return found


class Times(Started):
    """
    Records are found by their timestamps.
    """

    def test_the_first_record_from_a_time_on_is_found(self, world: World) -> None:
        """
        The first offset counts, even where timestamps go up and down, in compressed batches too.
        """
        partition = world.partition()
        appended(partition, at_times(20, 40, 10, codec=Codec.GZIP))
        appended(partition, at_times(30))
        appended(partition, at_times(35, 60, 50))
        expected = {0: (0, 20), 20: (0, 20), 21: (1, 40), 40: (1, 40), 41: (5, 60), 60: (5, 60), 61: None}
        epoch = partition.leader_epoch
        for timestamp, found in expected.items():
            assert result(partition.find_time(timestamp)) == (found and TimestampAndOffset(*found, epoch)), timestamp
        appended(partition, at_times(70))
        assert result(partition.find_time(61)) == TimestampAndOffset(7, 70, epoch)

    def test_the_first_record_with_the_largest_timestamp_is_found(self, world: World) -> None:
        """
        A later record with a larger timestamp replaces it.
        """
        partition = world.partition()
        assert result(partition.find_max_time()) is None
        assert result(partition.find_time(0)) is None
        appended(partition, at_times(-1, -1))
        assert result(partition.find_max_time()) is None
        appended(partition, at_times(20, 40))
        appended(partition, at_times(40, 40))
        assert result(partition.find_max_time()) == TimestampAndOffset(3, 40, partition.leader_epoch)
        appended(partition, at_times(30, 50))
        assert result(partition.find_max_time()) == TimestampAndOffset(7, 50, partition.leader_epoch)

    @pytest.mark.parametrize("claimed", [-1, 0, 15, 20, 25, START_MS])
    def test_max_timestamps_in_headers_are_not_trusted(self, claimed: int, world: World) -> None:
        """
        Only the timestamps of the records themselves count.
        """
        partition = world.partition()
        appended(partition, sealed(at_times(10, 20), max_timestamp=claimed))
        appended(partition, at_times(15, 30))
        epoch = partition.leader_epoch
        assert result(partition.find_time(11)) == TimestampAndOffset(1, 20, epoch)
        assert result(partition.find_time(21)) == TimestampAndOffset(3, 30, epoch)
        assert result(partition.find_time(31)) is None
        assert result(partition.find_max_time()) == TimestampAndOffset(3, 30, epoch)

    def test_log_append_time_is_the_time_of_the_first_record(self, world: World) -> None:
        """
        With LogAppendTime the first record of a batch has the time of the whole batch.
        """
        partition = world.partition(timestamp_type=TimestampType.LOG_APPEND_TIME)
        for _ in range(2):
            appended(partition, at_times(5, START_MS * 2))
            world.now_ms += 10
        epoch = partition.leader_epoch
        assert result(partition.find_time(1)) == TimestampAndOffset(0, START_MS, epoch)
        assert result(partition.find_time(START_MS + 1)) == TimestampAndOffset(2, START_MS + 10, epoch)
        assert result(partition.find_time(START_MS + 11)) is None
        assert result(partition.find_max_time()) == TimestampAndOffset(2, START_MS + 10, epoch)


class Watchers(Started):
    def test_listeners_are_called_after_each_append(self, world: World) -> None:
        """
        A listener is called when the high watermark moved, until cancelled; cancelling twice does nothing.
        """
        partition, seen = world.partition(), list[int]()
        cancel = partition.watch(lambda: seen.append(partition.high_watermark))
        appended(partition, batch(2))
        appended(partition, batch())
        cancel()
        cancel()
        appended(partition, batch())
        assert seen == [2, 3]

    def test_a_listener_may_be_added_twice(self, world: World) -> None:
        """
        Cancelling one of two equal listeners leaves the other.
        """
        partition, seen = world.partition(), list[str]()

        def listener() -> None:
            seen.append("called")

        cancel, _ = partition.watch(listener), partition.watch(listener)
        appended(partition, batch())
        cancel()
        appended(partition, batch())
        assert len(seen) == 3

    def test_a_failing_listener_harms_nobody(self, world: World) -> None:
        """
        Its failure is logged; the append and the other listeners succeed.
        """
        partition, seen = world.partition(), list[str]()

        def failing() -> None:
            seen.append("failing")
            raise RuntimeError("a bug of the listener")

        partition.watch(failing)
        partition.watch(lambda: seen.append("other"))
        with capturedLogs() as logged:
            appended(partition, batch())
        assert partition.log_end == 1
        assert seen == ["failing", "other"]
        assert [event["log_failure"].type for event in ours(logged)] == [RuntimeError]

    def test_listeners_may_cancel_while_called(self, world: World) -> None:
        """
        A listener may cancel itself and others: cancelled ones are not called, and new ones wait for the next change.
        """
        partition, seen = world.partition(), list[str]()

        def once() -> None:
            seen.append("once")
            for cancel in cancels:
                cancel()
            partition.watch(lambda: seen.append("new"))

        cancels = [partition.watch(once), partition.watch(lambda: seen.append("cancelled"))]
        partition.watch(lambda: seen.append("other"))
        with capturedLogs() as logged:
            appended(partition, batch())
        assert (seen, ours(logged)) == (["once", "other"], [])
        appended(partition, batch())
        assert seen[2:] == ["other", "new"]

    def test_listeners_are_called_on_deletion(self, world: World) -> None:
        """
        The listener finds the partition lost and the topic in no view.
        """
        partition, seen = world.partition(), list[bool]()
        partition.watch(lambda: seen.append(partition.lost is not None and not world.broker.view().topics))
        result(world.broker.delete_topic(partition.topic.id))
        assert seen == [True]


class Idempotence(Started):
    """
    Each batch of an idempotent producer is stored once and in order.
    """

    def test_repeated_batches_are_answered_with_their_offset(self, world: World) -> None:
        """
        The last five batches of a producer can be resent; they are not appended again.
        """
        partition = world.partition()
        sent = [sequenced(sequence, 2) for sequence in range(0, 12, 2)]
        for each in sent:
            appended(partition, each)
        again = [placed(appended(partition, each)) for each in sent[1:]]
        assert again == [(offset, -1, 0) for offset in (2, 4, 6, 8, 10)]
        assert partition.log_end == 12
        error = refusal(lambda: partition.append(sent[0], Origin.CLIENT))
        assert str(error) == "OUT_OF_ORDER_SEQUENCE_NUMBER: producer 7 sent sequence 0, but 12 is expected"

    def test_repeated_batches_are_answered_with_their_time(self, world: World) -> None:
        """
        With LogAppendTime the answer to a duplicate has the time of the first append.
        """
        partition = world.partition(timestamp_type=TimestampType.LOG_APPEND_TIME)
        appended(partition, sequenced(0))
        world.now_ms += 5
        assert placed(appended(partition, sequenced(0))) == (0, START_MS, 0)

    @pytest.mark.parametrize(
        ("code", "sent"),
        [
            (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, sequenced(4, epoch=3)),
            (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, sequenced(2, epoch=3)),
            (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, sequenced(3, epoch=4)),
            (ErrorCode.INVALID_PRODUCER_EPOCH, sequenced(3, epoch=2)),
            (ErrorCode.INVALID_PRODUCER_EPOCH, sequenced(0, epoch=2)),
        ],
        ids=["gap", "overlap", "new epoch", "old epoch", "old epoch from 0"],
    )
    def test_refused_sequences_leave_nothing(self, code: ErrorCode, sent: Batch, world: World) -> None:
        """
        A batch out of sequence is refused, and the producer can continue where it was.
        """
        partition = world.partition()
        appended(partition, sequenced(0, 3, epoch=3))
        assert refusal(lambda: partition.append(sent, Origin.CLIENT)).code is code
        assert appended(partition, sequenced(3, epoch=3)).base_offset == 3

    def test_new_epoch_begins_at_zero(self, world: World) -> None:
        """
        A higher epoch restarts the sequence and fences the old one.
        """
        partition = world.partition()
        appended(partition, sequenced(0, 3))
        assert appended(partition, sequenced(0, 3, epoch=1)).base_offset == 3
        assert (
            refusal(lambda: partition.append(sequenced(0, 3), Origin.CLIENT)).code is ErrorCode.INVALID_PRODUCER_EPOCH
        )
        assert appended(partition, sequenced(3, epoch=1)).base_offset == 6

    def test_sequences_wrap(self, world: World) -> None:
        """
        Sequence number 0 follows the largest one, between batches and inside one.
        """
        partition = world.partition()
        assert appended(partition, sequenced(SEQUENCE_MAX - 1, 2)).base_offset == 0
        assert appended(partition, sequenced(0)).base_offset == 2
        appended(partition, sequenced(SEQUENCE_MAX, 3, producer_id=8))
        assert appended(partition, sequenced(2, producer_id=8)).base_offset == 6
        assert appended(partition, sequenced(SEQUENCE_MAX, 3, producer_id=8)).base_offset == 3

    def test_each_partition_has_its_own_sequence(self, world: World) -> None:
        """
        A sequence in one partition implies nothing about another, where it may begin anywhere.
        """
        first, second = world.partition("a"), world.partition("b")
        appended(first, sequenced(0))
        assert appended(second, sequenced(42)).base_offset == 0
        assert list(first.producers().producers) == list(second.producers().producers) == [7]

    def test_batches_without_a_producer_have_no_sequence(self, world: World) -> None:
        """
        Without a producer id, epoch and sequence number mean nothing, and nothing is remembered.
        """
        partition, sent = world.partition(), batch(producer_epoch=-2, base_sequence=7)
        assert [appended(partition, sent).base_offset for _ in range(2)] == [0, 1]
        assert not partition.producers().producers

    def test_silent_producers_expire(self, world: World) -> None:
        """
        Until it expires a producer's sequence is enforced; afterwards it may begin anywhere, and nothing is a
        duplicate.
        """
        partition = world.partition()
        appended(partition, sequenced(0))
        world.now_ms += EXPIRY_MS - 1
        assert appended(partition, sequenced(0)).base_offset == 0
        error = refusal(lambda: partition.append(sequenced(42), Origin.CLIENT))
        assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        world.now_ms += 1
        assert appended(partition, sequenced(0)).base_offset == 1
        world.now_ms += EXPIRY_MS
        assert appended(partition, sequenced(42)).base_offset == 2

    def test_markers_fence(self, world: World) -> None:
        """
        The epoch of a control batch fences earlier ones, and no marker is a duplicate.
        """
        partition = world.partition()
        appended(partition, sequenced(0))
        marker = batch(is_control=True, producer_id=7, producer_epoch=1)
        assert [appended(partition, marker, Origin.COORDINATOR).base_offset for _ in range(2)] == [1, 2]
        assert refusal(lambda: partition.append(sequenced(1), Origin.CLIENT)).code is ErrorCode.INVALID_PRODUCER_EPOCH
        assert appended(partition, sequenced(0, epoch=1)).base_offset == 3
        late = batch(is_control=True, producer_id=7, producer_epoch=0)
        assert refusal(lambda: partition.append(late, Origin.COORDINATOR)).code is ErrorCode.INVALID_PRODUCER_EPOCH


class Coordinators(Started):
    """
    The state of groups and transactional ids is kept in logs.
    """

    has_transactions = True

    def replayed(self, log: IStateLog) -> list[KeyValue]:
        return [pair for piece in result(log.replay()) for pair in piece]

    def test_state_is_in_internal_topics(self, world: World) -> None:
        """
        The topics with Kafka's names are created on first use and are internal.
        """
        assert not world.broker.view().topics
        world.state_log("group", Resource.GROUP)
        assert list(world.broker.view().topics) == ["__consumer_offsets"]
        if self.has_transactions:
            world.state_log("id", Resource.TRANSACTIONAL_ID)
            assert sorted(world.broker.view().topics) == ["__consumer_offsets", "__transaction_state"]
        assert all(topic.internal for topic in world.broker.view().topics.values())

    def test_brokers_without_transactions_refuse_them(self, world: World) -> None:
        """
        They answer with the one error on which every client gives up.
        """
        if not self.has_transactions:
            error = refusal(lambda: world.broker.coordinator(Resource.TRANSACTIONAL_ID, "id"))
            assert error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert world.broker.coordinators(Resource.TRANSACTIONAL_ID) == []

    def test_state_is_replayed(self, world: World) -> None:
        """
        The records of a key's log are replayed oldest first, tombstones included.
        """
        log = world.state_log()
        assert self.replayed(log) == []
        written: list[KeyValue] = [(b"a", b"1"), (b"b", b"2"), (b"a", None)]
        assert noted(log, written[:2]).base_offset == 0
        assert noted(log, written[2:]).base_offset == 2
        assert self.replayed(log) == self.replayed(world.state_log()) == written

    def test_replay_begins_with_the_snapshot(self, world: World) -> None:
        """
        A snapshot replaces everything appended before it.
        """
        log = world.state_log()
        noted(log, [(b"a", b"1"), (b"a", b"2")])
        result(log.snapshot(iter([(b"a", b"2")])))
        noted(log, [(b"b", b"3")])
        assert self.replayed(log) == self.replayed(world.state_log()) == [(b"a", b"2"), (b"b", b"3")]

    def test_groups_and_transactional_ids_have_separate_logs(self, world: World) -> None:
        """
        A group and a transactional id of one name share nothing.
        """
        noted(world.state_log("x", Resource.GROUP), [(b"a", b"1")])
        if self.has_transactions:
            assert self.replayed(world.state_log("x", Resource.TRANSACTIONAL_ID)) == []

    def test_records_are_in_the_partition_kafka_would_choose(self, world: World) -> None:
        """
        Java's hash of the key chooses the partition.
        """
        log = world.state_log("g")  # the hash of a one-letter string is the letter's number
        noted(log, [(b"a", b"1")])
        topic = world.broker.view().topics["__consumer_offsets"]
        index = ord("g") % len(topic.partitions)
        (found,) = stored(fetched(world.broker.partition(topic.id, index), 0))
        assert [(record.key, record.value, record.timestamp) for record in records(found)] == [(b"a", b"1", START_MS)]
        assert log.epoch == found.header.partition_leader_epoch

    def test_deleted_state_is_lost(self, world: World) -> None:
        """
        After the internal topic is deleted, its coordinator is told and cannot write; the next log starts empty.
        """
        log, heard = world.state_log(), list[str]()
        noted(log, [(b"a", b"1")])
        log.on_lost(lambda: heard.append("lost"))
        log.on_lost(lambda: heard.append("cancelled"))()
        result(world.broker.delete_topic(world.broker.view().topics["__consumer_offsets"].id))
        assert heard == ["lost"]
        assert refusal(lambda: log.append([(b"a", b"2")])).code is ErrorCode.NOT_COORDINATOR
        assert self.replayed(world.state_log()) == []


SESSION = "consumer.session.timeout.ms"
HEARTBEAT = "consumer.heartbeat.interval.ms"


def setting(**values: int) -> Callable[[Overrides], Overrides]:
    """
    A change that sets these configs, named without `consumer.`.
    """
    return lambda before: {
        **before,
        **{f"consumer.{name.replace('_', '.')}.ms": str(value) for name, value in values.items()},
    }


class Configs(Started):
    """
    Configs of groups and other resources change, and the view shows it.
    """

    def configure(self, world: World, resource: ConfigResource, change: Callable[[Overrides], Overrides]) -> Overrides:
        """
        Apply a change and return the resource's overrides.
        """
        result(world.broker.change_config(resource, change))
        return dict(world.broker.view().overrides_of(resource))

    def test_resources_start_without_overrides(self, world: World) -> None:
        assert world.broker.view().overrides == {}
        assert world.broker.view().overrides_of(group("g")) == {}

    def test_overrides_are_in_the_view(self, world: World) -> None:
        """
        Each resource has its own overrides, whether or not such a group exists; changes add up.
        """
        assert self.configure(world, group("g"), setting(session_timeout=50_000)) == {SESSION: "50000"}
        assert self.configure(world, group("h"), setting(session_timeout=60_000)) == {SESSION: "60000"}
        both = {SESSION: "50000", HEARTBEAT: "6000"}
        assert self.configure(world, group("g"), setting(heartbeat_interval=6_000)) == both
        assert world.broker.view().overrides == {group("g"): both, group("h"): {SESSION: "60000"}}
        assert group("g") == ConfigResource(ResourceType.GROUP, "g")

    def test_removed_overrides_are_not_in_the_view(self, world: World) -> None:
        self.configure(world, group("g"), setting(session_timeout=50_000))
        assert self.configure(world, group("g"), lambda _: {}) == {}
        assert world.broker.view().overrides == {}

    def test_views_of_overrides_do_not_change(self, world: World) -> None:
        """
        Each effective change creates a view with a higher epoch; a change without effect creates none.
        """
        views, given = [world.broker.view()], {SESSION: "50000"}
        for change in (lambda _: given, lambda before: {**before}, setting(session_timeout=60_000)):
            self.configure(world, group("g"), change)
            given[SESSION] = "1"
            views.append(world.broker.view())
        assert [view.overrides_of(group("g")).get(SESSION) for view in views] == [None, "50000", "50000", "60000"]
        assert views[1] is views[2]
        assert views[0].epoch < views[1].epoch < views[3].epoch
        with pytest.raises(TypeError):
            views[3].overrides_of(group("g"))[SESSION] = "1"  # type: ignore[index]  # that is what is asked

    def test_refused_changes_have_no_effect(self, world: World) -> None:
        """
        The next change is applied.
        """
        self.configure(world, group("g"), setting(session_timeout=50_000))
        before, wrong = world.broker.view(), KafkaError(ErrorCode.INVALID_CONFIG, "no")

        def refuse(_: Overrides) -> Overrides:
            raise wrong

        assert refusal(lambda: world.broker.change_config(group("g"), refuse)) is wrong
        assert world.broker.view() is before
        assert self.configure(world, group("g"), setting(session_timeout=60_000)) == {SESSION: "60000"}

    def test_watchers_see_each_config_change(self, world: World) -> None:
        """
        A listener is called after each change, and topics are unchanged.
        """
        topic, seen = world.topic(), list[Overrides]()
        world.broker.watch(lambda: seen.append(dict(world.broker.view().overrides_of(group("g")))))
        for timeout_ms in (50_000, 60_000):
            self.configure(world, group("g"), setting(session_timeout=timeout_ms))
        self.configure(world, group("g"), lambda _: {})
        assert seen == [{SESSION: "50000"}, {SESSION: "60000"}, {}]
        assert world.broker.view().topics == {"t": topic}


class Behaviour(Configs, Topics, Appends, Reads, Times, Watchers, Idempotence, Coordinators):
    pass
