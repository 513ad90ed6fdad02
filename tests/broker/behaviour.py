"""
What every broker does: the tests that each of them passes.

The tests of a broker are a fixture `make`, which says how one is made, and a class that inherits them all:

    @pytest.fixture(scope="module")
    def make() -> Make: ...


    class TestMine(Behaviour): ...
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.logger import LogEvent, capturedLogs
from twisted.python.failure import Failure

from kgateway.broker.producers import SEQUENCE_MAX
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import ConfigKind, ConfigResource, Overrides, group
from kgateway.cluster.partition import Appended, EpochEnd, Found, Isolation, Origin, Read
from kgateway.cluster.view import NewTopic, Topic
from kgateway.interfaces import IBroker, IPartition, IStateLog, KeyValue
from kgateway.records.batch import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    PLACE_SIZE,
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
from tests.records.sealed import sealed
from tests.records.values import batch_of

Make = Callable[[Callable[[], int], int], IBroker]  # of the wall clock, and after how long producers are forgotten

T = TypeVar("T")

START_MS = 1_800_000_000_000
EXPIRY_MS = 60_000
PLENTY = 1 << 20


patience: Callable[[Deferred[None]], None] | None = None  # lets the reactor run until this fires


@overload
def result(value: Deferred[T]) -> T: ...
@overload
def result(value: T) -> T: ...
def result(value: Any) -> Any:
    """
    What has come of a call, now; its failure is raised. A broker behind a network is waited for.
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
    The error that the call, or what it promised, ends with.
    """
    with pytest.raises(KafkaError) as error:
        result(call())
    return error.value


def batch(count: int = 1, *, timestamp: int = START_MS, **options: Any) -> Batch:
    """
    A batch as a producer sends it, of so many records.
    """
    return at_times(*[timestamp] * count, **options)


def at_times(*timestamps: int, **options: Any) -> Batch:
    """
    A batch with a record for each timestamp.
    """
    return batch_of([Record(n, time, b"key", b"value") for n, time in enumerate(timestamps)], **options)


def sequenced(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7) -> Batch:
    """
    A batch of an idempotent producer.
    """
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def appended(partition: IPartition, sent: Batch, origin: Origin = Origin.CLIENT) -> Appended:
    """
    Append a batch, and wait until it is safe.
    """
    answer = partition.append(sent, origin)
    for waited in (answer.stored, answer.safe):
        if waited is not None:
            result(waited)
    return answer


def noted(log: IStateLog, records: list[KeyValue]) -> Appended:
    """
    Append to the state of a coordinator, and wait until it is safe.
    """
    answer = log.append(records)
    for waited in (answer.stored, answer.safe):
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
    The batches of what was read; one buffer may hold several.
    """
    return [found for data in read.batches for found in batches(data)]


def offsets(read: Read) -> list[int]:
    """
    Where the batches of what was read begin.
    """
    return [found.header.base_offset for found in stored(read)]


def ours(logged: Sequence[LogEvent]) -> list[LogEvent]:
    """
    What was logged, but for what a reactor says of itself.
    """
    return [event for event in logged if not event["log_namespace"].startswith("twisted.internet")]


class World:
    """
    A broker, and the time that it sees.
    """

    def __init__(self, make: Make) -> None:
        self.now_ms = START_MS
        self.broker = make(lambda: self.now_ms, EXPIRY_MS)
        self.configs: dict[str, Any] = getattr(make, "configs", {})  # of all topics

    def topic(self, name: str = "t", partition_count: int = 1, **config: Any) -> Topic:
        new = NewTopic(name, partition_count, TopicConfig(**{**self.configs, **config}))
        return result(self.broker.create_topic(new))

    def partition(self, name: str = "t", **config: Any) -> IPartition:
        """
        The partition of a new topic.
        """
        return self.broker.partition(self.topic(name, **config).id, 0)

    def state_log(self, key: str = "group", resource: Resource = Resource.GROUP) -> IStateLog:
        log = self.broker.coordinator(resource, key)
        assert IStateLog.providedBy(log)
        return log


@contextmanager
def running(make: Make) -> Iterator[World]:
    """
    A broker, started and in the end stopped.
    """
    world = World(make)
    result(world.broker.start())
    try:
        yield world
    finally:
        result(world.broker.stop())


class Started:
    """
    Gives each test a broker that runs.
    """

    @pytest.fixture
    def world(self, make: Make) -> Iterator[World]:
        with running(make) as world:
            yield world


class Topics(Started):
    """
    Topics come, grow and go, and the view tells of it.
    """

    def test_cluster_has_this_node(self, world: World) -> None:
        """
        The view names the cluster, this node in it, and a controller among its nodes.
        """
        view = world.broker.view()
        assert str(Uuid.parse(view.cluster_id)) == view.cluster_id
        assert view.node(world.broker.node_id)
        assert view.node(view.controller_id)

    def test_new_topic_is_in_the_view(self, world: World) -> None:
        """
        A topic is found by name and by id, as it was asked for, each partition led by a node of the cluster.
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
        """
        A topic is internal if it was made so.
        """
        assert result(world.broker.create_topic(NewTopic("_schemas", 1, internal=True))).internal

    def test_partition_knows_its_topic(self, world: World) -> None:
        """
        A partition has the topic, its own index, and the leader epoch that the view tells.
        """
        topic = world.topic(partition_count=2)
        partition = world.broker.partition(topic.id, 1)
        assert (partition.topic, partition.index) == (topic, 1)
        assert partition.leader_epoch == topic.partitions[1].leader_epoch
        assert partition.lost is None

    def test_names_are_taken_once(self, world: World) -> None:
        """
        There are no two topics of one name.
        """
        topic = world.topic("orders")
        error = refusal(lambda: world.broker.create_topic(NewTopic("orders", 1)))
        assert str(error) == "TOPIC_ALREADY_EXISTS: there is a topic orders already"
        assert world.broker.view().topics["orders"] == topic

    def test_topics_have_partitions(self, world: World) -> None:
        """
        A topic cannot be made with none.
        """
        error = refusal(lambda: world.broker.create_topic(NewTopic("orders", 0)))
        assert error.code is ErrorCode.INVALID_PARTITIONS
        assert not world.broker.view().topics

    def test_topics_grow(self, world: World) -> None:
        """
        New partitions are empty, and those that were there keep what they have and know of the change.
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
        The number of partitions can only be raised, and only of a topic that is there.
        """
        topic = world.topic(partition_count=3)
        for count in (2, 3):
            error = refusal(partial(world.broker.add_partitions, topic.id, count))
            assert str(error) == f"INVALID_PARTITIONS: topic t has 3 partitions; {count} are not more"
        assert refusal(lambda: world.broker.add_partitions(ONE, 9)).code is ErrorCode.UNKNOWN_TOPIC_ID

    def test_unknown_partitions(self, world: World) -> None:
        """
        A topic that is not there and a partition that it has not are told apart.
        """
        topic = world.topic(partition_count=2)
        assert refusal(lambda: world.broker.partition(ONE, 0)).code is ErrorCode.UNKNOWN_TOPIC_ID
        for index in (-1, 2):
            error = refusal(partial(world.broker.partition, topic.id, index))
            assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, index

    def test_deleted_topic_is_gone(self, world: World) -> None:
        """
        A deleted topic is in no view, has no partitions, and cannot be deleted again; the others stay.
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
    def test_partition_of_a_deleted_topic(self, use: Callable[[IPartition], Any], world: World) -> None:
        """
        Whoever still has a partition of a deleted topic is told so, whatever he does with it.
        """
        partition = world.partition()
        appended(partition, batch())
        result(world.broker.delete_topic(partition.topic.id))
        error = refusal(lambda: use(partition))
        assert str(error) == "UNKNOWN_TOPIC_OR_PARTITION: topic t was deleted" == str(partition.lost)
        assert error is not partition.lost  # raised again and again, one error would collect all tracebacks

    def test_name_of_a_deleted_topic(self, world: World) -> None:
        """
        A name can be had again; what was under it before is another topic.
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
        Who holds a view is not surprised: each change makes a new one, of a higher epoch.
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
        A listener is called after each change, until it is cancelled.
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

    def test_producer_ids_are_fresh(self, world: World) -> None:
        """
        No id is given twice, and none that stands for no producer.
        """
        given_out = [result(world.broker.new_producer_id()) for _ in range(100)]
        assert len(set(given_out)) == 100
        assert min(given_out) >= 0


class Appends(Started):
    """
    Batches get their offsets, and are kept as they came.
    """

    def test_offsets_are_dense(self, world: World) -> None:
        """
        Each batch begins where the one before it ended, in each partition by itself.
        """
        first, second = world.partition("a"), world.partition("b")
        assert [appended(first, batch(count)).base_offset for count in (3, 1, 2)] == [0, 3, 4]
        assert appended(second, batch()).base_offset == 0
        assert (first.log_start, first.last_stable, first.high_watermark, first.log_end) == (0, 6, 6, 6)

    @pytest.mark.parametrize("codec", Codec)
    def test_batches_are_kept_as_they_came(self, codec: Codec, world: World) -> None:
        """
        Offset and leader epoch are written into the head of a batch; behind it not a bit is changed.
        """
        partition, sent = world.partition(), batch(2, codec=codec)
        appended(partition, sent)
        appended(partition, sent)
        for found, base_offset in zip(stored(fetched(partition, 0)), (0, 2), strict=True):
            assert found.header.base_offset == base_offset
            assert found.header.partition_leader_epoch == partition.leader_epoch
            assert found.data[8:12] == sent.data[8:12]
            assert found.data[PLACE_SIZE:] == sent.data[PLACE_SIZE:]

    def test_what_is_kept_is_a_copy(self, world: World) -> None:
        """
        The buffer that a batch came in may be used again.
        """
        partition, sent = world.partition(), batch()
        frame = bytearray(sent.data)
        appended(partition, Batch(sent.header, memoryview(frame)))
        frame[:] = bytes(len(frame))
        assert [bytes(found.data[PLACE_SIZE:]) for found in stored(fetched(partition, 0))] == [sent.data[PLACE_SIZE:]]

    def test_answer_to_an_append(self, world: World) -> None:
        """
        The producer learns the offset, that its timestamps were kept, and where the log begins.
        """
        answer = appended(world.partition(), batch())
        assert answer[:3] == (0, -1, 0)

    @pytest.mark.parametrize(
        ("code", "config", "sent"),
        [
            (ErrorCode.MESSAGE_TOO_LARGE, {"max_message_bytes": len(batch().data) - 1}, batch()),
            (ErrorCode.CORRUPT_MESSAGE, {}, batch()._replace(data=memoryview(bytes(len(batch().data))))),
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
        A client's batch that breaks a rule is refused by its code, and the log is as it was.
        """
        partition, called = world.partition(**config), list[str]()
        partition.watch(lambda: called.append("moved"))
        assert refusal(lambda: partition.append(sent, Origin.CLIENT)).code is code
        assert (partition.log_end, called) == (0, [])

    def test_coordinators_write_control_batches(self, world: World) -> None:
        """
        What ends a transaction takes an offset as other batches do.
        """
        partition = world.partition()
        marker = batch(is_control=True, producer_id=7, producer_epoch=0)
        assert appended(partition, marker, Origin.COORDINATOR).base_offset == 0
        assert stored(fetched(partition, 0))[0].header.attributes & CONTROL_BIT
        assert appended(partition, batch()).base_offset == 1

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
    def test_broker_stamps_where_the_topic_says_so(self, codec: Codec, world: World) -> None:
        """
        With LogAppendTime all records have the time of the append, whatever time the producer set.
        """
        partition = world.partition(timestamp_type=TimestampType.LOG_APPEND_TIME)
        world.now_ms += 5
        answer = appended(partition, at_times(0, START_MS * 2, -1, codec=codec))
        assert answer[:3] == (0, START_MS + 5, 0)
        (found,) = stored(fetched(partition, 0))
        assert found.header.attributes & LOG_APPEND_TIME_BIT
        assert crc_holds(found)
        assert [(record.timestamp, record.value) for record in records(found)] == [(START_MS + 5, b"value")] * 3


class Reads(Started):
    """
    What was appended is read back, in whole batches.
    """

    @pytest.fixture
    def three(self, world: World) -> IPartition:
        """
        A partition with batches of 2, 3 and 1 records, from offset 0, 2 and 5.
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
        The first batch is the one that has the offset, be it inside.
        """
        read = fetched(three, offset)
        assert offsets(read) == found
        assert read.size == sum(len(found.data) for found in stored(read))
        assert read[2:] == (6, 6, 0, None)

    def test_as_many_batches_as_fit(self, three: IPartition) -> None:
        """
        Batches are given as long as they fit into `max_bytes`, and never a part of one.
        """
        first, second, third = (len(found.data) for found in stored(fetched(three, 0)))
        fitting = {0: 0, first - 1: 0, first: 1, first + second - 1: 1, first + second: 2, first + second + third: 3}
        for max_bytes, count in fitting.items():
            read = fetched(three, 0, max_bytes)
            assert (len(stored(read)), read.size) == (count, sum((first, second, third)[:count])), max_bytes
        assert offsets(fetched(three, 2, second)) == [2]

    @pytest.mark.parametrize("max_bytes", [-1, 0, 1])
    def test_one_batch_at_least(self, max_bytes: int, three: IPartition) -> None:
        """
        A consumer that can take one batch too large gets the first, and none that follows.
        """
        assert offsets(fetched(three, 3, max_bytes, at_least_one=True)) == [2]
        assert offsets(fetched(three, 3, max_bytes)) == []

    def test_nothing_at_the_end(self, three: IPartition) -> None:
        """
        At the end of the log there is nothing yet, which is no error.
        """
        assert fetched(three, 6, at_least_one=True) == Read([], 0, 6, 6, 0)

    def test_nothing_in_an_empty_log(self, world: World) -> None:
        """
        A new log can be read at 0.
        """
        assert fetched(world.partition(), 0, at_least_one=True) == Read([], 0, 0, 0, 0)

    @pytest.mark.parametrize("offset", [-1, 7])
    def test_offsets_that_are_not_there(self, offset: int, three: IPartition) -> None:
        """
        Before the start of the log and behind its end is out of range.
        """
        error = refusal(lambda: fetched(three, offset))
        assert str(error) == f"OFFSET_OUT_OF_RANGE: offset {offset} is not in the log, which goes from 0 to 6"

    def test_committed_records_are_read(self, three: IPartition) -> None:
        """
        Who reads what is committed gets as far as the last stable offset, and learns that nothing was aborted.
        """
        for offset, found in {0: [0, 2, 5], 6: []}.items():
            read = fetched(three, offset, isolation=Isolation.READ_COMMITTED)
            assert (offsets(read), read.aborted) == (found, [])

    def test_epochs_end(self, three: IPartition) -> None:
        """
        The epoch that is now ends where the log does; of a later one, or none, the log knows nothing.
        """
        epoch = three.leader_epoch
        assert three.epoch_end(epoch) == EpochEnd(epoch, 6)
        assert three.epoch_end(epoch + 1) is None
        assert three.epoch_end(-1) is None

    def test_log_is_a_list_of_batches(self, make: Make) -> None:
        """
        Whatever is appended and read in which order, it is what a list of batches would give.
        """

        reads = st.tuples(st.integers(0, 20), st.integers(0, 400), st.booleans())

        # A function of its own: Hypothesis wants each to belong to one class, and every broker inherits this one.
        @given(st.lists(st.integers(1, 4) | reads, max_size=40))
        def holds(steps: list[int | tuple[int, int, bool]]) -> None:
            with running(make) as world:
                compare(world.partition(), steps)

        holds()


def compare(partition: IPartition, steps: list[int | tuple[int, int, bool]]) -> None:
    """
    Do the same to a partition and to a list of batches: append so many records, or read.
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
            found = [(each.header.base_offset, each.data[PLACE_SIZE:]) for each in stored(read)]
            assert found == expected(model, offset, max_bytes, at_least_one)


def expected(
    model: list[tuple[range, Batch]], offset: int, max_bytes: int, at_least_one: bool
) -> list[tuple[int, memoryview]]:
    """
    What a read finds in a list of batches with their offsets: where each begins, and its bytes behind the head.
    """
    found: list[tuple[int, memoryview]] = []
    for place, sent in model:
        if place.stop <= offset:
            continue
        max_bytes -= len(sent.data)
        if max_bytes < 0 and (found or not at_least_one):
            break
        found.append((place.start, sent.data[PLACE_SIZE:]))
    return found


class Times(Started):
    """
    Records are found by their timestamps.
    """

    def test_first_record_from_a_time_on(self, world: World) -> None:
        """
        It is the first by offset, though timestamps go up and down, in compressed batches as in others.
        """
        partition = world.partition()
        appended(partition, at_times(20, 40, 10, codec=Codec.GZIP))
        appended(partition, at_times(30))
        appended(partition, at_times(35, 60, 50))
        expected = {0: (0, 20), 20: (0, 20), 21: (1, 40), 40: (1, 40), 41: (5, 60), 60: (5, 60), 61: None}
        epoch = partition.leader_epoch
        for timestamp, found in expected.items():
            assert result(partition.find_time(timestamp)) == (found and Found(*found, epoch)), timestamp
        appended(partition, at_times(70))
        assert result(partition.find_time(61)) == Found(7, 70, epoch)

    def test_first_record_with_the_largest_timestamp(self, world: World) -> None:
        """
        Of several records with the largest timestamp it is the first; what comes later with a larger one is found then.
        """
        partition = world.partition()
        assert result(partition.find_max_time()) is None
        assert result(partition.find_time(0)) is None
        appended(partition, at_times(-1, -1))
        assert result(partition.find_max_time()) is None
        appended(partition, at_times(20, 40))
        appended(partition, at_times(40, 40))
        assert result(partition.find_max_time()) == Found(3, 40, partition.leader_epoch)
        appended(partition, at_times(30, 50))
        assert result(partition.find_max_time()) == Found(7, 50, partition.leader_epoch)

    @pytest.mark.parametrize("claimed", [-1, 0, 15, 20, 25, START_MS])
    def test_headers_are_not_believed(self, claimed: int, world: World) -> None:
        """
        The records of a batch have the timestamps they have, whatever its header says is the largest.
        """
        partition = world.partition()
        appended(partition, sealed(at_times(10, 20), max_timestamp=claimed))
        appended(partition, at_times(15, 30))
        epoch = partition.leader_epoch
        assert result(partition.find_time(11)) == Found(1, 20, epoch)
        assert result(partition.find_time(21)) == Found(3, 30, epoch)
        assert result(partition.find_time(31)) is None
        assert result(partition.find_max_time()) == Found(3, 30, epoch)

    def test_time_of_the_append(self, world: World) -> None:
        """
        With LogAppendTime the first record of a batch has the time of all of it.
        """
        partition = world.partition(timestamp_type=TimestampType.LOG_APPEND_TIME)
        for _ in range(2):
            appended(partition, at_times(5, START_MS * 2))
            world.now_ms += 10
        epoch = partition.leader_epoch
        assert result(partition.find_time(1)) == Found(0, START_MS, epoch)
        assert result(partition.find_time(START_MS + 1)) == Found(2, START_MS + 10, epoch)
        assert result(partition.find_time(START_MS + 11)) is None
        assert result(partition.find_max_time()) == Found(2, START_MS + 10, epoch)


class Watchers(Started):
    """
    Listeners of a partition.
    """

    def test_listeners_hear_of_each_append(self, world: World) -> None:
        """
        A listener is called when the watermark has moved, until it is cancelled; cancelling again does nothing.
        """
        partition, seen = world.partition(), list[int]()
        cancel = partition.watch(lambda: seen.append(partition.high_watermark))
        appended(partition, batch(2))
        appended(partition, batch())
        cancel()
        cancel()
        appended(partition, batch())
        assert seen == [2, 3]

    def test_a_listener_may_be_there_twice(self, world: World) -> None:
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

    def test_failing_listeners_harm_nobody(self, world: World) -> None:
        """
        A listener that raises fails neither the append nor the other listeners; that it did is logged.
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
        A listener may cancel itself and others; who is cancelled is not called, and who is new waits for the next time.
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

    def test_listeners_hear_of_the_deletion(self, world: World) -> None:
        """
        When the topic goes a listener is called, finds the partition lost, and the topic in no view.
        """
        partition, seen = world.partition(), list[bool]()
        partition.watch(lambda: seen.append(partition.lost is not None and not world.broker.view().topics))
        result(world.broker.delete_topic(partition.topic.id))
        assert seen == [True]


class Idempotence(Started):
    """
    Each batch of an idempotent producer is there once, in its order.
    """

    def test_repeated_batches_are_answered_with_their_offset(self, world: World) -> None:
        """
        The last five batches of a producer can be sent again; they are not appended again.
        """
        partition = world.partition()
        sent = [sequenced(sequence, 2) for sequence in range(0, 12, 2)]
        for each in sent:
            appended(partition, each)
        assert [appended(partition, each)[:3] for each in sent[1:]] == [(offset, -1, 0) for offset in (2, 4, 6, 8, 10)]
        assert partition.log_end == 12
        error = refusal(lambda: partition.append(sent[0], Origin.CLIENT))
        assert str(error) == "OUT_OF_ORDER_SEQUENCE_NUMBER: producer 7 sends sequence 0, and 12 is next"

    def test_repeated_batches_are_answered_with_their_time(self, world: World) -> None:
        """
        With LogAppendTime the answer to a repeated batch has the time of the first append.
        """
        partition = world.partition(timestamp_type=TimestampType.LOG_APPEND_TIME)
        appended(partition, sequenced(0))
        world.now_ms += 5
        assert appended(partition, sequenced(0))[:3] == (0, START_MS, 0)

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
        What does not follow is refused, and the producer can go on where it was.
        """
        partition = world.partition()
        appended(partition, sequenced(0, 3, epoch=3))
        assert refusal(lambda: partition.append(sent, Origin.CLIENT)).code is code
        assert appended(partition, sequenced(3, epoch=3)).base_offset == 3

    def test_new_epoch_begins_at_zero(self, world: World) -> None:
        """
        A raised epoch starts the sequence anew, and fences the old one.
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
        After the largest sequence number comes 0, between batches and inside one.
        """
        partition = world.partition()
        assert appended(partition, sequenced(SEQUENCE_MAX - 1, 2)).base_offset == 0
        assert appended(partition, sequenced(0)).base_offset == 2
        appended(partition, sequenced(SEQUENCE_MAX, 3, producer_id=8))
        assert appended(partition, sequenced(2, producer_id=8)).base_offset == 6
        assert appended(partition, sequenced(SEQUENCE_MAX, 3, producer_id=8)).base_offset == 3

    def test_each_partition_has_its_own_sequence(self, world: World) -> None:
        """
        What a producer sent to one partition says nothing of another, where it may begin anywhere.
        """
        first, second = world.partition("a"), world.partition("b")
        appended(first, sequenced(0))
        assert appended(second, sequenced(42)).base_offset == 0
        assert list(first.producers().producers) == list(second.producers().producers) == [7]

    def test_batches_without_a_producer_have_no_order(self, world: World) -> None:
        """
        Without a producer id, epoch and sequence number mean nothing, and nothing is remembered.
        """
        partition, sent = world.partition(), batch(producer_epoch=-2, base_sequence=7)
        assert [appended(partition, sent).base_offset for _ in range(2)] == [0, 1]
        assert not partition.producers().producers

    def test_silent_producers_are_forgotten(self, world: World) -> None:
        """
        A producer that sent nothing for long may begin anywhere, and repeats nothing; until then its order holds.
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
        The epoch in a control batch holds for the producer from then on, and no marker is a duplicate.
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
    The state of groups and transactional ids is in logs.
    """

    has_transactions = True

    def replayed(self, log: IStateLog) -> list[KeyValue]:
        return [pair for piece in result(log.replay()) for pair in piece]

    def test_state_is_in_internal_topics(self, world: World) -> None:
        """
        The topics of Kafka's names are made when there is something to coordinate, and are internal.
        """
        assert not world.broker.view().topics
        world.state_log("group", Resource.GROUP)
        assert list(world.broker.view().topics) == ["__consumer_offsets"]
        if self.has_transactions:
            world.state_log("id", Resource.TRANSACTIONAL_ID)
            assert sorted(world.broker.view().topics) == ["__consumer_offsets", "__transaction_state"]
        assert all(topic.internal for topic in world.broker.view().topics.values())

    def test_who_has_no_transactions_says_so(self, world: World) -> None:
        """
        By the one error at which every client gives up.
        """
        if not self.has_transactions:
            error = refusal(lambda: world.broker.coordinator(Resource.TRANSACTIONAL_ID, "id"))
            assert error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert world.broker.coordinators(Resource.TRANSACTIONAL_ID) == []

    def test_state_comes_back(self, world: World) -> None:
        """
        What was appended to the log of a key is replayed by it, oldest first, tombstones too.
        """
        log = world.state_log()
        assert self.replayed(log) == []
        written: list[KeyValue] = [(b"a", b"1"), (b"b", b"2"), (b"a", None)]
        assert noted(log, written[:2]).base_offset == 0
        assert noted(log, written[2:]).base_offset == 2
        assert self.replayed(log) == self.replayed(world.state_log()) == written

    def test_replay_begins_with_the_snapshot(self, world: World) -> None:
        """
        A snapshot stands for all that was appended before it.
        """
        log = world.state_log()
        noted(log, [(b"a", b"1"), (b"a", b"2")])
        result(log.snapshot(iter([(b"a", b"2")])))
        noted(log, [(b"b", b"3")])
        assert self.replayed(log) == self.replayed(world.state_log()) == [(b"a", b"2"), (b"b", b"3")]

    def test_one_log_for_each_kind(self, world: World) -> None:
        """
        A group and a transactional id of one name have nothing in common.
        """
        noted(world.state_log("x", Resource.GROUP), [(b"a", b"1")])
        if self.has_transactions:
            assert self.replayed(world.state_log("x", Resource.TRANSACTIONAL_ID)) == []

    def test_records_are_in_the_partition_kafka_would_choose(self, world: World) -> None:
        """
        What is appended for a key is in the partition that Java's hash of it says.
        """
        log = world.state_log("g")  # a string of one letter has its number for a hash
        noted(log, [(b"a", b"1")])
        topic = world.broker.view().topics["__consumer_offsets"]
        index = ord("g") % len(topic.partitions)
        (found,) = stored(fetched(world.broker.partition(topic.id, index), 0))
        assert [(record.key, record.value, record.timestamp) for record in records(found)] == [(b"a", b"1", START_MS)]
        assert log.epoch == found.header.partition_leader_epoch

    def test_deleted_state_is_lost(self, world: World) -> None:
        """
        When the internal topic goes, who coordinates hears of it and can write no more; the next one begins anew.
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
    The change that sets these, by their names without `consumer.`.
    """
    return lambda before: {
        **before,
        **{f"consumer.{name.replace('_', '.')}.ms": str(value) for name, value in values.items()},
    }


class Configs(Started):
    """
    Configs of groups and other resources change, and the view tells of it.
    """

    def configure(self, world: World, resource: ConfigResource, change: Callable[[Overrides], Overrides]) -> Overrides:
        """
        Change a config; what is set then.
        """
        result(world.broker.change_config(resource, change))
        return dict(world.broker.view().overrides_of(resource))

    def test_nothing_is_set_at_first(self, world: World) -> None:
        """
        A resource for which nothing was set has no overrides.
        """
        assert world.broker.view().overrides == {}
        assert world.broker.view().overrides_of(group("g")) == {}

    def test_what_is_set_is_in_the_view(self, world: World) -> None:
        """
        Each resource has what was set for it, whichever group there is; changes add up.
        """
        assert self.configure(world, group("g"), setting(session_timeout=50_000)) == {SESSION: "50000"}
        assert self.configure(world, group("h"), setting(session_timeout=60_000)) == {SESSION: "60000"}
        both = {SESSION: "50000", HEARTBEAT: "6000"}
        assert self.configure(world, group("g"), setting(heartbeat_interval=6_000)) == both
        assert world.broker.view().overrides == {group("g"): both, group("h"): {SESSION: "60000"}}
        assert group("g") == ConfigResource(ConfigKind.GROUP, "g")

    def test_what_is_set_no_more_is_gone(self, world: World) -> None:
        """
        A resource of which all overrides are removed is not in the view.
        """
        self.configure(world, group("g"), setting(session_timeout=50_000))
        assert self.configure(world, group("g"), lambda _: {}) == {}
        assert world.broker.view().overrides == {}

    def test_overrides_do_not_change(self, world: World) -> None:
        """
        Who holds a view is not surprised: each change makes a new one, of a higher epoch; none is made where nothing
        changes.
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

    def test_refused_changes(self, world: World) -> None:
        """
        A change may refuse, and then nothing has changed; the next one is made.
        """
        self.configure(world, group("g"), setting(session_timeout=50_000))
        before, wrong = world.broker.view(), KafkaError(ErrorCode.INVALID_CONFIG, "no")

        def refuse(_: Overrides) -> Overrides:
            raise wrong

        assert refusal(lambda: world.broker.change_config(group("g"), refuse)) is wrong
        assert world.broker.view() is before
        assert self.configure(world, group("g"), setting(session_timeout=60_000)) == {SESSION: "60000"}

    def test_watchers_see_each_config(self, world: World) -> None:
        """
        A listener is called after each change, and topics stay as they are.
        """
        topic, seen = world.topic(), list[Overrides]()
        world.broker.watch(lambda: seen.append(dict(world.broker.view().overrides_of(group("g")))))
        for timeout_ms in (50_000, 60_000):
            self.configure(world, group("g"), setting(session_timeout=timeout_ms))
        self.configure(world, group("g"), lambda _: {})
        assert seen == [{SESSION: "50000"}, {SESSION: "60000"}, {}]
        assert world.broker.view().topics == {"t": topic}


class Behaviour(Configs, Topics, Appends, Reads, Times, Watchers, Idempotence, Coordinators):
    """
    All of it.
    """
