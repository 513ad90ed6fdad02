"""
Another program publishes to a partition while a gateway does, so SeaweedMQ gives other offsets than expected.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.formats.format import Message
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from tests.broker.seaweedmq.foreign_topic import ForeignTopic
from tests.faults.client import FETCH_VERSION, Client, fetch_request
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.kafka_requests import all_values, produce_until_taken


@pytest.fixture
def gateway(cluster: DevCluster, tmp_path: Path) -> Iterator[Gateway]:
    found = Gateway(cluster, tmp_path)
    found.start()
    try:
        yield found
    finally:
        found.end()


def made(gateway: Gateway, form: str, acks: str = "held") -> str:
    """
    The name of a new topic of one partition.
    """
    name = f"intruded-{form}-{uuid4().hex[:8]}"
    gateway.create(name, 1, acks, form)
    return name


def test_batches_that_come_again_are_there_once(cluster: DevCluster, gateway: Gateway) -> None:
    """
    A broken stream, whose messages arrive late, would do the same. The next record gets the next offset.
    """
    place = made(gateway, "batch"), 0
    with Client(gateway.port) as client:
        produce_until_taken(client, place, b"a", b"b")
        [told] = client.ask(fetch_request(place[0]), FETCH_VERSION).responses[0].partitions
        ForeignTopic(cluster, name=place[0]).publish([Message(b"", bytes(told.records))])
        produce_until_taken(client, place, b"c")
        produce_until_taken(client, place, b"d")
    assert all_values(gateway, place) == [b"a", b"b", b"c", b"d"]
    gateway.stop()
    gateway.start()
    assert all_values(gateway, place) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("form", ["record", "plain"])
def test_records_of_others_and_ours_are_all_there(cluster: DevCluster, gateway: Gateway, form: str) -> None:
    """
    The expected offsets were given to the other program, so producers must retry; acknowledged records are kept.
    """
    place = made(gateway, form), 0
    with Client(gateway.port) as client:
        produce_until_taken(client, place, b"a")
        ForeignTopic(cluster, FORMATS[form].record_type(), place[0]).publish([Message(b"", b"theirs")])
        produce_until_taken(client, place, b"b")
    found = all_values(gateway, place)
    assert found[:2] == [b"a", b"theirs"]
    assert set(found[2:]) == {b"b"}  # once, or what was refused is there, too


@pytest.mark.parametrize("acks", ["held", "flushed"])
def test_what_is_no_batch_is_passed_over(cluster: DevCluster, gateway: Gateway, acks: str) -> None:
    """
    It arrives while the gateway runs, when its broker is killed, and before the next gateway; each message is logged.
    """
    place = made(gateway, "batch", acks), 0
    others = ForeignTopic(cluster, name=place[0])
    with Client(gateway.port) as client:
        produce_until_taken(client, place, b"a")
        others.publish([Message(b"key", b"theirs")])
        produce_until_taken(client, place, b"b")
        others.publish([Message(b"key", b"theirs"), Message(b"key", b"theirs")])
        cluster.broker.kill()
        cluster.start_broker()
        produce_until_taken(client, place, b"c")
    others.publish([Message(b"key", b"theirs")])
    assert all_values(gateway, place) == [b"a", b"b", b"c"]
    gateway.stop()
    gateway.start()
    with Client(gateway.port) as client:
        produce_until_taken(client, place, b"d")
    assert all_values(gateway, place) == [b"a", b"b", b"c", b"d"]
    assert not gateway.tracebacks()
    assert f"skipped message 1 of another program in {others.folder}" in gateway.log
