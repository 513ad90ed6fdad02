"""
Two gateways in front of a cluster whose filers share a store, while filers come and go.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import pytest
from confluent_kafka import KafkaError, Message, Producer

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster, Shape
from tests.broker.seaweed.cluster import pause_second_filer
from tests.faults.seaweedmq.gateway_pair import Pair, leads, until_told
from tests.faults.seaweedmq.kafka_requests import all_values

_PAUSE_S = 0.005
_HANGS_S = 10.0  # longer than the leader's lock lasts
_FLUSH_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    running = DevCluster(tmp_path_factory.mktemp("filers"), shape=Shape(filers=2))
    try:
        yield running.start()
    finally:
        running.kill()


@pytest.fixture
def pair(cluster: DevCluster, tmp_path: Path) -> Iterator[Pair]:
    found = Pair(cluster, tmp_path, f"filers-{monotonic():.0f}")
    try:
        yield found
    finally:
        found.end()


@contextmanager
def producing(pair: Pair) -> Iterator[list[bytes]]:
    """
    Produce without a pause; the list has the values that were acknowledged, all of them at the end.
    """
    acknowledged: list[bytes] = []
    is_over = Event()
    producer = Producer({"bootstrap.servers": pair.bootstrap, "enable.idempotence": True, "linger.ms": 5})

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acknowledged.append(message.value() or b"")

    def produce() -> None:
        number = 0
        while not is_over.is_set():
            producer.produce(pair.place[0], b"%d" % number, partition=0, on_delivery=delivered)
            number += 1
            producer.poll(0)
            sleep(_PAUSE_S)

    thread = Thread(target=produce)
    thread.start()
    try:
        yield acknowledged
    finally:
        is_over.set()
        thread.join()
    assert producer.flush(_FLUSH_S) == 0


def wait_for_more(acknowledged: list[bytes], seconds: float) -> None:
    """
    Wait until records are acknowledged that were not before.
    """
    count, deadline = len(acknowledged), monotonic() + seconds
    while len(acknowledged) <= count + 10:
        assert monotonic() < deadline, f"nothing more than {count} records was acknowledged within {seconds:g} s"
        sleep(_PAUSE_S)


def test_what_is_acknowledged_while_filers_come_and_go_is_there_once(cluster: DevCluster, pair: Pair) -> None:
    """
    Another filer hangs or is killed, and the leader goes on. The filer that decides is killed, and the leader goes on
    when it is there again. The leader is killed, and the other gateway takes over.
    """
    deciding, other = cluster.filers
    with producing(pair) as acknowledged:
        wait_for_more(acknowledged, 20)
        pause_second_filer(cluster)
        sleep(_HANGS_S)
        wait_for_more(acknowledged, 2)
        other.resume()
        for _ in range(3):
            other.kill()
            wait_for_more(acknowledged, 2)
            cluster.start_filer(1)
            wait_for_more(acknowledged, 2)
        deciding.kill()
        sleep(1)
        cluster.start_filer(0)
        wait_for_more(acknowledged, 20)
        assert not leads(pair.second)
        pair.first.kill()
        other.kill()
        cluster.start_filer(1)
        pair.wait_for_second()
        wait_for_more(acknowledged, 60)
        pair.first.start()
        until_told(pair.first, 2, {1, 2})
    assert sorted(all_values(pair.second, pair.place), key=int) == sorted(acknowledged, key=int)
    assert len(set(acknowledged)) == len(acknowledged)
    assert not pair.first.tracebacks() + pair.second.tracebacks()


def test_the_filer_that_decides_hangs(cluster: DevCluster, pair: Pair) -> None:
    """
    No gateway takes over without it. When it goes on, the leader does, too, and nothing is lost.
    """
    with producing(pair) as acknowledged:
        wait_for_more(acknowledged, 20)
        cluster.filers[0].pause()
        sleep(_HANGS_S)
        cluster.filers[0].resume()
        wait_for_more(acknowledged, 30)
    assert not leads(pair.second)
    assert sorted(all_values(pair.first, pair.place), key=int) == sorted(acknowledged, key=int)
