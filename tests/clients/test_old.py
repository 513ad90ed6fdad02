"""
Clients that do not know record batches, beside today's: Debian's kafka-python as a client of brokers from 0.8.1 to
0.10.1, and Kafka's Java client of 0.10.2.
"""

import os
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Consumer, TopicPartition

from kgateway.records.batch import TimestampType
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.clients.behaviour import CODEC_NAME, START_MS, read, rows
from tests.clients.client import BEGINNING, PATIENCE_S, Client, Refused, Sending
from tests.clients.confluent_client import Confluent
from tests.clients.program import Program
from tests.clients.raw import Raw

SOURCES = f"{os.path.dirname(__file__)}/old"
JAVA = "java-0.10.2"
KINDS = ["0.8.1", "0.8.2", "0.9", "0.10.0", "0.10.1", JAVA]
WITH_TIMESTAMPS = {"0.10.0", "0.10.1", JAVA}
MUST_FIT = {"0.8.1", "0.8.2", "0.9", "0.10.0"}  # the bytes that they fetch per request
OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
HEADERS = (Header("h", b"lost"),)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def program(kind: str) -> Iterator[Program]:
    """
    The old client in a process of its own.
    """
    python = ["/usr/bin/python3", f"{SOURCES}/kafkapython.py", kind]
    java = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{os.environ.get('OLD_KAFKA_JARS')}/*"]
    with Program([*java, f"{SOURCES}/OldClient.java"] if kind == JAVA else python) as program:
        yield program


@pytest.fixture
def old(program: Program, shared_kafka: Kafka) -> Client:
    return program.connect(shared_kafka.bootstrap)


@pytest.fixture
def new(shared_kafka: Kafka) -> Client:
    return Confluent(shared_kafka.bootstrap)


def known(records: Sequence[Record], kind: str) -> list[Record]:
    """
    The part of a record that an old client knows.
    """
    times = kind in WITH_TIMESTAMPS
    return [record._replace(headers=(), timestamp=record.timestamp if times else -1) for record in records]


def codecs(kind: str) -> list[Codec]:
    return OLD_CODECS[:-1] if kind == "0.8.1" else OLD_CODECS  # lz4 came with 0.8.2


def resumed(program: Program, kafka: Kafka, topic: str, group: str, count: int) -> list[int]:
    """
    The offsets that the next member of a group reads.
    """
    found = program.ask("resume", bootstrap=kafka.bootstrap, topic=topic, group=group, count=count, patience=PATIENCE_S)
    return [row["offset"] for row in found]


class TestProducing:
    """
    Message sets of old clients are stored as batches.
    """

    @pytest.mark.parametrize("codec", OLD_CODECS, ids=CODEC_NAME)
    def test_codec_is_stored(self, codec: Codec, kind: str, old: Client, new: Client, raw: Raw, topic: str) -> None:
        """
        Batches are stored in the codec of the message set, and old and new clients read them.
        """
        if codec not in codecs(kind):
            return
        sent = rows(50)
        assert old.send(topic, sent, how=Sending(codec=codec)) == list(range(50))
        assert {batch.header.codec for batch in raw.batches(topic)} == {codec}
        assert read(new, topic, 50) == known(sent, kind) == raw.records(topic)
        assert read(old, topic, 50) == known(sent, kind)

    def test_nulls_are_kept(self, kind: str, old: Client, raw: Raw, topic: str) -> None:
        """
        A missing key or value differs from an empty one.
        """
        pairs = [(None, b"value"), (b"", b"value"), (b"key", None), (b"key", b""), (b"", b"")]
        sent = [Record(i, START_MS, key, value) for i, (key, value) in enumerate(pairs)]
        old.send(topic, sent)
        assert raw.records(topic) == known(sent, kind)
        assert read(old, topic, len(sent)) == known(sent, kind)

    @pytest.mark.parametrize("acks", [0, 1, -1])
    def test_acks(self, acks: int, kind: str, old: Client, new: Client, topic: str) -> None:
        """
        Records arrive, in order, whatever the producer waits for.
        """
        sent = rows(200)
        old.send(topic, sent, how=Sending(acks=acks, batch_bytes=500))
        assert read(new, topic, 200) == known(sent, kind)

    def test_log_append_time(self, old: Client, new: Client, raw: Raw, name: str) -> None:
        """
        If the topic is configured so, clients that know timestamps see the time of arrival.
        """
        new.create_topic(name, 1, {"message.timestamp.type": "LogAppendTime"})
        old.send(name, rows(3))
        assert {batch.header.timestamp_type for batch in raw.batches(name)} == {TimestampType.LOG_APPEND_TIME}
        assert all(record.timestamp > START_MS for record in read(new, name, 3))

    def test_a_large_record_is_refused(self, old: Client, new: Client, raw: Raw, name: str) -> None:
        """
        A message above the topic's limit gives MESSAGE_TOO_LARGE, and is not stored.
        """
        new.create_topic(name, 1, {"max.message.bytes": "2000"})
        old.send(name, rows(1, 1_000))
        with pytest.raises(Refused) as refused:
            old.send(name, rows(1, 3_000))
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert len(raw.records(name)) == 1

    @pytest.mark.parametrize("wanted", Codec, ids=CODEC_NAME)
    def test_compression_type(self, wanted: Codec, kind: str, old: Client, new: Client, raw: Raw, name: str) -> None:
        """
        The topic's compression.type applies to old clients, too.
        """
        new.create_topic(name, 1, {"compression.type": "uncompressed" if not wanted else wanted.name.lower()})
        old.send(name, rows(50), how=Sending(codec=Codec.GZIP))
        assert {batch.header.codec for batch in raw.batches(name)} == {wanted}
        assert read(new, name, 50) == known(rows(50), kind)


class TestConsuming:
    """
    Old clients read what new clients send.
    """

    @pytest.mark.parametrize("codec", OLD_CODECS, ids=CODEC_NAME)
    def test_headers_are_dropped(self, codec: Codec, kind: str, old: Client, new: Client, topic: str) -> None:
        """
        Old clients get all of a record except its headers.
        """
        if codec not in codecs(kind):
            return
        sent = [row._replace(headers=HEADERS) for row in rows(50)]
        new.send(topic, sent, how=Sending(codec=codec))
        assert read(old, topic, 50) == known(sent, kind)

    def test_mixed(self, kind: str, old: Client, new: Client, topic: str) -> None:
        """
        Old and new clients write in turn, in all codecs, and both read everything in order.
        """
        sent: list[Record] = []
        for codec in codecs(kind):
            for client in (old, new):
                some = [row._replace(offset=len(sent) + row.offset) for row in rows(10)]
                client.send(topic, some, how=Sending(codec=codec))
                sent += some if client is new else known(some, kind)
        assert read(new, topic, len(sent)) == sent
        assert read(old, topic, len(sent)) == known(sent, kind)

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP], ids=CODEC_NAME)
    def test_from_an_offset(self, codec: Codec, kind: str, old: Client, raw: Raw, topic: str) -> None:
        """
        A consumer starts in the middle of a batch.
        """
        raw.append(topic, rows(10), codec=codec)
        assert read(old, topic, 3, start=7) == known(rows(10)[7:], kind)

    def test_many_records(self, kind: str, old: Client, raw: Raw, topic: str) -> None:
        """
        Of thousands of records in batches larger than one fetch none is lost.
        """
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY):
            raw.append(topic, rows(6_000, 150), codec=codec)
        found = read(old, topic, 18_000)
        assert [record.offset for record in found] == list(range(18_000))
        assert [record.value for record in found] == [row.value for row in rows(6_000, 150)] * 3

    def test_before_zstd(self, kind: str, old: Client, new: Client, topic: str) -> None:
        """
        Records before a batch in zstd are read; the batch itself is not.
        """
        new.send(topic, rows(5))
        new.send(topic, rows(5), how=Sending(codec=Codec.ZSTD))
        assert read(old, topic, 5) == known(rows(5), kind)

    def test_a_record_larger_than_a_fetch(
        self, kind: str, program: Program, shared_kafka: Kafka, raw: Raw, topic: str
    ) -> None:
        """
        From Fetch v3 on a record larger than the fetch is returned all the same; before, the consumer learns that
        there is one.
        """
        raw.append(topic, rows(1, 50_000))
        program.ask("open", bootstrap=shared_kafka.bootstrap, topic=topic, fetch_bytes=10_000)
        try:
            program.ask("assign", starts={"0": BEGINNING})
            if kind in MUST_FIT:
                with pytest.raises(Refused) as refused:
                    program.ask("take", count=1, patience=PATIENCE_S)
                assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
            else:
                assert len(program.ask("take", count=1, patience=PATIENCE_S)) == 1
        finally:
            program.ask("close")

    def test_ends(self, old: Client, raw: Raw, topic: str) -> None:
        """
        A consumer learns where the log begins and ends.
        """
        raw.append(topic, rows(7))
        with old.reader(topic) as reader:
            reader.assign({0: BEGINNING})
            assert reader.watermarks(0) == (0, 7)


class TestGroups:
    """
    Old clients form groups and commit offsets.
    """

    def test_commits(self, program: Program, group_kafka: Kafka, name: str) -> None:
        """
        A member resumes where the previous one stopped.
        """
        with Raw(group_kafka.bootstrap) as raw:
            raw.create(name)
            raw.append(name, rows(20))
        group = f"g-{name}"
        assert resumed(program, group_kafka, name, group, 7) == list(range(7))
        assert resumed(program, group_kafka, name, group, 5) == list(range(7, 12))

    def test_commits_of_today(self, program: Program, group_kafka: Kafka, name: str) -> None:
        """
        New clients find what an old member has committed, and the old one resumes where a new one has stopped.
        """
        with Raw(group_kafka.bootstrap) as raw:
            raw.create(name)
            raw.append(name, rows(20))
        group = f"g-{name}"
        consumer = Consumer(
            {"bootstrap.servers": group_kafka.bootstrap, "group.id": group, "enable.auto.commit": False}
        )
        try:
            consumer.commit(offsets=[TopicPartition(name, 0, 4)], asynchronous=False)
            assert resumed(program, group_kafka, name, group, 5) == list(range(4, 9))
            [found] = consumer.committed([TopicPartition(name, 0)], PATIENCE_S)
            assert found.offset == 9
        finally:
            consumer.close()
