"""
Records on their way to a topic, before a server that says what a test has it say.
"""

from collections.abc import Iterator

import pytest

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.outgoing import Outgoing
from kgateway.client.partitioning import partition_of
from kgateway.client.producer import ACKS, PACK_BYTES, Producer, Undelivered
from kgateway.messages.init_producer_id import InitProducerIdResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import read_batch
from kgateway.records.record import records
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import Scripted, scripted

PARTITIONS = 3
Part = ProduceResponse.Response.PartitionResponse


@pytest.fixture
def server() -> Iterator[Scripted]:
    """
    It leads topic `orders` of three partitions, and gives producers the id 7.
    """
    with scripted(Metadata=(0, 13), Produce=(3, 13), InitProducerId=(0, 5)) as server:
        broker = MetadataResponse.Broker(node_id=1, host=server.address.host, port=server.address.port)
        kind = MetadataResponse.Topic
        parts = [
            kind.Partition(error_code=0, partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
            for index in range(PARTITIONS)
        ]
        server.will(MetadataResponse(brokers=[broker], topics=[kind(error_code=0, name="orders", partitions=parts)]))
        server.will(InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=7, producer_epoch=2))
        yield server


@pytest.fixture
def cluster(server: Scripted) -> Iterator[Cluster]:
    """
    Which has no other server.
    """
    with Cluster([server.address], 5.0) as cluster:
        yield cluster


def told(*parts: tuple[int, ErrorCode], message: str | None = None, faults: tuple[int, ...] = ()) -> ProduceResponse:
    """
    What becomes of partitions.
    """
    errors = [Part.RecordError(batch_index=index, batch_index_error_message="it is too green") for index in faults]
    answers = [
        Part(index=index, error_code=code, base_offset=0, error_message=message, record_errors=errors)
        for index, code in parts
    ]
    return ProduceResponse(responses=[ProduceResponse.Response(name="orders", partition_responses=answers)])


def record(value: bytes = b"v", key: bytes | None = None, partition: int | None = 0, line: int = 1) -> Outgoing:
    """
    One, from a line of stdin.
    """
    return Outgoing(key, value, 1_795_284_000_000, (), partition, ("stdin", line))


def sent(server: Scripted) -> list[tuple[int, int, list[bytes | None]]]:
    """
    Partition, first sequence and values of each batch that came.
    """
    found = []
    for request, _ in server.asked:
        if isinstance(request, ProduceRequest):
            for part in request.topic_data[0].partition_data:
                batch = read_batch(bytes(part.records or b""))  # type: ignore[arg-type]  # it is in one piece
                assert (batch.header.producer_id, batch.header.producer_epoch) == (7, 2)
                found.append((part.index, batch.header.base_sequence, [one.value for one in records(batch)]))
    return found


def test_what_is_sent_is_flushed_and_counted(server: Scripted, cluster: Cluster) -> None:
    """
    In one request, with all partitions, and sequence numbers that go on from batch to batch.
    """
    server.will(told((0, ErrorCode.NONE), (2, ErrorCode.NONE)), told((0, ErrorCode.NONE)))
    producer = Producer(cluster, "orders")
    for value, partition in ((b"a", 0), (b"b", 2), (b"c", 0)):
        producer.send(record(value, partition=partition))
    assert producer.records == 0
    producer.flush()
    producer.send(record(b"d"))
    producer.flush()
    producer.flush()
    assert sent(server) == [(0, 0, [b"a", b"c"]), (2, 0, [b"b"]), (0, 2, [b"d"])]
    assert (producer.records, producer.bytes) == (4, 4)


def test_what_has_to_be_sent_again_has_the_same_sequence(server: Scripted, cluster: Cluster) -> None:
    """
    So the server knows it when it is there already; the other partition is not sent again.
    """
    server.will(told((0, ErrorCode.NOT_LEADER_OR_FOLLOWER), (1, ErrorCode.NONE)), told((0, ErrorCode.NONE)))
    producer = Producer(cluster, "orders")
    producer.send(record(b"a"))
    producer.send(record(b"b", partition=1))
    producer.flush()
    assert sent(server) == [(0, 0, [b"a"]), (1, 0, [b"b"]), (0, 0, [b"a"])]
    assert sum(isinstance(request, MetadataRequest) for request, _ in server.asked) == 2
    assert producer.records == 2


def test_an_answer_that_is_lost_makes_no_doubles(server: Scripted, cluster: Cluster) -> None:
    """
    The connection is made anew, and that the batch is known there is as good as that it is stored.
    """
    server.will(told((0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)))
    answers = [b""]

    def lose_one(frame: bytes) -> bytes:
        answer = server.answer(frame)
        return answers.pop() if frame[:2] == b"\0\0" and answers else answer

    server.say = lose_one
    producer = Producer(cluster, "orders")
    producer.send(record(b"a"))
    producer.flush()
    assert sent(server) == [(0, 0, [b"a"])] * 2
    assert producer.records == 1


def test_without_acks_of_all_nothing_is_sent_twice_unasked(server: Scripted, cluster: Cluster) -> None:
    """
    For it might be stored twice: the connection that breaks is an error.
    """
    frames: list[bytes] = []

    def hang_up(frame: bytes) -> bytes:
        if frame[:2] != b"\0\0":
            return server.answer(frame)
        frames.append(frame[:2])
        return b""

    server.say = hang_up
    producer = Producer(cluster, "orders", acks=ACKS["1"])
    producer.send(record())
    with pytest.raises(Unanswered, match="closed the connection instead of an answer to Produce"):
        producer.flush()
    assert frames == [b"\0\0"]


def test_a_batch_that_is_too_large_goes_in_halves(server: Scripted, cluster: Cluster) -> None:
    """
    In order, and as often as it takes.
    """
    server.will(
        told((0, ErrorCode.MESSAGE_TOO_LARGE)),
        told((0, ErrorCode.MESSAGE_TOO_LARGE)),
        told((0, ErrorCode.NONE)),
    )
    producer = Producer(cluster, "orders")
    for value in (b"a", b"b", b"c", b"d"):
        producer.send(record(value))
    producer.flush()
    whole = [b"a", b"b", b"c", b"d"]
    assert sent(server) == [(0, 0, whole), (0, 0, whole[:2]), (0, 0, [b"a"]), (0, 1, [b"b"]), (0, 2, whole[2:])]


def test_a_record_that_is_too_large_is_named(server: Scripted, cluster: Cluster) -> None:
    """
    What stood before it is delivered.
    """
    server.will(told((0, ErrorCode.NONE)), told((0, ErrorCode.MESSAGE_TOO_LARGE)))
    producer = Producer(cluster, "orders")
    producer.send(record(line=6))
    producer.flush()
    producer.send(record(line=7))
    with pytest.raises(Undelivered, match="stdin, line 7: MESSAGE_TOO_LARGE"):
        producer.flush()
    assert producer.records == 1


def test_records_that_are_refused_are_named(server: Scripted, cluster: Cluster) -> None:
    """
    Those that the server names, with its reason; else from the first to the last of the batch.
    """
    wrong = (0, ErrorCode.INVALID_RECORD)
    for answer, says in (
        (told(wrong, faults=(1,)), "stdin, line 5: it is too green"),
        (told(wrong, message="not so"), "from stdin, line 4 to stdin, line 6: INVALID_RECORD: not so"),
    ):
        server.answers.pop(0, None)
        server.will(answer)
        producer = Producer(cluster, "orders")
        for line in (4, 5, 6):
            producer.send(record(line=line))
        with pytest.raises(Undelivered) as refused:
            producer.flush()
        assert str(refused.value) == says


def test_a_partition_that_is_not_there_is_an_error(cluster: Cluster) -> None:
    """
    Before anything is sent.
    """
    with pytest.raises(Undelivered, match="stdin, line 1: orders has no partition 3: it has 3"):
        Producer(cluster, "orders").send(record(partition=3))


def test_keys_decide_the_partition(server: Scripted, cluster: Cluster) -> None:
    """
    Where none is named.
    """
    server.will(told(*[(index, ErrorCode.NONE) for index in range(PARTITIONS)]))
    producer = Producer(cluster, "orders")
    keys = [b"%d" % number for number in range(20)]
    for key in keys:
        producer.send(record(key, key, partition=None))
    producer.flush()
    for index, _, values in sent(server):
        assert values == [key for key in keys if partition_of(key, PARTITIONS) == index]


def test_records_without_a_key_share_a_partition(
    server: Scripted, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Until the next flush: a batch is as large as can be.
    """
    monkeypatch.setattr("kgateway.client.producer.randrange", lambda count: 1)
    server.will(told((1, ErrorCode.NONE)), told((2, ErrorCode.NONE)))
    producer = Producer(cluster, "orders")
    for value in (b"a", b"b"):
        producer.send(record(value, partition=None))
    producer.flush()
    producer.send(record(b"c", partition=None))
    producer.flush()
    assert sent(server) == [(1, 0, [b"a", b"b"]), (2, 0, [b"c"])]


def test_what_waits_is_bounded(server: Scripted, cluster: Cluster) -> None:
    """
    A batch that is full goes off.
    """
    server.will(told((0, ErrorCode.NONE)))
    producer = Producer(cluster, "orders")
    for _ in range(4):
        producer.send(record(bytes(PACK_BYTES // 3)))
    assert producer.records == 2


def test_a_server_that_answers_for_others_is_not_asked_for_ever(server: Scripted, cluster: Cluster) -> None:
    """
    Which would be so if what it does not speak of were sent again.
    """
    server.will(told((1, ErrorCode.NONE)))
    producer = Producer(cluster, "orders", acks=ACKS["1"])
    producer.send(record())
    with pytest.raises(Unanswered, match="for other partitions than it was asked"):
        producer.flush()


def test_without_acks_nothing_is_awaited(server: Scripted, cluster: Cluster) -> None:
    """
    There is no answer to wait for.
    """
    producer = Producer(cluster, "orders", acks=ACKS["0"])
    server.say = lambda frame: None if frame[:2] == b"\0\0" else server.answer(frame)
    producer.send(record())
    producer.flush()
    assert producer.records == 1


def test_without_acks_a_connection_that_ends_is_an_error(server: Scripted, cluster: Cluster) -> None:
    """
    For it is how a server refuses; what it did not take is not counted.
    """
    producer = Producer(cluster, "orders", acks=ACKS["0"])
    server.say = lambda frame: b"" if frame[:2] == b"\0\0" else server.answer(frame)
    producer.send(record())
    with pytest.raises(Unanswered, match="it may have refused records: with acks of 1 or all it would say why"):
        producer.flush()
    assert producer.records == 0


def test_a_topic_that_is_not_there_is_an_error(server: Scripted, cluster: Cluster) -> None:
    """
    At once.
    """
    gone = MetadataResponse.Topic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="orders", partitions=[])
    server.answers.pop(3)
    server.will(MetadataResponse(brokers=[], topics=[gone]))
    with pytest.raises(KafkaError, match="there is no topic orders"):
        Producer(cluster, "orders")
