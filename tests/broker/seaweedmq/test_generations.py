"""
Topics whose partitions others have recreated have each record once that a gateway saw.
"""

import time
from collections.abc import Callable
from typing import cast

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicResponse, TopicRetention
from kgateway.broker.seaweed.protos.schema_pb2 import Field, RecordType, ScalarType, Type
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_conf import read_topic_conf
from kgateway.broker.seaweedmq.layout.topic_file import TopicFile
from kgateway.broker.seaweedmq.layout.topic_paths import TOPIC_CONF
from kgateway.broker.seaweedmq.topics.catalog import TopicCatalog
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.interfaces import IPartition
from kgateway.log_messages import TOPIC_REDUCED
from kgateway.records.batch import Batch
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import appended, batch, fetched, refusal, result, stored
from tests.broker.seaweed.real_reactor import until, wait
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.broker.seaweedmq.gateways import Start, running
from tests.broker.seaweedmq.test_external_changes import is_open, seen
from tests.broker.seaweedmq.test_restarts import config
from tests.records.values import batch_of

Others = Callable[..., ForeignTopic]

ROW_FORMS = pytest.mark.parametrize("form", ["plain", "record"])  # which others can write


@pytest.fixture
def others(cluster: DevCluster, namespace: str) -> Others:
    """
    Recreate the topic `t` with this many partitions, in a folder of its own unless that happens at once.
    """

    def made(count: int, at_once: bool = False) -> ForeignTopic:
        second = int(time.time())
        until(lambda: at_once or int(time.time()) > second)
        return ForeignTopic(cluster, name="t", namespace=namespace, partition_count=count)

    return made


@pytest.fixture
def topics(start: Start, seaweed: SeaweedCluster, namespace: str) -> TopicCatalog:
    return TopicCatalog(seaweed, namespace)


def messages(name: str, count: int) -> list[Message]:
    return [Message(b"key", b"%s%d" % (name.encode(), number)) for number in range(count)]


def sent(name: str, count: int) -> Batch:
    return batch_of([Record(number, 5, b"key", b"%s%d" % (name.encode(), number)) for number in range(count)])


def values(*names_and_counts: tuple[str, int]) -> dict[int, bytes]:
    """
    The expected values of consecutive records, by offset.
    """
    found = [b"%s%d" % (name.encode(), number) for name, count in names_and_counts for number in range(count)]
    return dict(enumerate(found))


def read(partition: IPartition) -> dict[int, bytes | None]:
    """
    All records, by offset; a repeated one is an error.
    """
    found = dict[int, bytes | None]()
    offset = partition.log_start
    while offset < partition.high_watermark:
        came = some_records(partition, offset)
        for record in came:
            assert found.get(record.offset, record.value) == record.value
            found[record.offset] = record.value
        offset = came[-1].offset + 1
    return found


def some_records(partition: IPartition, offset: int) -> list[Record]:
    """
    Records from this offset on. A busy machine may not have read a file in time.
    """
    found: list[Record] = until(
        lambda: [record for each in stored(fetched(partition, offset)) for record in records(each)]
    )
    return found


def opened(broker: SeaweedMQBroker, index: int) -> IPartition:
    topic = seen(broker, "t")
    until(lambda: is_open(broker, topic.id, index))
    return broker.partition(topic.id, index)


def stored_file(topics: TopicCatalog) -> TopicFile:
    found = result(Deferred.fromCoroutine(topics.read("t")))
    assert found
    return found.stored.file


def has_columns(topics: TopicCatalog) -> bool:
    conf = result(Deferred.fromCoroutine(topics._conf("t")))
    assert conf
    return conf.HasField("message_record_type")


def gone_code(broker: SeaweedMQBroker, index: int) -> ErrorCode:
    """
    The error at which producers give up, because a partition is gone; NONE if it takes a record.
    """

    def answer() -> list[ErrorCode]:
        try:
            appended(opened(broker, index), sent("new", 1))
        except KafkaError as error:
            return [] if error.code.retriable else [error.code]
        return [ErrorCode.NONE]

    (found,) = until(answer)
    return cast(ErrorCode, found)


def grown_to(broker: SeaweedMQBroker, count: int) -> None:
    until(lambda: seen(broker, "t") and len(seen(broker, "t").partitions) == count)


def three_of_four_records(broker: SeaweedMQBroker, form: str) -> None:
    """
    A topic of three partitions, and the records of each.
    """
    topic = result(broker.create_topic(NewTopic("t", 3, config(form))))
    for index in range(3):
        appended(broker.partition(topic.id, index), sent(f"old{index}-", 4))


def test_what_was_there_before_the_first_start(start: Start, others: Others, topics: TopicCatalog) -> None:
    """
    A topic of others is shown as its newest generation, and later records follow that.
    """
    others(1).publish(messages("old", 5))
    grown = others(2)
    grown.publish(messages("new", 3))
    grown.publish(messages("right", 2), index=1)
    looked = result(Deferred.fromCoroutine(topics.read("t")))
    with running(start) as broker:
        assert read(opened(broker, 0)) == values(("new", 3))
        assert read(opened(broker, 1)) == values(("right", 2))
        assert appended(opened(broker, 0), sent("ours", 2)).base_offset == 3
    with running(start) as broker:
        assert read(opened(broker, 0)) == values(("new", 3), ("ours", 2))
    again = result(Deferred.fromCoroutine(topics.read("t")))
    assert looked
    assert again
    assert not looked.has_topic_file
    assert looked.stored.file.generations == again.stored.file.generations


@ROW_FORMS
def test_recreated_more_than_once_while_no_gateway_looks(form: str, start: Start, others: Others) -> None:
    """
    The newest generation continues where the last known one ended; records from between are not shown.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, config(form))))
        appended(broker.partition(topic.id, 0), sent("a", 3))
    others(2).publish(messages("mid", 3))
    others(5)
    others(3).publish(messages("last", 4))
    with running(start) as broker:
        assert len(seen(broker, "t").partitions) == 3
        assert read(opened(broker, 0)) == values(("a", 3), ("last", 4))
        assert appended(opened(broker, 0), sent("b", 1)).base_offset == 7
        assert appended(opened(broker, 2), sent("c", 1)).base_offset == 0
    with running(start) as broker:
        assert read(opened(broker, 0)) == values(("a", 3), ("last", 4), ("b", 1))


@ROW_FORMS
def test_a_topic_of_ours_gets_back_what_others_take_from_it(
    form: str, start: Start, others: Others, topics: TopicCatalog
) -> None:
    """
    Its partitions and columns. A partition that was gone continues where it ended, though its broker counts on.
    """
    with running(start) as broker:
        three_of_four_records(broker, form)
        with capturedLogs() as logs:
            others(2)
            until(lambda: [len(each.partitions) for each in stored_file(topics).generations] == [3, 2, 3])
            until(lambda: is_open(broker, seen(broker, "t").id, 2))
        assert [event["count"] for event in logs if event.get("log_format") == TOPIC_REDUCED] == [3]
        assert has_columns(topics) == (form == "record")
        assert len(seen(broker, "t").partitions) == 3
        assert appended(opened(broker, 2), sent("new", 6)).base_offset == 4
        assert read(opened(broker, 2)) == values(("old2-", 4), ("new", 6))
    for number in range(2):
        with running(start) as broker:
            assert read(opened(broker, 2)) == values(("old2-", 4), ("new", 6))
            assert read(opened(broker, 0)) == values(("old0-", 4), *[("more", 1)] * number)
            assert appended(opened(broker, 0), sent("more", 1)).base_offset == 4 + number


def test_columns_that_others_erase_are_restored(start: Start, others: Others, topics: TopicCatalog) -> None:
    """
    The partitions remain what they are.
    """
    with running(start) as broker:
        result(broker.create_topic(NewTopic("t", 1, config("record"))))
        assert not others(1).conf.HasField("message_record_type")
        until(lambda: has_columns(topics))
        assert appended(opened(broker, 0), sent("a", 1)).base_offset == 0
    assert len(stored_file(topics).generations) == 1


def test_partitions_that_others_remove_while_no_gateway_looks(start: Start, others: Others) -> None:
    """
    The next one gets them back, with their records.
    """
    with running(start) as broker:
        three_of_four_records(broker, "plain")
    others(2)
    with running(start) as broker:
        assert [read(opened(broker, index)) for index in range(3)] == [values((f"old{each}-", 4)) for each in range(3)]
        assert appended(opened(broker, 2), sent("new", 1)).base_offset == 4


def test_partitions_that_cannot_be_restored_yet(
    start: Start, others: Others, topics: TopicCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Consumers read them, and producers try again. The next start restores them.
    """

    async def unavailable(*_: object) -> None:
        raise RpcError(Status.UNAVAILABLE, "no broker")

    with running(start) as broker:
        three_of_four_records(broker, "record")
        with monkeypatch.context() as patched:
            patched.setattr(TopicCatalog, "_configure", unavailable)
            others(2)
            until(lambda: len(stored_file(topics).generations) == 2)
            assert read(opened(broker, 2)) == values(("old2-", 4))
            error = refusal(lambda: broker.partition(seen(broker, "t").id, 2).append(sent("new", 1), Origin.CLIENT))
        assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with running(start) as broker:
        assert appended(opened(broker, 2), sent("new", 1)).base_offset == 4


@ROW_FORMS
def test_partitions_that_others_remove_from_their_own_topic(
    form: str, start: Start, cluster: DevCluster, namespace: str, others: Others
) -> None:
    """
    They can be read at the same offsets for as long as they are gone, but refuse records. They continue when they are
    back.
    """
    columns = FORMATS[form].record_type()
    theirs = ForeignTopic(cluster, columns, name="t", namespace=namespace, partition_count=3)
    if form == "plain":
        theirs.publish(messages("old", 4), index=2)
    with running(start) as broker:
        if form == "record":
            until(lambda: seen(broker, "t"))
            appended(opened(broker, 2), sent("old", 4))
        others(2)
        assert gone_code(broker, 2) is ErrorCode.POLICY_VIOLATION
        assert read(opened(broker, 2)) == values(("old", 4))
        assert appended(opened(broker, 1), sent("ours", 1)).base_offset == 0
    with running(start) as broker:
        assert len(seen(broker, "t").partitions) == 3
        assert read(opened(broker, 2)) == values(("old", 4))
        assert gone_code(broker, 2) is ErrorCode.POLICY_VIOLATION
        others(3)
        until(lambda: gone_code(broker, 2) is ErrorCode.NONE)
        assert read(opened(broker, 2)) == values(("old", 4), ("new", 1))


def test_a_topic_of_others_grows_over_what_they_have_removed(start: Start, others: Others) -> None:
    """
    Partitions that clients add come after those that were there once, which get records again.
    """
    others(2).publish(messages("old", 4), index=1)
    with running(start) as broker:
        others(1)
        assert gone_code(broker, 1) is ErrorCode.POLICY_VIOLATION
        assert len(result(broker.add_partitions(seen(broker, "t").id, 3)).partitions) == 3
        assert appended(opened(broker, 1), sent("new", 1)).base_offset == 4
        assert appended(opened(broker, 2), sent("new", 1)).base_offset == 0


def test_fewer_and_as_many_again_while_no_gateway_looks(start: Start, others: Others) -> None:
    """
    What others publish to the new partitions follows the old records, also if those are in no file yet.
    """
    with running(start) as broker:
        three_of_four_records(broker, "plain")
    others(2)
    with others(3).publisher(messages("new", 6), index=2) as found, running(start) as broker:
        assert found == list(range(4, 10))
        assert opened(broker, 2).log_end == 10
        until(lambda: opened(broker, 2).high_watermark == 10)
        assert read(opened(broker, 2)) == values(("old2-", 4), ("new", 6))


def test_fewer_and_as_many_again_in_one_second(start: Start, others: Others, topics: TopicCatalog) -> None:
    """
    Partitions of one range share a folder then.
    """
    others(3).publish(messages("old", 4), index=2)
    found = result(Deferred.fromCoroutine(topics.adopt("t")))
    assert found
    others(2, at_once=True)
    found = result(Deferred.fromCoroutine(topics.store_recreated(found)))
    others(3, at_once=True).publish(messages("new", 6), index=2)
    result(Deferred.fromCoroutine(topics.store_recreated(found)))
    with running(start) as broker:
        assert read(opened(broker, 2)) == values(("old", 4), ("new", 6))
        assert appended(opened(broker, 2), sent("more", 1)).base_offset == 10


def test_what_cannot_be_read_holds_up_no_other_topic(start: Start, others: Others) -> None:
    """
    A topic whose end is unknown is logged.
    """
    with running(start) as broker:
        for name in ("t", "other"):
            result(broker.create_topic(NewTopic(name, 1, config("batch"))))
        made = others(2)
        grown_to(broker, 2)
    damaged = bytearray(batch().data)
    damaged[-1] ^= 1
    made.publish([Message(b"key", bytes(damaged))])
    others(3)
    with capturedLogs() as logs, running(start) as broker:
        assert seen(broker, "other")
        assert not seen(broker, "t")
    assert [event["name"] for event in logs if "is not served" in str(event.get("log_format"))] == ["t"]


def test_what_brokers_have_in_memory_is_waited_for(start: Start, others: Others) -> None:
    """
    The ends of recreated partitions include it.
    """
    with running(start) as broker:
        before = others(1)
        grown_to(broker, 1)
        with before.publisher(messages("old", 5)):
            others(2, at_once=True)
            grown_to(broker, 2)
            assert appended(opened(broker, 0), sent("new", 1)).base_offset == 5


def test_what_others_set_stays_when_a_topic_grows_here(start: Start, topics: TopicCatalog, filer: Filer) -> None:
    """
    SeaweedMQ would forget its columns, those of its key, its retention and the format of its schema.
    """
    columns = [("id", ScalarType.INT64), ("city", ScalarType.STRING)]
    fields = [
        Field(name=name, field_index=index, type=Type(scalar_type=kind)) for index, (name, kind) in enumerate(columns)
    ]
    set_by_others = ConfigureTopicResponse(
        message_record_type=RecordType(fields=fields),
        key_columns=["id"],
        schema_format="AVRO",
        retention=TopicRetention(retention_seconds=77, enabled=True),
    )
    result(Deferred.fromCoroutine(topics.rpc.configure_like(set_by_others, "t", 1)))
    with running(start) as broker:
        result(broker.add_partitions(seen(broker, "t").id, 2))
    entry = wait(filer.entry(f"{topics.folder('t')}/{TOPIC_CONF}"))
    assert entry
    conf = read_topic_conf(entry.content)
    assert len(conf.broker_partition_assignments) == 2
    conf.ClearField("broker_partition_assignments")
    assert conf == set_by_others
