"""
A broker of SeaweedMQ that stands still for a while: what is produced meanwhile waits, and takes little memory.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.messages.produce import ProduceRequest
from kgateway.wire.errors import ErrorCode
from tests.faults.client import PRODUCE_VERSION, Client, batch_of, produce_request, produced
from tests.faults.process import MIB, resident_bytes
from tests.faults.seaweedmq.asking import all_values, produce_until_taken
from tests.faults.seaweedmq.gateway import Gateway

_REQUESTS, _VALUE_BYTES = 100, 1_000_000
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


def test_what_it_is_too_slow_for_waits(cluster: DevCluster, gateway: Gateway) -> None:
    """
    What is not refused for want of room is acknowledged when the broker goes on, and is there once, in order. How much
    room there is for one partition is up to how many the cluster has.
    """
    name = f"slow-{uuid4().hex[:8]}"
    gateway.create(name, 1, "held", "batch")
    values = [b"%08d" % number + bytes(_VALUE_BYTES) for number in range(_REQUESTS)]
    with Client(gateway.port) as client:
        produce_until_taken(client, (name, 0), b"first")
        before = resident_bytes(gateway.pid)
        cluster.broker.pause()
        sent = [client.send(produce_request(name, batch_of(value)), PRODUCE_VERSION) for value in values]
        growth = resident_bytes(gateway.pid) - before
        cluster.broker.resume()
        answers = [produced(client.answer(ProduceRequest, PRODUCE_VERSION, number)) for number in sent]
    assert growth < _GROWTH_MAX, f"{growth / MIB:.0f} MiB"
    taken = [value for value, answer in zip(values, answers, strict=True) if answer.error_code == ErrorCode.NONE]
    assert taken
    assert {answer.error_code for answer in answers} <= {ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS}
    assert all_values(gateway, (name, 0)) == [b"first", *taken]
