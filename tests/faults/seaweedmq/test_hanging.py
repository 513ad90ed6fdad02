"""
A call to the cluster hangs, and fetches are still answered, for every partition, at about their deadline.
"""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.wire.errors import ErrorCode
from tests.faults.client import FETCH_VERSION, Client
from tests.faults.ledger import PartitionName
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.kafka_requests import (
    NOT_YET,
    PATIENCE_S,
    all_values,
    produce,
    produce_until_taken,
    values_of,
)

_WAIT_MS = 500
_SHORT_WAITS_MS = 0, 50, 200
_BYTES = 1 << 20
_A_LITTLE_S = 1.0  # on a machine that is busy
_TIMES, _LATE_S = 10, 0.04  # as it mostly is not for so long: of some fetches one is no later than this
_PAUSE_S = 0.2
_OLD = [b"old %d" % number for number in range(10)]

Answer = FetchResponse.Response.Partition


@pytest.fixture
def gateway(cluster: DevCluster, tmp_path: Path) -> Iterator[Gateway]:
    found = Gateway(cluster, tmp_path)
    found.start()
    try:
        yield found
    finally:
        cluster.mend()
        found.end()


@pytest.fixture
def topic(gateway: Gateway) -> str:
    """
    A topic whose partition 0 has records in files alone, and whose partition 1 has some in the gateway.
    """
    name = f"hanging-{uuid4().hex[:8]}"
    gateway.create(name, 2, "held", "batch")
    with Client(gateway.port) as client:
        produce_until_taken(client, (name, 0), *_OLD)
    gateway.stop()
    gateway.start()
    with Client(gateway.port) as client:
        produce_until_taken(client, (name, 1), b"new")
    return name


def fetched(client: Client, *places: PartitionName, offset: int = 0, wait_ms: int = _WAIT_MS) -> dict[int, Answer]:
    """
    The answers to a fetch from the beginnings of these partitions, or another offset, which must arrive in time.
    """
    wanted = [_wanted(index, offset) for _, index in places]
    topics = [FetchRequest.Topic(topic=places[0][0], partitions=wanted)]
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=_BYTES, topics=topics)
    began = monotonic()
    answer = client.ask(request, FETCH_VERSION)
    assert monotonic() - began < wait_ms / 1_000 + _A_LITTLE_S
    found = {told.partition_index: told for told in answer.responses[0].partitions}
    assert all(told.error_code == ErrorCode.NONE for told in found.values())
    return found


def _wanted(index: int, offset: int) -> FetchRequest.Topic.Partition:
    return FetchRequest.Topic.Partition(partition=index, fetch_offset=offset, partition_max_bytes=_BYTES)


def taken_until_refused(client: Client, place: PartitionName) -> list[bytes]:
    """
    Produce until the gateway's lock has expired, and it refuses. Returns what it has acknowledged.
    """
    taken: list[bytes] = []
    deadline = monotonic() + PATIENCE_S
    while (code := produce(client, place, value := b"meanwhile %d" % len(taken))) == ErrorCode.NONE:
        assert monotonic() < deadline
        taken.append(value)
        sleep(_PAUSE_S)
    assert code == NOT_YET, ErrorCode(code).name
    return taken


def test_a_fetch_of_what_only_files_have_is_answered_when_the_filer_hangs(
    cluster: DevCluster, gateway: Gateway, topic: str
) -> None:
    """
    The answer has no records. Once the filer answers again, they can be fetched.
    """
    place = topic, 0
    with Client(gateway.port) as client:
        cluster.server.pause()
        told = fetched(client, place)[0]
        assert (told.high_watermark, values_of(told)) == (len(_OLD), [])
        assert fetched(client, place)[0].high_watermark == len(_OLD)
    cluster.server.resume()
    assert all_values(gateway, place) == _OLD


@pytest.mark.parametrize("wait_ms", _SHORT_WAITS_MS)
def test_a_fetch_that_waits_less_is_answered_sooner(
    cluster: DevCluster, gateway: Gateway, topic: str, wait_ms: int
) -> None:
    """
    The answer has records of other partitions.
    """
    took: list[float] = []
    with Client(gateway.port) as client:
        cluster.server.pause()
        for _ in range(_TIMES):
            began = monotonic()
            told = fetched(client, (topic, 0), wait_ms=wait_ms)[0]
            took.append(monotonic() - began)
            assert (told.high_watermark, values_of(told)) == (len(_OLD), [])
        assert min(took) < wait_ms / 1_000 + _LATE_S
        both = fetched(client, (topic, 0), (topic, 1), wait_ms=wait_ms)
        assert [values_of(both[index]) for index in (0, 1)] == [[], [b"new"]]


def test_who_never_waits_reads_it_all_the_same(cluster: DevCluster, gateway: Gateway, topic: str) -> None:
    """
    Such a client gets the records once the filer answers again.
    """
    found: list[bytes] = []
    with Client(gateway.port) as client:
        cluster.server.pause()
        assert values_of(fetched(client, (topic, 0), wait_ms=0)[0]) == []
        cluster.server.resume()
        deadline = monotonic() + PATIENCE_S
        while len(found) < len(_OLD) and monotonic() < deadline:
            found += values_of(fetched(client, (topic, 0), offset=len(found), wait_ms=0)[0])
    assert found == _OLD


def test_other_partitions_are_read_meanwhile(cluster: DevCluster, gateway: Gateway, topic: str) -> None:
    """
    The answer has records that the gateway holds, beside a partition that cannot be read.
    """
    with Client(gateway.port) as client:
        cluster.server.pause()
        told = fetched(client, (topic, 0), (topic, 1))
        assert [values_of(told[index]) for index in (0, 1)] == [[], [b"new"]]


def test_a_gateway_that_takes_no_more_is_read_all_the_same(cluster: DevCluster, gateway: Gateway, topic: str) -> None:
    """
    While the filer hangs for longer than the gateway's lock lasts, exactly the acknowledged records can be read.
    """
    with Client(gateway.port) as client:
        cluster.server.pause()
        values = [b"new", *taken_until_refused(client, (topic, 1))]
        told = fetched(client, (topic, 0), (topic, 1))
        assert [told[index].high_watermark for index in (0, 1)] == [len(_OLD), len(values)]
        assert [values_of(told[index]) for index in (0, 1)] == [[], values]
        tail = fetched(client, (topic, 1), offset=len(values))[1]
        assert (tail.high_watermark, values_of(tail)) == (len(values), [])


def test_a_broker_that_hangs_is_no_matter_to_who_reads(cluster: DevCluster, gateway: Gateway, topic: str) -> None:
    """
    Files are read from the filer, and new records are in the gateway.
    """
    with Client(gateway.port) as client:
        cluster.broker.pause()
        for place, values in (((topic, 0), _OLD), ((topic, 1), [b"new"])):
            assert values_of(fetched(client, place)[place[1]]) == values
