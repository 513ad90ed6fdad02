"""
What differs in front of a SeaweedMQ cluster: a topic has a format, and a restarted gateway has only what is in the
cluster.
"""

from collections.abc import Callable, Iterator

import pytest

from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.clients.behaviour import CODEC_NAME, HOUR_MS, START_MS, read, rows
from tests.clients.client import Client, Refused, Sending
from tests.clients.confluent_client import Confluent
from tests.clients.groups.behaviour import append, ends
from tests.clients.groups.chaos import HEARTBEAT_INTERVAL_MS, SERVER_OPTIONS, SESSION_TIMEOUT_MS
from tests.clients.groups.crew import Crew
from tests.clients.groups.kinds import CONFLUENT
from tests.clients.groups.members.reports import Wanted
from tests.clients.groups.observer import committed, described
from tests.clients.raw import Raw
from tests.clients.seaweedmq import broker
from tests.faults.client import Client as Asker
from tests.faults.victim import free_port

FORMS = ("batch", "record", "plain")
PLAIN = {"seaweedmq.format": "plain"}


@pytest.fixture(scope="module")
def shared_kafka() -> Iterator[Kafka]:
    """
    A gateway that keeps its port.
    """
    with broker("batch") as where:
        listen = ("--listen", f"tcp:{free_port()}:interface=127.0.0.1")
        with Kafka(*where, *listen, *SERVER_OPTIONS) as kafka:
            yield kafka


@pytest.fixture
def client(shared_kafka: Kafka) -> Client:
    """
    A client for all that is the same with every client.
    """
    return Confluent(shared_kafka.bootstrap)


@pytest.fixture(params=["stop", "kill"])
def restart(request: pytest.FixtureRequest, shared_kafka: Kafka) -> Callable[[], None]:
    """
    Stops the gateway, in one of two ways, and starts it again.
    """

    def again() -> None:
        getattr(shared_kafka, request.param)()
        shared_kafka.start()

    return again


class TestRestart:
    """
    A restarted gateway shows what was there before.
    """

    def test_records(self, client: Client, shared_kafka: Kafka, name: str, restart: Callable[[], None]) -> None:
        """
        Batches are unchanged in the format `batch`, records in `record`, keys and values in `plain`; the next record
        follows them.
        """
        for form in FORMS:
            client.create_topic(f"{name}-{form}", 1, {"seaweedmq.format": form})
        sent = [*rows(20), Record(20, START_MS, None, None, (Header("null", None), Header("h", b"1")))]
        for how in (Sending(codec=Codec.ZSTD), Sending(codec=Codec.LZ4, idempotent=True)):
            client.send(f"{name}-batch", sent, how=how)
            client.send(f"{name}-record", sent, how=how)
            client.send(f"{name}-plain", rows(21), how=how)
        with Raw(shared_kafka.bootstrap) as raw:
            batches = raw.batches(f"{name}-batch")
        restart()
        with Raw(shared_kafka.bootstrap) as raw:
            assert raw.batches(f"{name}-batch") == batches
        both = [row._replace(offset=offset) for offset, row in enumerate(sent * 2)]
        for form in ("batch", "record"):
            assert read(client, f"{name}-{form}", 42) == both
        assert pairs(read(client, f"{name}-plain", 42)) == pairs(rows(21) * 2)
        for form in FORMS:
            assert client.send(f"{name}-{form}", rows(2)) == [42, 43]
            assert pairs(read(client, f"{name}-{form}", 2, start=42)) == pairs(rows(2))

    def test_topics(self, client: Client, name: str, restart: Callable[[], None]) -> None:
        """
        Topics have their partitions and configs, widened ones their records too, and deleted ones remain deleted.
        """
        client.create_topic(f"{name}-grown", 1, {"retention.ms": "86400000"})
        client.send(f"{name}-grown", rows(10))
        client.add_partitions(f"{name}-grown", 3)
        client.send(f"{name}-grown", rows(5))
        client.send(f"{name}-grown", rows(1), partition=2)
        client.create_topic(f"{name}-deleted", 1, {})
        client.delete_topic(f"{name}-deleted")
        restart()
        topics = client.topics()
        assert topics[f"{name}-grown"] == 3
        assert f"{name}-deleted" not in topics
        assert client.config(f"{name}-grown")["retention.ms"] == "86400000"
        assert pairs(read(client, f"{name}-grown", 15)) == pairs([*rows(10), *rows(5)])
        with client.reader(f"{name}-grown") as reader:
            assert [reader.watermarks(index) for index in range(3)] == [(0, 15), (0, 0), (0, 1)]
            assert reader.offset_at(0, START_MS + 6_500) == 7

    def test_a_working_group(self, shared_kafka: Kafka, name: str, restart: Callable[[], None]) -> None:
        """
        A member remains in its group, which has its committed offsets, and continues behind them; so does a member
        that joins then.
        """
        how = Wanted(shared_kafka.bootstrap, name, [name], "eager", SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS)
        with Raw(shared_kafka.bootstrap) as raw:
            raw.create(name, 4)
            append(raw, name, 10)
        with Crew(how) as crew:
            first = crew.start(CONFLUENT)
            crew.wait(lambda: crew.committed == ends(name, 10), "all committed")
            restart()
            with Asker(shared_kafka.port) as asker, Raw(shared_kafka.bootstrap) as raw:
                crew.wait(lambda: committed(asker, name) == ends(name, 10), "read again")
                append(raw, name, 5)
                crew.wait(lambda: committed(asker, name) == ends(name, 15), "all committed")
                assert described(asker, name).members == 1
                first.leave()
                append(raw, name, 5)
                second = crew.start(CONFLUENT)
                crew.wait(lambda: committed(asker, name) == ends(name, 20), "all committed")
            assert first.processed == {where: [*range(15)] for where in ends(name, 0)}
            assert second.processed == {where: [*range(15, 20)] for where in ends(name, 0)}


class TestPlain:
    """
    Topics of the format `plain` have a place for keys and values only.
    """

    @pytest.fixture
    def topic(self, client: Client, name: str) -> str:
        client.create_topic(name, 1, PLAIN)
        return name

    @pytest.mark.parametrize("codec", Codec, ids=CODEC_NAME)
    def test_keys_and_values(self, client: Client, topic: str, codec: Codec) -> None:
        """
        Keys and values can be read whatever compression a client uses, also without a key and with an empty value.
        """
        sent = [*rows(20), Record(20, START_MS, None, b"value"), Record(21, START_MS, b"key", b"")]
        assert client.send(topic, sent, how=Sending(codec=codec)) == [*range(22)]
        assert pairs(read(client, topic, 22)) == pairs(sent)
        assert pairs(read(client, topic, 2, start=20)) == pairs(sent[20:])

    @pytest.mark.parametrize(
        "record",
        [
            Record(0, START_MS, b"key", None),
            Record(0, START_MS, b"", b"value"),
            Record(0, START_MS, b"key", b"value", (Header("h", b"1"),)),
        ],
        ids=["no value", "an empty key", "headers"],
    )
    def test_no_place(self, client: Client, raw: Raw, topic: str, record: Record) -> None:
        """
        Records with something that has no place are refused, and not stored.
        """
        with pytest.raises(Refused) as refused:
            client.send(topic, [record])
        assert refused.value.code == ErrorCode.INVALID_RECORD
        assert raw.records(topic) == []

    def test_no_timestamps(self, client: Client, topic: str, name: str) -> None:
        """
        Records have the time of their arrival; a topic that is to keep producers' timestamps cannot be created.
        """
        client.send(topic, rows(1))
        (record,) = read(client, topic, 1)
        assert record.timestamp > START_MS + HOUR_MS
        with pytest.raises(Refused) as refused:
            client.create_topic(f"{name}-kept", 1, PLAIN | {"message.timestamp.type": "CreateTime"})
        assert refused.value.code == ErrorCode.INVALID_CONFIG
        assert f"{name}-kept" not in client.topics()


def pairs(records: list[Record]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in records]
