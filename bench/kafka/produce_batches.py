"""
Producing large batches, as fast as one client of librdkafka does, and as fast as one that only sends.

Values of 1,000 random bytes in four partitions, acks of all; batches of up to 1 MB, which librdkafka fills for 5 ms.
The client that only sends has its requests ready, and up to five of them in flight. Each turn has a topic of its own,
which is deleted after it: otherwise the page cache would grow by gigabytes, and in a virtual machine, memory that was
never used before is slow.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial

from bench.kafka.clients import all_taken, create_topic, delete_topic, random_values, send
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_least
from bench.produce import LARGE, PARTITIONS, RECORD_BYTES, producer
from bench.work import Cost, cost
from kgateway.messages.produce import ProduceRequest
from tests.faults.client import PRODUCE_VERSION, Client, batch_of, frame_of, produce_request, produced

TOPIC = "batches"
_RECORDS = 500_000
_A_BATCH = 1_000  # records
_IN_FLIGHT = 5


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    count, values = plan.part(_RECORDS), random_values(RECORD_BYTES)
    create_topic(server, TOPIC)
    client = producer(server.bootstrap, TOPIC, **LARGE)
    with all_taken(server, TOPIC, count):
        took = cost(server.pid, partial(send, client, TOPIC, values, count))
    batches = count // _A_BATCH
    frames = [
        frame_of(produce_request(TOPIC, batch_of(*values[:_A_BATCH]), partition=index), PRODUCE_VERSION, index)
        for index in range(PARTITIONS)
    ]
    with all_taken(server, TOPIC, batches * _A_BATCH):
        took_sending = cost(server.pid, partial(_send_frames, server.port, frames, batches))
    delete_topic(server, TOPIC)
    return [_measured(took, count), _measured(took_sending, batches * _A_BATCH)]


def _send_frames(port: int, frames: Sequence[bytes], count: int) -> None:
    """
    Send this many requests, to one partition after the other.
    """
    with Client(port) as client:
        in_flight = deque[int]()

        def receive() -> None:
            answer = client.answer(ProduceRequest, PRODUCE_VERSION, in_flight.popleft())
            assert produced(answer).error_code == 0

        for number in range(count):
            if len(in_flight) == _IN_FLIGHT:
                receive()
            client.socket.sendall(frames[number % len(frames)])
            in_flight.append(number % len(frames))
        while in_flight:
            receive()


def _measured(took: Cost, count: int) -> Measured:
    megabytes = count * RECORD_BYTES / 1e6
    return Measured(megabytes / took.seconds, took.server_cpu * 1_000 / megabytes, took.client_cpu / took.seconds)


WORKLOAD = Workload(
    "produce in batches of 1 MB",
    [
        Row("produce, confluent-kafka, batches of 1 MB", "MB/s", at_least(1.5), "GB"),
        Row("produce, a client that only sends, batches of 1 MB", "MB/s", at_least(2.0), "GB"),
    ],
    _run,
)
