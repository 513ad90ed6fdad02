"""
Topics whose partitions others have made anew, once or more often, whether a gateway looked or not: all is there, once.
"""

import time
from collections.abc import Callable

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicResponse, TopicRetention
from kgateway.broker.seaweed.protos.schema_pb2 import Field, RecordType, ScalarType, Type
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.forms.form import Message
from kgateway.broker.seaweedmq.layout import TOPIC_CONF
from kgateway.broker.seaweedmq.topic_conf import read_topic_conf
from kgateway.broker.seaweedmq.topics import Topics
from kgateway.cluster.view import NewTopic
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch
from kgateway.records.record import Record, records
from tests.broker.behaviour import appended, batch, fetched, result, stored
from tests.broker.seaweed.running import until, wait
from tests.broker.seaweedmq.published import Published
from tests.broker.seaweedmq.starting import Start, running
from tests.broker.seaweedmq.test_following import is_open, seen
from tests.broker.seaweedmq.test_restarts import config
from tests.records.values import batch_of

Others = Callable[..., Published]

ROW_FORMS = pytest.mark.parametrize("form", ["plain", "record"])  # which others can write


@pytest.fixture
def others(cluster: DevCluster, namespace: str) -> Others:
    """
    Make the topic `t` anew, of so many partitions, and in a folder of its own unless it is done at once.
    """

    def made(count: int, at_once: bool = False) -> Published:
        second = int(time.time())
        until(lambda: at_once or int(time.time()) > second)
        return Published(cluster, name="t", namespace=namespace, partition_count=count)

    return made


@pytest.fixture
def topics(start: Start, seaweed: Seaweed, namespace: str) -> Topics:
    """
    As a gateway has them.
    """
    return Topics(seaweed, namespace)


def messages(name: str, count: int) -> list[Message]:
    return [Message(b"key", b"%s%d" % (name.encode(), number)) for number in range(count)]


def sent(name: str, count: int) -> Batch:
    return batch_of([Record(number, 5, b"key", b"%s%d" % (name.encode(), number)) for number in range(count)])


def values(*names_and_counts: tuple[str, int]) -> dict[int, bytes]:
    """
    By offset, what is to be read of records that follow one another.
    """
    found = [b"%s%d" % (name.encode(), number) for name, count in names_and_counts for number in range(count)]
    return dict(enumerate(found))


def read(partition: IPartition) -> dict[int, bytes | None]:
    """
    All records, by offset; none comes twice.
    """
    found = dict[int, bytes | None]()
    offset = partition.log_start
    while offset < partition.high_watermark:
        came = [record for each in stored(fetched(partition, offset)) for record in records(each)]
        assert came
        for record in came:
            assert found.get(record.offset, record.value) == record.value
            found[record.offset] = record.value
        offset = came[-1].offset + 1
    return found


def opened(broker: SeaweedMQBroker, index: int) -> IPartition:
    topic = seen(broker, "t")
    until(lambda: is_open(broker, topic.id, index))
    return broker.partition(topic.id, index)


def grown_to(broker: SeaweedMQBroker, count: int) -> None:
    until(lambda: seen(broker, "t") and len(seen(broker, "t").partitions) == count)


def three_of_four_records(broker: SeaweedMQBroker, form: str) -> None:
    """
    A topic of three partitions, and what each has.
    """
    topic = result(broker.create_topic(NewTopic("t", 3, config(form))))
    for index in range(3):
        appended(broker.partition(topic.id, index), sent(f"old{index}-", 4))


def test_what_was_there_before_the_first_start(start: Start, others: Others, topics: Topics) -> None:
    """
    A topic of others is shown from the first of its generations on; what comes goes on behind them.
    """
    others(1).publish(messages("old", 5))
    grown = others(2)
    grown.publish(messages("new", 3))
    grown.publish(messages("right", 2), index=1)
    looked = result(Deferred.fromCoroutine(topics.seen("t")))
    with capturedLogs() as logs, running(start) as broker:
        assert read(opened(broker, 0)) == values(("old", 5), ("new", 3))
        assert read(opened(broker, 1)) == values(("right", 2))
        assert appended(opened(broker, 0), sent("ours", 2)).base_offset == 8
    told = [event for event in logs if "of which nobody knew" in str(event.get("log_format"))]
    assert [(event["name"], event["count"]) for event in told] == [("t", 1)]
    with running(start) as broker:
        assert read(opened(broker, 0)) == values(("old", 5), ("new", 3), ("ours", 2))
    again = result(Deferred.fromCoroutine(topics.seen("t")))
    assert looked
    assert again
    assert not looked.is_kept
    assert looked.stored.kept.generations == again.stored.kept.generations


@ROW_FORMS
def test_made_anew_more_than_once_while_no_gateway_looks(form: str, start: Start, others: Others) -> None:
    """
    Each generation comes at its place, and those that had no messages are nothing.
    """
    with running(start) as broker:
        topic = result(broker.create_topic(NewTopic("t", 1, config(form))))
        appended(broker.partition(topic.id, 0), sent("a", 3))
    others(2).publish(messages("mid", 3))
    others(5)
    others(3).publish(messages("last", 4))
    with running(start) as broker:
        assert len(seen(broker, "t").partitions) == 3
        assert read(opened(broker, 0)) == values(("a", 3), ("mid", 3), ("last", 4))
        assert appended(opened(broker, 0), sent("b", 1)).base_offset == 10
        assert appended(opened(broker, 2), sent("c", 1)).base_offset == 0
    with running(start) as broker:
        assert read(opened(broker, 0)) == values(("a", 3), ("mid", 3), ("last", 4), ("b", 1))


@ROW_FORMS
def test_fewer_partitions_and_then_as_many_as_before(form: str, start: Start, others: Others) -> None:
    """
    One that was gone goes on where it ended, though its broker counts on.
    """
    with running(start) as broker:
        three_of_four_records(broker, form)
        others(2)
        grown_to(broker, 2)
        others(3)
        grown_to(broker, 3)
        assert appended(opened(broker, 2), sent("new", 6)).base_offset == 4
        assert read(opened(broker, 2)) == values(("old2-", 4), ("new", 6))
    for number in range(2):
        with running(start) as broker:
            assert read(opened(broker, 2)) == values(("old2-", 4), ("new", 6))
            assert read(opened(broker, 0)) == values(("old0-", 4), *[("more", 1)] * number)
            assert appended(opened(broker, 0), sent("more", 1)).base_offset == 4 + number


def test_fewer_and_as_many_again_while_no_gateway_looks(start: Start, others: Others) -> None:
    """
    What others publish to the new ones comes behind what was there, also where it is in no file yet.
    """
    with running(start) as broker:
        three_of_four_records(broker, "plain")
    others(2)
    with others(3).publishing(messages("new", 6), index=2) as found, running(start) as broker:
        assert found == list(range(4, 10))
        assert opened(broker, 2).log_end == 10
        until(lambda: opened(broker, 2).high_watermark == 10)
        assert read(opened(broker, 2)) == values(("old2-", 4), ("new", 6))


def test_fewer_and_as_many_again_in_one_second(start: Start, others: Others, topics: Topics) -> None:
    """
    Partitions of one range have one folder then.
    """
    others(3).publish(messages("old", 4), index=2)
    found = result(Deferred.fromCoroutine(topics.find("t")))
    assert found
    others(2, at_once=True)
    found = result(Deferred.fromCoroutine(topics.take_over(found)))
    others(3, at_once=True).publish(messages("new", 6), index=2)
    result(Deferred.fromCoroutine(topics.take_over(found)))
    with running(start) as broker:
        assert read(opened(broker, 2)) == values(("old", 4), ("new", 6))
        assert appended(opened(broker, 2), sent("more", 1)).base_offset == 10


def test_what_cannot_be_read_holds_up_no_other_topic(start: Start, others: Others) -> None:
    """
    Of a topic whose end nobody can tell there is a line in the log.
    """
    with running(start) as broker:
        for name in ("t", "other"):
            result(broker.create_topic(NewTopic(name, 1, config("batch"))))
    damaged = bytearray(batch().data)
    damaged[-1] ^= 1
    others(2).publish([Message(b"key", bytes(damaged))])
    others(3)
    with capturedLogs() as logs, running(start) as broker:
        assert seen(broker, "other")
        assert not seen(broker, "t")
    assert [event["name"] for event in logs if "is left alone" in str(event.get("log_format"))] == ["t"]


def test_what_brokers_have_in_memory_is_waited_for(start: Start, others: Others) -> None:
    """
    Where it is of partitions that are made anew, they end behind it.
    """
    with running(start) as broker:
        before = others(1)
        grown_to(broker, 1)
        with before.publishing(messages("old", 5)):
            others(2, at_once=True)
            grown_to(broker, 2)
            assert appended(opened(broker, 0), sent("new", 1)).base_offset == 5


def test_what_others_set_stays_when_a_topic_grows_here(start: Start, topics: Topics, filer: Filer) -> None:
    """
    Its columns, those of its key, its retention and the format of its schema: SeaweedMQ would forget all of them.
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
    result(Deferred.fromCoroutine(topics.messaging.configure_like(set_by_others, "t", 1)))
    with running(start) as broker:
        result(broker.add_partitions(seen(broker, "t").id, 2))
    entry = wait(filer.entry(f"{topics.folder('t')}/{TOPIC_CONF}"))
    assert entry
    conf = read_topic_conf(entry.content)
    assert len(conf.broker_partition_assignments) == 2
    conf.ClearField("broker_partition_assignments")
    assert conf == set_by_others
