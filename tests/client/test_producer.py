"""
Records on their way to a scripted server, and Kafka's partitioner.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python

from kgateway.client.cluster import Cluster
from kgateway.client.connection import Unanswered
from kgateway.client.producer import ACKS, PACK_BYTES, Producer, Undelivered, murmur2, partition_of
from kgateway.client.send_queue import OutgoingRecord
from kgateway.messages.init_producer_id import InitProducerIdResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import read_batch
from kgateway.records.record import records
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import ScriptedServer, scripted

PARTITIONS = 3
Part = ProduceResponse.Response.PartitionResponse


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """
    The leader of topic `orders` with three partitions; producers get the id 7.
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
def cluster(server: ScriptedServer) -> Iterator[Cluster]:
    with Cluster([server.address], 5.0) as cluster:
        yield cluster


def produced(
    *parts: tuple[int, ErrorCode], message: str | None = None, faults: tuple[int, ...] = ()
) -> ProduceResponse:
    """
    A Produce response about partitions.
    """
    errors = [Part.RecordError(batch_index=index, batch_index_error_message="it is too green") for index in faults]
    answers = [
        Part(index=index, error_code=code, base_offset=0, error_message=message, record_errors=errors)
        for index, code in parts
    ]
    return ProduceResponse(responses=[ProduceResponse.Response(name="orders", partition_responses=answers)])


def record(value: bytes = b"v", key: bytes | None = None, partition: int | None = 0, line: int = 1) -> OutgoingRecord:
    """
    A record from a line of stdin.
    """
    return OutgoingRecord(key, value, 1_795_284_000_000, (), partition, ("stdin", line))


def sent(server: ScriptedServer) -> list[tuple[int, int, list[bytes | None]]]:
    """
    Partition, first sequence and values of each batch sent.
    """
    found = []
    for request, _ in server.asked:
        if isinstance(request, ProduceRequest):
            for part in request.topic_data[0].partition_data:
                batch = read_batch(bytes(part.records or b""))  # type: ignore[arg-type]  # it is in one piece
                assert (batch.header.producer_id, batch.header.producer_epoch) == (7, 2)
                found.append((part.index, batch.header.base_sequence, [one.value for one in records(batch)]))
    return found


def test_what_is_sent_is_flushed_and_counted(server: ScriptedServer, cluster: Cluster) -> None:
    """
    One request has all partitions, and sequence numbers continue from batch to batch.
    """
    server.will(produced((0, ErrorCode.NONE), (2, ErrorCode.NONE)), produced((0, ErrorCode.NONE)))
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


def test_a_repeated_batch_has_the_same_sequence(server: ScriptedServer, cluster: Cluster) -> None:
    """
    The server recognizes it by its sequence; other partitions are not sent again.
    """
    server.will(produced((0, ErrorCode.NOT_LEADER_OR_FOLLOWER), (1, ErrorCode.NONE)), produced((0, ErrorCode.NONE)))
    producer = Producer(cluster, "orders")
    producer.send(record(b"a"))
    producer.send(record(b"b", partition=1))
    producer.flush()
    assert sent(server) == [(0, 0, [b"a"]), (1, 0, [b"b"]), (0, 0, [b"a"])]
    assert sum(isinstance(request, MetadataRequest) for request, _ in server.asked) == 2
    assert producer.records == 2


def test_a_lost_response_causes_no_duplicate(server: ScriptedServer, cluster: Cluster) -> None:
    """
    After a reconnect, a duplicate sequence number means that the batch is stored.
    """
    server.will(produced((0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)))
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


def test_without_acks_of_all_nothing_is_sent_twice(server: ScriptedServer, cluster: Cluster) -> None:
    """
    A broken connection is an error: the batch might be stored twice.
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
    with pytest.raises(Unanswered, match="closed the connection without a response to Produce"):
        producer.flush()
    assert frames == [b"\0\0"]


def test_a_batch_that_is_too_large_is_halved(server: ScriptedServer, cluster: Cluster) -> None:
    """
    A batch is split in order, as often as necessary.
    """
    server.will(
        produced((0, ErrorCode.MESSAGE_TOO_LARGE)),
        produced((0, ErrorCode.MESSAGE_TOO_LARGE)),
        produced((0, ErrorCode.NONE)),
    )
    producer = Producer(cluster, "orders")
    for value in (b"a", b"b", b"c", b"d"):
        producer.send(record(value))
    producer.flush()
    whole = [b"a", b"b", b"c", b"d"]
    assert sent(server) == [(0, 0, whole), (0, 0, whole[:2]), (0, 0, [b"a"]), (0, 1, [b"b"]), (0, 2, whole[2:])]


def test_a_record_that_is_too_large_is_named(server: ScriptedServer, cluster: Cluster) -> None:
    """
    The records before it are delivered.
    """
    server.will(produced((0, ErrorCode.NONE)), produced((0, ErrorCode.MESSAGE_TOO_LARGE)))
    producer = Producer(cluster, "orders")
    producer.send(record(line=6))
    producer.flush()
    producer.send(record(line=7))
    with pytest.raises(Undelivered, match="stdin, line 7: MESSAGE_TOO_LARGE"):
        producer.flush()
    assert producer.records == 1


def test_refused_records_are_named(server: ScriptedServer, cluster: Cluster) -> None:
    """
    The error names the records that the server names, otherwise the whole batch.
    """
    wrong = (0, ErrorCode.INVALID_RECORD)
    for answer, says in (
        (produced(wrong, faults=(1,)), "stdin, line 5: it is too green"),
        (produced(wrong, message="not so"), "from stdin, line 4 to stdin, line 6: INVALID_RECORD: not so"),
    ):
        server.answers.pop(0, None)
        server.will(answer)
        producer = Producer(cluster, "orders")
        for line in (4, 5, 6):
            producer.send(record(line=line))
        with pytest.raises(Undelivered) as refused:
            producer.flush()
        assert str(refused.value) == says


def test_a_missing_partition_is_an_error(cluster: Cluster) -> None:
    """
    Nothing is sent.
    """
    with pytest.raises(Undelivered, match="stdin, line 1: orders has no partition 3: it has 3"):
        Producer(cluster, "orders").send(record(partition=3))


def test_keys_decide_the_partition(server: ScriptedServer, cluster: Cluster) -> None:
    """
    A record without a partition gets its key's.
    """
    server.will(produced(*[(index, ErrorCode.NONE) for index in range(PARTITIONS)]))
    producer = Producer(cluster, "orders")
    keys = [b"%d" % number for number in range(20)]
    for key in keys:
        producer.send(record(key, key, partition=None))
    producer.flush()
    for index, _, values in sent(server):
        assert values == [key for key in keys if partition_of(key, PARTITIONS) == index]


def test_records_without_a_key_share_a_partition(
    server: ScriptedServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Records share a partition until the next flush, so that batches are large.
    """
    monkeypatch.setattr("kgateway.client.producer.randrange", lambda count: 1)
    server.will(produced((1, ErrorCode.NONE)), produced((2, ErrorCode.NONE)))
    producer = Producer(cluster, "orders")
    for value in (b"a", b"b"):
        producer.send(record(value, partition=None))
    producer.flush()
    producer.send(record(b"c", partition=None))
    producer.flush()
    assert sent(server) == [(1, 0, [b"a", b"b"]), (2, 0, [b"c"])]


def test_buffered_records_are_bounded(server: ScriptedServer, cluster: Cluster) -> None:
    """
    A full batch is sent.
    """
    server.will(produced((0, ErrorCode.NONE)))
    producer = Producer(cluster, "orders")
    for _ in range(4):
        producer.send(record(bytes(PACK_BYTES // 3)))
    assert producer.records == 2


def test_a_response_about_others_is_an_error(server: ScriptedServer, cluster: Cluster) -> None:
    """
    Otherwise the batch would be sent again and again.
    """
    server.will(produced((1, ErrorCode.NONE)))
    producer = Producer(cluster, "orders", acks=ACKS["1"])
    producer.send(record())
    with pytest.raises(Unanswered, match="for other partitions than requested"):
        producer.flush()


def test_without_acks_nothing_is_awaited(server: ScriptedServer, cluster: Cluster) -> None:
    producer = Producer(cluster, "orders", acks=ACKS["0"])
    server.say = lambda frame: None if frame[:2] == b"\0\0" else server.answer(frame)
    producer.send(record())
    producer.flush()
    assert producer.records == 1


def test_without_acks_a_connection_that_ends_is_an_error(server: ScriptedServer, cluster: Cluster) -> None:
    """
    Closing the connection is how a server refuses; refused records are not counted.
    """
    producer = Producer(cluster, "orders", acks=ACKS["0"])
    server.say = lambda frame: b"" if frame[:2] == b"\0\0" else server.answer(frame)
    producer.send(record())
    with pytest.raises(Unanswered, match="it may have refused records: with acks of 1 or all it would give the reason"):
        producer.flush()
    assert producer.records == 0


def test_a_missing_topic_is_an_error(server: ScriptedServer, cluster: Cluster) -> None:
    gone = MetadataResponse.Topic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="orders", partitions=[])
    server.answers.pop(3)
    server.will(MetadataResponse(brokers=[], topics=[gone]))
    with pytest.raises(KafkaError, match="there is no topic orders"):
        Producer(cluster, "orders")


# From Kafka's own tests of Utils.murmur2, which returns signed numbers.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), JAVA.items())
def test_the_hash_equals_javas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(st.binary(max_size=70))
def test_the_hash_equals_kafka_pythons(key: bytes) -> None:
    """
    Keys have any length.
    """
    assert murmur2(key) == kafka_python(key) & 0xFFFFFFFF


def test_a_key_of_a_negative_hash_has_a_partition() -> None:
    """
    The sign bit is cleared, as in Java's partitioner.
    """
    assert partition_of(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
    assert partition_of(b"abc", 1000) == 479470107 % 1000
