"""
A broker of SeaweedMQ stands still for a while: records wait meanwhile, and take little memory.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.messages.produce import ProduceRequest
from kgateway.wire.errors import ErrorCode
from tests.faults.client import PRODUCE_VERSION, Client, batch_of, produce_request, produced
from tests.faults.process import MIB, resident_bytes
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.kafka_requests import all_values, produce_until_taken

_VALUES = [b"%08d" % number + bytes(1_000_000) for number in range(100)]
_PATIENCE_S = 60
_GROWTH_MAX = 64 * MIB  # with 32 MiB on their way to brokers, and some requests that are being read


@pytest.fixture
def gateway(cluster: DevCluster, tmp_path: Path) -> Iterator[Gateway]:
    found = Gateway(cluster, tmp_path)
    found.start()
    try:
        yield found
    finally:
        cluster.mend()
        found.end()


def sent(gateway: Gateway, cluster: DevCluster, name: str, form: str) -> tuple[Client, list[int], int]:
    """
    Send the values while the broker stands still. Returns the producer, its requests, and how much the gateway has
    grown.
    """
    gateway.create(name, 1, "held", form)
    client = Client(gateway.port, patience_s=_PATIENCE_S)
    produce_until_taken(client, (name, 0), b"first")
    before = resident_bytes(gateway.pid)
    cluster.broker.pause()
    numbers = [client.send(produce_request(name, batch_of(value)), PRODUCE_VERSION) for value in _VALUES]
    return client, numbers, resident_bytes(gateway.pid) - before


def taken(client: Client, numbers: Sequence[int]) -> list[bytes]:
    """
    The values of acknowledged requests; others are refused for lack of room, which a partition shares with others of
    the cluster.
    """
    answers = [produced(client.answer(ProduceRequest, PRODUCE_VERSION, number)) for number in numbers]
    assert {answer.error_code for answer in answers} <= {ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS}
    found = [value for value, answer in zip(_VALUES, answers, strict=True) if answer.error_code == ErrorCode.NONE]
    assert found
    return found


def test_what_it_is_too_slow_for_waits(cluster: DevCluster, gateway: Gateway) -> None:
    """
    Accepted records are acknowledged when the broker resumes, and are there once, in order.
    """
    name = f"slow-{uuid4().hex[:8]}"
    client, numbers, growth = sent(gateway, cluster, name, "batch")
    with client:
        cluster.broker.resume()
        values = taken(client, numbers)
    assert growth < _GROWTH_MAX, f"{growth / MIB:.0f} MiB"
    assert all_values(gateway, (name, 0)) == [b"first", *values]


@pytest.mark.parametrize("form", ["batch", "record"])
def test_what_waits_goes_to_the_next_broker(form: str, cluster: DevCluster, gateway: Gateway) -> None:
    """
    The broker is killed instead.
    """
    name = f"next-{uuid4().hex[:8]}"
    client, numbers, _ = sent(gateway, cluster, name, form)
    with client:
        cluster.broker.kill()
        cluster.start_broker()
        values = taken(client, numbers)
    assert all_values(gateway, (name, 0)) == [b"first", *values]
