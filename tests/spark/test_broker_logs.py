"""
Logs behind scripted servers.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest

from kgateway.client import cluster as client
from kgateway.client.offsets import Extent
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.messages.list_offsets import ListOffsetsResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.spark.errors import DataLost, TopicGone, Unreadable
from kgateway.spark.logs import broker_logs as servers
from kgateway.spark.logs.broker_logs import ServerLogs, Servers
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import Uuid
from tests.client.scripted import ScriptedServer, scripted
from tests.spark.folders import ORDERS, batch, marker, offsets_in

OFFERED = {"Metadata": (0, 13), "ListOffsets": (1, 11), "Fetch": (4, 18)}
TOPIC = Uuid(range(16))
Answer = FetchResponse.Response.Partition
Pair = tuple[ScriptedServer, ScriptedServer]
Logs = Callable[..., ServerLogs]


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """
    Two impatiently asked servers, of which the second leads the only partition.
    """
    monkeypatch.setattr(client, "SETTLING_S", 0.2)
    monkeypatch.setattr(servers, "SETTLING_S", 0.2)
    with scripted(**OFFERED) as first, scripted(**OFFERED) as second:
        first.will(metadata(first, second))
        second.will(metadata(first, second))
        yield first, second


@pytest.fixture
def logs() -> Iterator[Callable[..., ServerLogs]]:
    """
    A function that makes logs behind servers and closes them after the test.
    """
    with ExitStack() as opened:

        def logs_of(*servers: ScriptedServer, **settings: Any) -> ServerLogs:
            addresses = tuple(server.address for server in servers)
            made = ServerLogs(replace(Servers(addresses, answer_s=2.0, patience_s=0.5), **settings))
            return opened.enter_context(closing(made))

        yield logs_of


def metadata(*servers: ScriptedServer, leader: int = 1, topic_id: Uuid = TOPIC, code: int = 0) -> MetadataResponse:
    """
    The cluster's metadata of its topic.
    """
    brokers = [
        MetadataResponse.Broker(node_id=number, host=server.address.host, port=server.address.port)
        for number, server in enumerate(servers)
    ]
    kind = MetadataResponse.Topic
    one = kind.Partition(
        error_code=0, partition_index=0, leader_id=leader, leader_epoch=3, replica_nodes=[], isr_nodes=[]
    )
    topic = kind(error_code=code, name="orders", topic_id=topic_id, partitions=[] if code else [one])
    return MetadataResponse(brokers=brokers, topics=[topic])


def fetched(records: bytes = b"", code: int = 0, end: int = 100, **more: Any) -> FetchResponse:
    """
    A Fetch answer with these batches.
    """
    told = Answer(
        partition_index=0,
        error_code=code,
        high_watermark=end,
        last_stable_offset=end,
        aborted_transactions=more.get("aborted"),
        records=memoryview(records),
    )
    return FetchResponse(responses=[FetchResponse.Response(topic="orders", topic_id=TOPIC, partitions=[told])])


def listed(offset: int, code: int = 0) -> ListOffsetsResponse:
    kind = ListOffsetsResponse.Topic
    return ListOffsetsResponse(
        topics=[kind(name="orders", partitions=[kind.Partition(partition_index=0, error_code=code, offset=offset)])]
    )


def fetches(server: ScriptedServer) -> list[FetchRequest]:
    return [asked for asked, _ in server.asked if isinstance(asked, FetchRequest)]


def test_batches_come_from_the_leader(pair: Pair, logs: Logs) -> None:
    """
    Each request continues behind the last answer until the range is read, by the topic's id.
    """
    first, second = pair
    second.will(fetched(batch(0, 3) + batch(3, 2)), fetched(batch(5, 3)[:-1]), fetched(batch(5, 3)))
    # The second answer has no whole batch, so it is requested again.
    assert offsets_in(logs(first), 1, 8) == list(range(1, 8))
    assert [one.topics[0].partitions[0].fetch_offset for one in fetches(second)] == [1, 5, 5]
    assert fetches(second)[0].topics[0].topic_id == TOPIC
    assert fetches(second)[0].topics[0].partitions[0].current_leader_epoch == 3
    assert not fetches(first)


def test_servers_without_ids_of_topics(pair: Pair, logs: Logs) -> None:
    """
    Old servers are asked by the topic's name.
    """
    first, second = pair
    first.answers.clear()
    first.will(metadata(first, second, topic_id=Uuid(bytes(16))))
    second.will(fetched(batch(0, 3)))
    assert offsets_in(logs(first), 0, 3) == [0, 1, 2]
    assert fetches(second)[0].topics[0].topic == "orders"


def test_a_leader_that_moves_is_followed(pair: Pair, logs: Logs) -> None:
    """
    A refusal makes the reader look up the new leader.
    """
    first, second = pair
    first.answers.clear()
    first.will(metadata(first, second), metadata(first, second, leader=0))
    second.will(fetched(batch(0, 3)), fetched(code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    first.will(fetched(batch(3, 3)))
    assert offsets_in(logs(first), 0, 6) == list(range(6))


def test_a_broken_connection_is_replaced(pair: Pair, logs: Logs) -> None:
    """
    A server that restarts is asked again, and no batch is lost or doubled.
    """
    first, second = pair
    second.will(fetched(batch(0, 3)), fetched(batch(3, 3)))
    said = second.answer
    broken = list[bytes]()

    def say(frame: bytes) -> bytes:
        if frame[:2] == b"\0\1" and not broken and len(fetches(second)) == 1:
            broken.append(frame)
            return b""
        return said(frame)

    second.say = say
    assert offsets_in(logs(first), 0, 6) == list(range(6))
    assert broken


def test_an_unreachable_bootstrap_server(pair: Pair, logs: Logs) -> None:
    """
    The first server that answers is used.
    """
    first, second = pair
    second.will(fetched(batch(0, 3)))
    with scripted(**OFFERED) as gone:
        reading = logs(gone, first)
    assert offsets_in(reading, 0, 3) == [0, 1, 2]


def test_a_retry_is_logged(pair: Pair, logs: Logs, caplog: pytest.LogCaptureFixture) -> None:
    """
    It says how long it goes on, because a user would wait without a word.
    """
    with scripted(**OFFERED) as gone:
        reading = logs(gone, patience_s=0.6)
    with pytest.raises(Unreadable):
        reading.partitions()
    [said] = caplog.messages
    assert said.startswith("cannot get the list of topics from 127")
    assert said.endswith("; retrying for 1 s")


def test_patience_ends(pair: Pair, logs: Logs) -> None:
    """
    The error says what was tried, where, and the last failure.
    """
    first, second = pair
    second.will(fetched(code=ErrorCode.KAFKA_STORAGE_ERROR))
    with pytest.raises(Unreadable, match=r"cannot get orders-0 from 127.*tried for 0 s.*KAFKA_STORAGE_ERROR"):
        offsets_in(logs(first), 0, 3)
    with scripted(**OFFERED) as gone:
        reading = logs(gone)
    with pytest.raises(Unreadable, match=r"cannot get the list of topics from .*nothing listens at 127"):
        reading.partitions()


def test_final_errors_are_not_retried(pair: Pair, logs: Logs) -> None:
    """
    A final refusal is an error at once.
    """
    first, second = pair
    second.will(fetched(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(Unreadable, match="may not do this to the topic"):
        offsets_in(logs(first, patience_s=1_000.0), 0, 3)
    assert len(fetches(second)) == 1


def _gone(first: ScriptedServer, second: ScriptedServer) -> list[MetadataResponse]:
    return [metadata(first, second), metadata(first, second, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def _anew(first: ScriptedServer, second: ScriptedServer) -> list[MetadataResponse]:
    return [metadata(first, second), metadata(first, second, topic_id=Uuid(bytes(15) + b"\1"))]


@pytest.mark.parametrize(
    ("then", "told"), [(_gone, "there is no orders-0"), (_anew, "deleted and recreated while it was being read")]
)
def test_a_topic_that_is_deleted(
    pair: Pair, logs: Logs, then: Callable[..., list[MetadataResponse]], told: str
) -> None:
    """
    A topic that is deleted or replaced while it is read is not waited for; a query that accepts losses ends there.
    """
    for fail in (True, False):
        first, second = pair
        first.answers.clear()
        second.answers.clear()
        first.will(*then(first, second))
        second.will(fetched(batch(0, 3)), fetched(code=ErrorCode.UNKNOWN_TOPIC_ID))
        if fail:
            with pytest.raises(TopicGone, match=told):
                offsets_in(logs(first, patience_s=1_000.0), 0, 6)
        else:
            assert offsets_in(logs(first, patience_s=1_000.0), 0, 6, fail=False) == [0, 1, 2]


def test_records_deleted_by_retention_meanwhile(pair: Pair, logs: Logs) -> None:
    """
    Offsets that are deleted before they are read are lost, and later ones are not.
    """
    for fail in (True, False):
        first, second = pair
        second.answers.clear()
        out_of_range = fetched(code=ErrorCode.OFFSET_OUT_OF_RANGE)
        second.will(fetched(batch(0, 3)), out_of_range, fetched(batch(7, 3)))
        second.will(listed(7), listed(10))
        if fail:
            with pytest.raises(DataLost, match="orders-0 begins with offset 7 now, but offsets 3 to 6 were requested"):
                offsets_in(logs(first), 0, 10)
        else:
            assert offsets_in(logs(first), 0, 10, fail=False) == [0, 1, 2, 7, 8, 9]


def test_a_log_that_has_lost_its_end(pair: Pair, logs: Logs) -> None:
    """
    A log that ends early is waited for briefly, because a new leader may learn late where it ends.
    """
    first, second = pair
    second.will(fetched(batch(0, 3)), fetched(end=3))
    with pytest.raises(DataLost, match="orders-0 ends at offset 3"):
        offsets_in(logs(first), 0, 6)
    second.answers.clear()
    second.will(fetched(batch(0, 3)), fetched(end=3), fetched(batch(3, 3)))
    assert offsets_in(logs(first), 0, 6) == list(range(6))


def test_aborted_transactions(pair: Pair, logs: Logs) -> None:
    """
    read_committed is requested, and aborted records are left out.
    """
    first, second = pair
    by = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    found = [batch(0), batch(1, **by), batch(2), marker(3, 7), batch(4, **by), marker(5, 7)]
    aborted = [Answer.AbortedTransaction(producer_id=7, first_offset=1)]
    second.will(fetched(b"".join(found), aborted=aborted))
    second.will(listed(0), listed(6))
    reading = logs(first, committed_only=True)
    assert offsets_in(reading, 0, 6) == [0, 2, 4]
    assert fetches(second)[0].isolation_level == 1
    assert reading.extents([ORDERS]) == {ORDERS: Extent(0, 6)}
    assert second.asked[-1][0].isolation_level == 1


def test_missing_topics_are_left_out(pair: Pair, logs: Logs) -> None:
    first, second = pair
    assert logs(first).partitions(["orders"]) == {"orders": [TopicPartition("orders", 0)]}
    first.answers.clear()
    first.will(metadata(first, second, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert logs(first).partitions(["orders"]) == {}
    assert logs(first).extents([]) == {}
