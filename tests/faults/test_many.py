"""
Many partitions need few descriptors and little memory, and after a crash the server is back at once.

MANY_TOPICS is the number of topics with four partitions, a hundred by default. With MANY_MIB there is also a crash
with that much in the active segments of a few partitions.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.fetch import FetchRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.records.batch import batches
from kgateway.records.record import records
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.faults.client import FETCH_VERSION, PRODUCE_VERSION, Client, batch_of, produce_request, produced
from tests.faults.ledger import PartitionName
from tests.faults.process import MIB, resident_bytes

TOPICS = int(os.environ.get("MANY_TOPICS", "100"))
LARGE_MIB = int(os.environ.get("MANY_MIB", "0"))
PARTITIONS = 4
DESCRIPTORS = 512  # the server's limit, below the number of files
OTHER_DESCRIPTORS = 40  # reactor, listener, connections, threads that write topics
BASE_MIB = 100
KIB_EACH = 30  # memory of a used partition
READY_S = 10  # on a busy machine; the measured time is printed
LARGE = "large"
_AT_ONCE = 50  # topics in a request
_CREATE_VERSION = 7
_NOT_YET = ErrorCode.NOT_LEADER_OR_FOLLOWER
_AGAIN_S = 0.005
_PATIENCE_S = 120


class FewDescriptors(Kafka):
    """
    A server with fewer descriptors than partitions.
    """

    def _command(self) -> Sequence[str]:
        return ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$0" "$@"', *super()._command()]


def timed_start(kafka: Kafka) -> float:
    """
    Start, and return the seconds until the process reported ready.
    """
    began = monotonic()
    kafka.start()
    return monotonic() - began


def groups(topics: Sequence[str]) -> Iterator[Sequence[str]]:
    """
    Topics by request.
    """
    return (topics[first : first + _AT_ONCE] for first in range(0, len(topics), _AT_ONCE))


def create(port: int, topics: Sequence[str], partitions: int = PARTITIONS) -> None:
    """
    Create the topics. Their records are of 2023, and are kept.
    """
    forever = [CreateTopicsRequest.Topic.Config(name="retention.ms", value="-1")]
    with Client(port, patience_s=_PATIENCE_S) as client:
        for group in groups(topics):
            asked = [
                CreateTopicsRequest.Topic(
                    name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=forever
                )
                for name in group
            ]
            told = client.ask(CreateTopicsRequest(topics=asked), _CREATE_VERSION).topics
            assert not any(topic.error_code for topic in told)


def value_of(place: PartitionName, turn: int) -> bytes:
    """
    The value written to a partition.
    """
    topic, partition = place
    return f"{topic} {partition} {turn}".encode()


def write(port: int, topics: Sequence[str], turn: int) -> None:
    """
    Write an acknowledged record to each partition.
    """
    with Client(port, patience_s=_PATIENCE_S) as client:
        for group in groups(topics):
            places = [(name, index) for name in group for index in range(PARTITIONS)]
            while places:
                answer = client.ask(request_of(places, turn), PRODUCE_VERSION)
                told = [(topic.name, row) for topic in answer.responses for row in topic.partition_responses]
                assert len(told) == len(places)
                assert {row.error_code for _, row in told} <= {ErrorCode.NONE, _NOT_YET}, told
                places = [(name, row.index) for name, row in told if row.error_code]


def request_of(places: Sequence[PartitionName], turn: int) -> ProduceRequest:
    """
    A request with a record for each of these partitions.
    """
    row_of, topic_of = ProduceRequest.TopicData.PartitionData, ProduceRequest.TopicData
    topics: dict[str, ProduceRequest.TopicData] = {}
    for name, index in places:
        topic = topics.setdefault(name, topic_of(name=name, partition_data=[]))
        topic.partition_data.append(row_of(index=index, records=batch_of(value_of((name, index), turn))))
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=list(topics.values()))


def fetched(client: Client, request: FetchRequest) -> dict[PartitionName, Any]:
    """
    The response for each partition.
    """
    topics = client.ask(request, FETCH_VERSION).responses
    return {(told.topic, row.partition_index): row for told in topics for row in told.partitions}


def written(port: int, topics: Sequence[str]) -> dict[PartitionName, list[bytes | None]]:
    found: dict[PartitionName, list[bytes | None]] = {}
    part_of, topic_of = FetchRequest.Topic.Partition, FetchRequest.Topic
    with Client(port, patience_s=_PATIENCE_S) as client:
        for group in groups(topics):
            wanted = [
                topic_of(
                    topic=name,
                    partitions=[
                        part_of(partition=index, fetch_offset=0, partition_max_bytes=1 << 16)
                        for index in range(PARTITIONS)
                    ],
                )
                for name in group
            ]
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=wanted)
            while (rows := fetched(client, request)) and any(row.error_code for row in rows.values()):
                assert {row.error_code for row in rows.values()} <= {ErrorCode.NONE, _NOT_YET}, rows
            for place, row in rows.items():
                found[place] = [record.value for batch in batches(row.records) for record in records(batch)]
    return found


def holds(kafka: Kafka, topics: Sequence[str]) -> str:
    """
    Check the bounds of descriptors and memory, and return both as text.
    """
    count, resident = len(os.listdir(f"/proc/{kafka.pid}/fd")), resident_bytes(kafka.pid)
    assert count < DESCRIPTORS // 4 + OTHER_DESCRIPTORS
    assert resident < BASE_MIB * MIB + len(topics) * PARTITIONS * KIB_EACH * 1024
    return f"{count} descriptors, {resident / MIB:.0f} MiB"


def test_many_partitions_need_few_descriptors(tmp_path: Path) -> None:
    """
    All partitions are written and read with few descriptors and bounded memory; after a kill the server is back soon,
    and has all records.
    """
    topics = [f"topic-{number}" for number in range(TOPICS)]
    places = [(name, index) for name in topics for index in range(PARTITIONS)]
    with FewDescriptors(folder=tmp_path) as kafka:
        print(f"\nbefore: {holds(kafka, [])}")
        began = monotonic()
        create(kafka.port, topics)
        print(f"{len(places)} partitions made in {monotonic() - began:.2f} s: {holds(kafka, topics)}")
        began = monotonic()
        write(kafka.port, topics, 0)
        print(f"written in {monotonic() - began:.2f} s: {holds(kafka, topics)}")
        assert written(kafka.port, topics) == {place: [value_of(place, 0)] for place in places}
        print(f"read: {holds(kafka, topics)}")
        kafka.kill()
        took = timed_start(kafka)
        print(f"ready {took:.2f} s after a crash")
        assert took < READY_S
        began = monotonic()
        write(kafka.port, topics, 1)
        print(f"written again in {monotonic() - began:.2f} s: {holds(kafka, topics)}")
        both = {place: [value_of(place, 0), value_of(place, 1)] for place in places}
        assert written(kafka.port, topics) == both
        kafka.stop()
        print(f"ready {timed_start(kafka):.2f} s after a stop in good order: {holds(kafka, topics)}")
        assert written(kafka.port, topics) == both
        assert "Traceback" not in kafka.log


def fill(port: int, batch: bytes, count: int) -> None:
    """
    Write `count` batches to each partition of the large topic.
    """
    with Client(port, patience_s=_PATIENCE_S) as client:
        for _ in range(count):
            asked = [client.send(produce_request(LARGE, batch, partition=index), PRODUCE_VERSION) for index in range(4)]
            for number in asked:
                told = produced(client.answer(ProduceRequest, PRODUCE_VERSION, number))
                assert told.error_code == ErrorCode.NONE, told


def acknowledged_after(port: int, batch: bytes, partition: int, began: float) -> tuple[float, int]:
    """
    The seconds until a batch for a partition of the large topic is acknowledged, and its offset.
    """
    while True:
        with Client(port, patience_s=_PATIENCE_S) as client:
            told = produced(client.ask(produce_request(LARGE, batch, partition=partition), PRODUCE_VERSION))
        if told.error_code == ErrorCode.NONE:
            return monotonic() - began, told.base_offset
        assert told.error_code == _NOT_YET, told
        sleep(_AGAIN_S)


@pytest.mark.skipif(not LARGE_MIB, reason="MANY_MIB says how much is written")
@pytest.mark.parametrize("forgotten", [False, True], ids=["as it is", "without checkpoints"])
def test_recovery_of_large_active_segments(tmp_path: Path, forgotten: bool) -> None:
    """
    However much there is to recover after a crash, clients can connect at once and soon write to any partition.
    """
    topics = [f"topic-{number}" for number in range(TOPICS // PARTITIONS)]
    batch = batch_of(*([os.urandom(1_000)] * 64))
    each = LARGE_MIB * MIB // PARTITIONS // len(batch)
    with Kafka(folder=tmp_path) as kafka:
        create(kafka.port, [*topics, LARGE])
        write(kafka.port, topics, 0)
        began = monotonic()
        fill(kafka.port, batch, each)
        print(f"\n{LARGE_MIB} MiB written in {monotonic() - began:.1f} s")
        kafka.kill()
        if forgotten:
            (tmp_path / "kgateway-data" / "kgateway.settled").unlink()
        began = monotonic()
        took = timed_start(kafka)
        print(f"ready after {took:.2f} s")
        assert took < READY_S
        for index in range(PARTITIONS):
            after, offset = acknowledged_after(kafka.port, batch, index, began)
            print(f"a batch for partition {index} acknowledged after {after:.2f} s")
            assert offset == each * 64
        write(kafka.port, topics, 1)
        print(f"one for each of {len(topics) * PARTITIONS} others after {monotonic() - began:.2f} s")
