"""
What every client can do with a gateway: the tests that each of them passes.

The tests of a client are a fixture `connect`, which makes the client, and a class that inherits them all:

    @pytest.fixture(scope="module")
    def connect() -> Connect: ...


    class TestMine(Behaviour): ...
"""

from operator import attrgetter
from time import monotonic, sleep

import pytest

from kgateway.records.batch import TimestampType
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.clients.client import BEGINNING, END, PATIENCE_S, Client, Connect, Refused, Sending
from tests.clients.raw import Raw
from tests.clients.seaweedmq import FORM

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.01"}

CODEC_NAME = attrgetter("name")


def rows(count: int, size: int = 100) -> list[Record]:
    """
    Records for an empty partition, each a second later than the previous one.
    """
    return [Record(i, START_MS + 1000 * i, b"key %d" % i, b"%0*d" % (size, i)) for i in range(count)]


def compacted(raw: Raw, topic: str, before: int) -> list[Record]:
    """
    The records of a topic, once half of them are gone and no more disappear.
    """
    deadline, found = monotonic() + PATIENCE_S, raw.records(topic)
    while True:
        sleep(1)  # some rounds of compaction
        last, found = found, raw.records(topic)
        if len(found) < before / 2 and len(found) == len(last):
            return found
        assert monotonic() < deadline, f"{len(found)} records are left"


def read(client: Client, topic: str, count: int, start: int = BEGINNING) -> list[Record]:
    """
    The records that a consumer of the first partition reads.
    """
    with client.reader(topic) as reader:
        reader.assign({0: start})
        return [record for _, record in reader.take(count)]


class Connected:
    """
    The client under test, connected.
    """

    @pytest.fixture
    def client(self, connect: Connect, shared_kafka: Kafka) -> Client:
        return connect(shared_kafka.bootstrap)


class Producing(Connected):
    """
    Batches arrive as the client was configured to make them.
    """

    unknown_topic = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # the batches that the client makes

    @pytest.mark.parametrize("codec", Codec, ids=CODEC_NAME)
    def test_codec_is_stored(self, client: Client, raw: Raw, topic: str, codec: Codec) -> None:
        """
        Batches are stored compressed as the client was asked to, and are read back.
        """
        sent = rows(20)
        client.send(topic, sent, how=Sending(codec=codec))
        assert {batch.header.codec for batch in raw.batches(topic)} == {codec}
        assert raw.records(topic) == sent
        assert read(client, topic, 20) == sent

    def test_offsets_are_told(self, client: Client, raw: Raw, topic: str) -> None:
        """
        The producer learns the offset of each record.
        """
        raw.append(topic, rows(5))
        assert client.send(topic, rows(3)) == [5, 6, 7]

    def test_headers_are_kept(self, client: Client, raw: Raw, topic: str) -> None:
        """
        Headers keep their order; a key may be repeated, empty or not ASCII, and a value may be any bytes.
        """
        headers = (Header("h", b"1"), Header("é", b"\xff\x00"), Header("h", b"2"), Header("", b""), Header("h", b"1"))
        sent = [Record(0, START_MS, b"key", b"value", headers)]
        client.send(topic, sent)
        assert raw.records(topic) == sent
        assert read(client, topic, 1) == sent

    def test_null_headers_are_kept(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A header without a value differs from one with an empty value.
        """
        sent = [Record(0, START_MS, b"key", b"value", (Header("null", None), Header("empty", b"")))]
        client.send(topic, sent)
        assert raw.records(topic) == sent
        assert read(client, topic, 1) == sent

    def test_nulls_are_kept(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A missing key or value differs from an empty one.
        """
        pairs = [(None, b"value"), (b"", b"value"), (b"key", None), (b"key", b""), (b"", b"")]
        sent = [Record(i, START_MS, key, value) for i, (key, value) in enumerate(pairs)]
        client.send(topic, sent)
        assert raw.records(topic) == sent
        assert read(client, topic, len(sent)) == sent

    def test_timestamps_are_kept(self, client: Client, raw: Raw, topic: str) -> None:
        """
        The producer's timestamps are stored and read, even if they decrease.
        """
        times = [START_MS, START_MS + HOUR_MS, START_MS - HOUR_MS, 1]
        sent = [Record(i, time, b"key", b"value") for i, time in enumerate(times)]
        client.send(topic, sent)
        assert [record.timestamp for record in raw.records(topic)] == times
        assert [record.timestamp for record in read(client, topic, 4)] == times

    def test_log_append_time_is_the_gateways(self, client: Client, raw: Raw, name: str) -> None:
        """
        If the topic is configured so, records have the time of their arrival, one per batch.
        """
        client.create_topic(name, 1, {"message.timestamp.type": "LogAppendTime"})
        client.send(name, rows(3))
        batches = raw.batches(name)
        assert {batch.header.timestamp_type for batch in batches} == {TimestampType.LOG_APPEND_TIME}
        stamps = [batch.header.max_timestamp for batch in batches for _ in range(batch.header.records_count)]
        assert min(stamps) > START_MS + HOUR_MS
        assert [record.timestamp for record in read(client, name, 3)] == stamps

    def test_idempotent_batches_are_numbered(self, client: Client, raw: Raw, topic: str) -> None:
        """
        An idempotent producer gets an id, and its batches carry it and consecutive sequence numbers.
        """
        client.send(topic, rows(10, 600), how=Sending(idempotent=True, batch_bytes=2_000))
        headers = [batch.header for batch in raw.batches(topic)]
        assert len(headers) > 1
        assert {(header.producer_id >= 0, header.producer_epoch) for header in headers} == {(True, 0)}
        assert len({header.producer_id for header in headers}) == 1
        assert [header.base_sequence for header in headers] == [header.base_offset for header in headers]

    def test_idempotent_producers_are_told_apart(self, client: Client, raw: Raw, topic: str) -> None:
        """
        Two producers of one topic have different ids.
        """
        for _ in range(2):
            client.send(topic, rows(1), how=Sending(idempotent=True))
        first, second = [batch.header for batch in raw.batches(topic)]
        assert first.producer_id != second.producer_id
        assert (first.base_sequence, second.base_sequence) == (0, 0)

    def test_other_batches_are_not_numbered(self, client: Client, raw: Raw, topic: str) -> None:
        """
        Without idempotence a batch has no producer.
        """
        client.send(topic, rows(1))
        (batch,) = raw.batches(topic)
        assert (batch.header.producer_id, batch.header.producer_epoch) == (-1, -1)

    @pytest.mark.parametrize("acks", [0, 1, -1])
    def test_acks(self, client: Client, topic: str, acks: int) -> None:
        """
        Records arrive whether the producer waits for no response, the leader or all replicas.
        """
        sent = rows(10)
        client.send(topic, sent, how=Sending(acks=acks))
        assert read(client, topic, 10) == sent

    def test_a_large_record_is_refused(self, client: Client, raw: Raw, name: str) -> None:
        """
        A batch above the topic's bound gives MESSAGE_TOO_LARGE, and is not stored.
        """
        client.create_topic(name, 1, {"max.message.bytes": "2000"})
        client.send(name, rows(1, 1_000))
        with pytest.raises(Refused) as refused:
            client.send(name, rows(1, 3_000))
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert raw.records(name) == rows(1, 1_000)

    def test_a_record_near_the_limit_is_accepted(self, client: Client, topic: str) -> None:
        """
        A record of nearly a megabyte is stored and read.
        """
        sent = rows(1, 1_000_000)
        client.send(topic, sent)
        assert read(client, topic, 1) == sent

    def test_topics_are_created_by_producing(self, client: Client, raw: Raw, name: str) -> None:
        """
        Producing to a missing topic creates it, with the gateway's default number of partitions.
        """
        client.send(name, rows(1))
        assert client.topics()[name] == 4
        assert raw.records(name) == rows(1)

    def test_an_unknown_topic_is_refused(self, connect: Connect, strict_kafka: Kafka, name: str) -> None:
        """
        Without automatic creation, producing to a missing topic fails with the right error.
        """
        with pytest.raises(Refused) as refused:
            connect(strict_kafka.bootstrap).send(name, rows(1))
        assert refused.value.code == self.unknown_topic
        assert name not in connect(strict_kafka.bootstrap).topics()


class Consuming(Connected):
    """
    A consumer reads from any position.
    """

    def test_many_records_over_partitions(self, client: Client, wide_topic: str) -> None:
        """
        Of a thousand records that the client spreads over four partitions none is lost, and each partition is in
        order.
        """
        sent = [row._replace(key=b"key %d" % (i % 50)) for i, row in enumerate(rows(1_000))]
        client.send(wide_topic, sent, partition=None)
        with client.reader(wide_topic) as reader:
            reader.assign(dict.fromkeys(range(4), BEGINNING))
            found = reader.take(1_000)
        assert {partition for partition, _ in found} == {0, 1, 2, 3}
        for index in range(4):
            records = [record for partition, record in found if partition == index]
            assert [record.offset for record in records] == list(range(len(records)))
            assert records == sorted(records, key=lambda record: record.value or b"")
        assert sorted(record.value or b"" for _, record in found) == [row.value for row in sent]
        # All records of a key are in one partition.
        assert len({(partition, record.key) for partition, record in found}) == 50

    def test_from_the_beginning(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A consumer at the beginning reads everything, across batches of every codec.
        """
        for codec in Codec:
            raw.append(topic, rows(4), codec=codec)
        expected = [row._replace(offset=offset) for offset, row in enumerate(rows(4) * len(Codec))]
        assert read(client, topic, len(expected)) == expected

    def test_nulls_are_read(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A missing key or value and a header without a value are read as null, whoever wrote them.
        """
        bare = [Record(0, START_MS, None, None, (Header("null", None), Header("empty", b"")))]
        raw.append(topic, bare)
        assert read(client, topic, 1) == bare

    def test_from_an_offset(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A consumer can start in the middle of a batch.
        """
        raw.append(topic, rows(10))
        assert read(client, topic, 3, start=7) == rows(10)[7:]

    def test_seek(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A consumer can seek back and forth.
        """
        raw.append(topic, rows(10))
        with client.reader(topic) as reader:
            reader.assign({0: BEGINNING})
            first = reader.take(10)
            reader.seek(0, 2)
            again = reader.take(2)
            reader.seek(0, 8)
            last = reader.take(2)
        assert [record for _, record in first] == rows(10)
        assert [record for _, record in again] == rows(10)[2:4]
        assert [record for _, record in last] == rows(10)[8:]

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD], ids=CODEC_NAME)
    def test_from_a_time(self, client: Client, raw: Raw, topic: str, codec: Codec) -> None:
        """
        The offset for a time is that of the first record at or after it, even inside a batch.
        """
        raw.append(topic, rows(10), codec=codec)
        with client.reader(topic) as reader:
            offset = reader.offset_at(0, START_MS + 6_500)
            assert offset == 7
            assert reader.offset_at(0, START_MS) == 0
            assert reader.offset_at(0, START_MS + HOUR_MS) is None
            reader.assign({0: offset})
            assert [record for _, record in reader.take(3)] == rows(10)[7:]

    def test_from_the_end(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A consumer at the end waits, and reads what is produced from then on.
        """
        raw.append(topic, rows(10))
        with client.reader(topic) as reader:
            reader.assign({0: END})
            raw.append(topic, rows(2, 50))
            found = [record for _, record in reader.take(2)]
        assert found == [row._replace(offset=10 + row.offset) for row in rows(2, 50)]

    def test_an_offset_out_of_range(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A consumer behind the end of the log starts at the configured reset position.
        """
        raw.append(topic, rows(3))
        assert read(client, topic, 3, start=1_000) == rows(3)

    @pytest.mark.skipif(FORM is not None, reason="SeaweedMQ keeps all records")
    def test_a_compacted_topic(self, client: Client, raw: Raw, name: str) -> None:
        """
        Consumers read across all gaps: records missing from batches, whole batches, and whole segments.
        """
        client.create_topic(name, 1, COMPACTED)
        raw.append(name, [Record(0, START_MS, b"first", b"stays"), Record(1, START_MS, b"old", b"goes")])
        for number in range(40):
            raw.append(name, [Record(0, START_MS, b"old", b"%d" % number * 50_000)])
            if number == 20:
                raw.append(name, rows(3), codec=Codec.LZ4)
        left = compacted(raw, name, 40)
        assert [record.offset for record in left[:5]] == [0, 23, 24, 25, left[4].offset]
        assert left[4].offset > 33, "no segment went"
        assert read(client, name, len(left)) == left
        assert read(client, name, 1, start=1) == left[1:2]

    def test_watermarks(self, client: Client, raw: Raw, topic: str) -> None:
        """
        The first and the next offset are known for an empty partition and for one with records.
        """
        with client.reader(topic) as reader:
            assert reader.watermarks(0) == (0, 0)
            raw.append(topic, rows(7))
            assert reader.watermarks(0) == (0, 7)


class Administering(Connected):
    """
    Topics are created, changed and deleted.
    """

    def test_topics_are_listed(self, client: Client, raw: Raw, name: str) -> None:
        """
        Topics are listed with their partitions.
        """
        raw.create(f"{name}-a", 1)
        raw.create(f"{name}-b", 3)
        topics = client.topics()
        assert (topics[f"{name}-a"], topics[f"{name}-b"]) == (1, 3)

    def test_topics_are_created(self, client: Client, name: str) -> None:
        """
        A topic has the requested partitions and configs.
        """
        client.create_topic(name, 6, {"retention.ms": "86400000", "cleanup.policy": "compact"})
        assert client.topics()[name] == 6
        config = client.config(name)
        assert (config["retention.ms"], config["cleanup.policy"]) == ("86400000", "compact")

    def test_a_topic_is_not_created_twice(self, client: Client, topic: str) -> None:
        """
        Creating a topic again gives TOPIC_ALREADY_EXISTS.
        """
        with pytest.raises(Refused) as refused:
            client.create_topic(topic, 1, {})
        assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS

    def test_names_are_checked(self, client: Client) -> None:
        """
        A name that Kafka does not allow gives INVALID_TOPIC_EXCEPTION.
        """
        with pytest.raises(Refused) as refused:
            client.create_topic("no spaces", 1, {})
        assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_configs_are_checked(self, client: Client, name: str) -> None:
        """
        An unknown config gives INVALID_CONFIG, and no topic.
        """
        with pytest.raises(Refused) as refused:
            client.create_topic(name, 1, {"no.such.config": "1"})
        assert refused.value.code == ErrorCode.INVALID_CONFIG
        assert name not in client.topics()

    def test_topics_are_deleted(self, client: Client, topic: str) -> None:
        """
        A deleted topic is not listed, and deleting it again fails.
        """
        client.delete_topic(topic)
        assert topic not in client.topics()
        with pytest.raises(Refused) as refused:
            client.delete_topic(topic)
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_a_name_is_reused(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A topic that is recreated after its deletion is empty.
        """
        client.send(topic, rows(3))
        client.delete_topic(topic)
        client.create_topic(topic, 1, {})
        assert raw.records(topic) == []
        client.send(topic, rows(2))
        assert read(client, topic, 2) == rows(2)

    def test_partitions_are_added(self, client: Client, raw: Raw, topic: str) -> None:
        """
        A new partition takes records.
        """
        client.add_partitions(topic, 3)
        assert client.topics()[topic] == 3
        client.send(topic, rows(1), partition=2)
        assert raw.records(topic, 2) == rows(1)

    def test_partitions_are_not_removed(self, client: Client, wide_topic: str) -> None:
        """
        Reducing the number of partitions gives INVALID_PARTITIONS.
        """
        with pytest.raises(Refused) as refused:
            client.add_partitions(wide_topic, 2)
        assert refused.value.code == ErrorCode.INVALID_PARTITIONS


class Behaviour(Producing, Consuming, Administering):
    """
    All tests of a client.
    """
