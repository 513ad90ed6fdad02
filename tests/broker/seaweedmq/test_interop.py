"""
One cluster is shared with SeaweedFS's own gateway: records that one of them takes can be read from the other.
"""

from collections.abc import Iterator
from threading import Thread
from time import monotonic, sleep, time
from uuid import uuid4

import grpc
import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicRequest, ConfigureTopicResponse
from kgateway.broker.seaweed.protos.schema_pb2 import Topic
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.broker.seaweedmq.go_gateway import GoGateway
from tests.clients.client import Refused, Sending
from tests.clients.confluent_client import Confluent

_PATIENCE_S = 20
_AT_ONCE_S = 10
_FLUSH_S = 1.0  # in which the broker of the cluster writes what it has into files


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """
    A cluster of this module, which one gateway of ours at a time leads.
    """
    cluster = DevCluster(tmp_path_factory.mktemp("weed"))
    try:
        yield cluster.start()
    finally:
        cluster.kill()


@pytest.fixture(scope="module")
def kafka(shared: DevCluster) -> Iterator[Kafka]:
    with Kafka("--broker", f"seaweedmq:{','.join(shared.masters)}") as kafka:
        yield kafka
        assert "Traceback" not in kafka.log, kafka.log


@pytest.fixture
def ours(kafka: Kafka) -> Confluent:
    return Confluent(kafka.bootstrap)


@pytest.fixture(scope="module")
def theirs(shared: DevCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Confluent]:
    """
    A client of the Go gateway.
    """
    with GoGateway(shared, tmp_path_factory.mktemp("go")) as gateway:
        yield Confluent(gateway.bootstrap)


@pytest.fixture
def name() -> str:
    """
    A new topic name.
    """
    return f"t-{uuid4()}"


@pytest.fixture(params=[pytest.param(form, id=form) for form in FORMATS])
def form(request: pytest.FixtureRequest) -> dict[str, str]:
    """
    The configs of topics of each form.
    """
    return {"seaweedmq.format": request.param}


def rows(first: int, count: int) -> list[Record]:
    """
    Records at these offsets.
    """
    return [Record(number, -1, b"key %d" % number, b"value %d" % number) for number in range(first, first + count)]


def read(client: Confluent, topic: str, count: int, partition: int = 0) -> list[Record]:
    """
    This many records from the first on, without their times.
    """
    with client.reader(topic) as reader:
        reader.assign({partition: 0})
        return [record._replace(timestamp=-1) for _, record in reader.take(count)]


def values(client: Confluent, topic: str) -> list[bytes | None]:
    """
    All values, up to the end of the log.
    """
    with client.reader(topic) as reader:
        _, end = reader.watermarks(0)
    return [record.value for record in read(client, topic, end)]


def shown(client: Confluent, topic: str, partitions: int) -> None:
    """
    Wait until the topic is shown with this many partitions.
    """
    deadline = monotonic() + _PATIENCE_S
    while client.topics().get(topic) != partitions:
        assert monotonic() < deadline, f"{topic} does not have {partitions} partitions"
        sleep(0.05)


def made_by(client: Confluent, side_files: Confluent, topic: str, partitions: int = 1) -> None:
    """
    Let one gateway create a topic, and wait until the other sees it.
    """
    client.create_topic(topic, partitions, {})
    shown(side_files, topic, partitions)


def configure(cluster: DevCluster, topic: str, partitions: int) -> None:
    """
    Have SeaweedMQ create another number of partitions.
    """
    request = ConfigureTopicRequest(topic=Topic(namespace="kafka", name=topic), partition_count=partitions)
    with grpc.insecure_channel(cluster.broker_address) as channel:
        channel.unary_unary(
            "/messaging_pb.SeaweedMessaging/ConfigureTopic",
            request_serializer=ConfigureTopicRequest.SerializeToString,
            response_deserializer=ConfigureTopicResponse.FromString,
        )(request, timeout=_PATIENCE_S)


def test_a_topic_of_the_go_gateway_is_served(ours: Confluent, theirs: Confluent, name: str) -> None:
    """
    The form is plain: every record has its offset, key and value, and the time at which it was taken.
    """
    before = round(time() * 1000)
    theirs.create_topic(name, 2, {})
    for partition in range(2):
        theirs.send(name, rows(0, 10), partition)
    shown(ours, name, 2)
    with ours.reader(name) as reader:
        reader.assign({0: 0, 1: 0})
        found = reader.take(20)
    for partition in range(2):
        came = [record for index, record in found if index == partition]
        assert [record._replace(timestamp=-1) for record in came] == rows(0, 10)
        assert all(before <= record.timestamp <= time() * 1000 for record in came)
    config = ours.config(name)
    assert (config["seaweedmq.format"], config["message.timestamp.type"]) == ("plain", "LogAppendTime")


def test_what_the_go_gateway_takes_is_followed(ours: Confluent, theirs: Confluent, name: str) -> None:
    """
    A waiting consumer gets the records soon after they are in files.
    """
    made_by(theirs, ours, name)
    with ours.reader(name) as reader:
        reader.assign({0: 0})
        for first in range(0, 30, 10):
            theirs.send(name, rows(first, 10))
            came = reader.take(10)
            assert [record._replace(timestamp=-1) for _, record in came] == rows(first, 10)


@pytest.mark.parametrize("codec", Codec)
def test_the_go_gateway_gives_out_what_we_have_taken(
    ours: Confluent, theirs: Confluent, name: str, codec: Codec
) -> None:
    """
    The producer may have compressed it in any way.
    """
    ours.create_topic(name, 2, {"seaweedmq.format": "plain"})
    ours.send(name, rows(0, 10), 1, Sending(codec=codec))
    shown(theirs, name, 2)
    assert read(theirs, name, 10, 1) == rows(0, 10)
    ours.send(name, rows(10, 10), 1, Sending(codec=codec))
    assert read(theirs, name, 20, 1) == rows(0, 20)


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_both_produce_by_turns(ours: Confluent, theirs: Confluent, name: str, first: str) -> None:
    """
    Either gateway may have created the topic: both return the same records, each at the offset that its producer got.
    """
    if first == "theirs":
        made_by(theirs, ours, name)
    else:
        ours.create_topic(name, 1, {"seaweedmq.format": "plain"})
        shown(theirs, name, 1)
    for number in range(4):
        turn = theirs if (number % 2 == 0) == (first == "theirs") else ours
        assert turn.send(name, rows(number * 5, 5)) == list(range(number * 5, number * 5 + 5))
        assert read(ours, name, number * 5 + 5) == rows(0, number * 5 + 5)  # it has come into the files
    assert read(theirs, name, 20) == rows(0, 20)


def test_both_produce_at_once(ours: Confluent, theirs: Confluent, name: str) -> None:
    """
    No acknowledged record is missing, and both return the same. (Not so if both begin within the same millisecond: the
    broker of the cluster then gives each of its offsets twice.)
    """
    made_by(theirs, ours, name)
    sent = {client: [b"%s %d" % (who, n) for n in range(40)] for client, who in ((ours, b"ours"), (theirs, b"theirs"))}
    for client in sent:
        client.send(name, rows(0, 1))

    def produce(client: Confluent) -> None:
        for value in sent[client]:
            client.send(name, [Record(0, -1, None, value)])

    producing = [Thread(target=produce, args=[client]) for client in sent]
    for thread in producing:
        thread.start()
    for thread in producing:
        thread.join()
    wanted = {value for values in sent.values() for value in values}
    deadline = monotonic() + _PATIENCE_S
    while missing := wanted - set(found := values(ours, name)):
        assert monotonic() < deadline, f"missing: {missing}"
    assert values(theirs, name) == found


def test_what_the_go_gateway_writes_among_batches_is_passed_over(
    kafka: Kafka, ours: Confluent, theirs: Confluent, name: str
) -> None:
    """
    Its messages are between batches and after them, and the gateway is started again.
    """
    ours.create_topic(name, 1, {"seaweedmq.format": "batch"})
    shown(theirs, name, 1)
    for number in range(0, 6, 3):
        assert ours.send(name, rows(number, 3)) == [number, number + 1, number + 2]
        theirs.send(name, rows(0, 1))
    assert read(ours, name, 6) == rows(0, 6)
    kafka.stop()
    kafka.start()
    again = Confluent(kafka.bootstrap)
    shown(again, name, 1)
    assert again.send(name, rows(6, 3)) == [6, 7, 8]
    assert read(again, name, 9) == rows(0, 9)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(Record(0, -1, b"k", b"v", (Header("h", b"1"),)), id="headers"),
        pytest.param(Record(0, -1, b"k", None), id="no value"),
        pytest.param(Record(0, -1, b"", b"v"), id="empty key"),
    ],
)
def test_what_plain_has_no_place_for_is_refused(ours: Confluent, name: str, row: Record) -> None:
    """
    Nothing of it is in the log.
    """
    ours.create_topic(name, 1, {"seaweedmq.format": "plain"})
    with pytest.raises(Refused) as refused:
        ours.send(name, [row])
    assert refused.value.code == ErrorCode.INVALID_RECORD
    ours.send(name, rows(0, 1))
    assert read(ours, name, 1) == rows(0, 1)


def test_plain_with_the_times_of_producers_is_refused(ours: Confluent, name: str) -> None:
    """
    The creation of the topic fails, with the reason.
    """
    with pytest.raises(Refused, match=r"format plain has message\.timestamp\.type=LogAppendTime") as refused:
        ours.create_topic(name, 1, {"seaweedmq.format": "plain", "message.timestamp.type": "CreateTime"})
    assert refused.value.code == ErrorCode.INVALID_CONFIG


def test_a_topic_is_made_again(ours: Confluent, name: str, form: dict[str, str]) -> None:
    """
    After its deletion it begins at 0, without its old records, time and again; and at once, although a broker that
    still has the old topic in memory would have to be waited for.
    """
    for count in (10, 7, 5):
        ours.create_topic(name, 1, form)
        began = monotonic()
        ours.send(name, rows(0, count))
        assert read(ours, name, count) == rows(0, count)
        sleep(_FLUSH_S)
        ours.send(name, rows(count, 2))
        assert monotonic() - began < _AT_ONCE_S
        assert read(ours, name, count + 2) == rows(0, count + 2)
        ours.delete_topic(name)


def test_a_topic_that_was_grown_by_others_goes_on(
    shared: DevCluster, kafka: Kafka, ours: Confluent, name: str, form: dict[str, str]
) -> None:
    """
    The old records of its partitions come first, then new ones; also after another start of the gateway.
    """
    ours.create_topic(name, 1, form)
    ours.send(name, rows(0, 10))
    for partitions in (3, 4):
        configure(shared, name, partitions)
        shown(ours, name, partitions)
    ours.send(name, rows(10, 10))
    ours.send(name, rows(0, 10), 3)
    assert read(ours, name, 20) == rows(0, 20)
    kafka.stop()
    configure(shared, name, 5)
    kafka.start()
    again = Confluent(kafka.bootstrap)
    shown(again, name, 5)
    again.send(name, rows(20, 10))
    assert read(again, name, 30) == rows(0, 30)
    assert read(again, name, 10, 3) == rows(0, 10)
