"""
The path of clients that wait, as Python's profile hook sees it: a long poll that ends without records, and a heartbeat
of a consumer group that changes nothing. Thousands of clients do nothing else, so one more call on these paths fails
here.

What every request costs, from its bytes to its route and back (`kgateway.server` and `kgateway.wire`), is not counted.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock

import kgateway
from kgateway.cluster.view import NewTopic
from kgateway.config.settings import Settings
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.server.gateway import Gateway, ListenerFactory
from kgateway.wire.headers import request_frame
from kgateway.wire.schema import Message
from tests.server.dispatcher import CLIENT_ID, read
from tests.server.test_connection import Transport

pytestmark = pytest.mark.pure("Python's profile hook does not see calls of compiled functions")

OURS = Path(kgateway.__file__).parent
NOT_COUNTED = (str(OURS / "server"), str(OURS / "wire"), str(OURS / "action_queue.py"), str(OURS / "tcp.py"))
TOPIC = "orders"
WAIT_S = 0.5
WARM = 5  # requests before the measured one
FETCH_VERSION = 12


class Waiting:
    """
    A client of a gateway that keeps records in memory, without a reactor.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        gateway = Gateway(Settings(broker="memory:"), self.clock)
        assert gateway.broker.start().called
        assert gateway.broker.create_topic(NewTopic(TOPIC, 1)).called
        connection = ListenerFactory(gateway, "plaintext", None).buildProtocol(IPv4Address("TCP", "10.0.0.7", 4_000))
        assert connection
        self._connection = connection
        self._transport = Transport()
        connection.makeConnection(self._transport)

    def ask(self, request: Message, version: int) -> bytes:
        """
        Send a request, and return its response after the time of a long poll.
        """
        self._transport.clear()
        self._connection.dataReceived(b"".join(request_frame(request, version, 7, CLIENT_ID)))
        for seconds in (WAIT_S, 0, 0):
            self.clock.advance(seconds)
        answer: bytes = self._transport.value()
        return answer

    def calls(self, request: Message, version: int) -> int:
        """
        The number of Python functions of this package that the request calls. Comprehensions do not count: they are
        calls in Python 3.11 only.
        """
        called: list[str] = []

        def hook(frame: FrameType, event: str, _: object) -> None:
            file, name = frame.f_code.co_filename, frame.f_code.co_name
            is_ours = file.startswith(str(OURS)) and not file.startswith(NOT_COUNTED)
            if event == "call" and is_ours and not name.endswith("comp>"):
                called.append(name)

        sys.setprofile(hook)
        try:
            self.ask(request, version)
        finally:
            sys.setprofile(None)
        return len(called)


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


def fetch(**values: Any) -> FetchRequest:
    return FetchRequest(max_wait_ms=round(WAIT_S * 1_000), min_bytes=1, **values)


def named() -> list[FetchRequest.Topic]:
    topic = FetchRequest.Topic
    partition = topic.Partition(partition=0, fetch_offset=0, log_start_offset=-1, partition_max_bytes=1 << 20)
    return [topic(topic=TOPIC, partitions=[partition])]


def measured(waiting: Waiting, request: Callable[[int], Message], version: int) -> int:
    for number in range(WARM):
        waiting.ask(request(number), version)
    return waiting.calls(request(WARM), version)


def test_a_poll_without_a_session_stays_short(waiting: Waiting) -> None:
    """
    This is how librdkafka waits for records.
    """
    request = fetch(session_epoch=-1, topics=named())
    assert (
        not read(FetchResponse, FETCH_VERSION, waiting.ask(request, FETCH_VERSION)).responses[0].partitions[0].records
    )
    assert measured(waiting, lambda _: request, FETCH_VERSION) == 46


def test_a_poll_in_a_session_stays_short(waiting: Waiting) -> None:
    """
    This is how Java's consumer waits for records.
    """
    opened = read(FetchResponse, FETCH_VERSION, waiting.ask(fetch(session_epoch=0, topics=named()), FETCH_VERSION))
    session_id = opened.session_id
    assert session_id

    def request(number: int) -> FetchRequest:
        return fetch(session_id=session_id, session_epoch=1 + number, topics=[])

    assert measured(waiting, request, FETCH_VERSION) == 46


def test_a_heartbeat_of_a_consumer_group_stays_short(waiting: Waiting) -> None:
    """
    Once the member has its assignment, and says nothing new.
    """
    joining = ConsumerGroupHeartbeatRequest(
        group_id="billing",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    waiting.ask(joining, 1)  # the group is loaded then
    answer = read(ConsumerGroupHeartbeatResponse, 1, waiting.ask(joining, 1))
    assert not answer.error_code

    def request(_: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(group_id="billing", member_id="m", member_epoch=answer.member_epoch)

    assert measured(waiting, request, 1) == 52
