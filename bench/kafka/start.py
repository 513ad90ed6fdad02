"""
From the start of the process until a record is acknowledged, with a topic and its records already in the data folder.

The server was stopped in good order before. The client tries to connect every few milliseconds from the moment the
process is started, asks for the topic, and produces one record; what is answered with an error it tries again.
"""

from collections.abc import Sequence
from threading import Thread
from time import monotonic, sleep, time

from bench.kafka.clients import create_topic, fill
from bench.kafka.rounds import Plan, Workload
from bench.kafka.servers import Server
from bench.kafka.table import Measured, Row, at_most
from kgateway.messages.metadata import MetadataRequest
from kgateway.records.builder import BatchBuilder
from tests.faults.client import PRODUCE_VERSION, Client, produce_request, produced

TOPIC = "start"
_RECORDS = 100_000
_METADATA_VERSION = 9
_AGAIN_S = 0.005
_PATIENCE_S = 60


def _acknowledged(port: int) -> bool:
    """
    Whether one record is, now.
    """
    builder = BatchBuilder()
    builder.append(None, b"value", timestamp=int(time() * 1_000))
    try:
        with Client(port) as client:
            client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=TOPIC)]), _METADATA_VERSION)
            answer = client.ask(produce_request(TOPIC, builder.build()), PRODUCE_VERSION)
    except (OSError, AssertionError):  # nobody listens, or not for long
        return False
    return produced(answer).error_code == 0


def _prepare(server: Server, plan: Plan) -> None:
    create_topic(server, TOPIC)
    fill(server, TOPIC, plan.part(_RECORDS))


def _run(server: Server, plan: Plan) -> Sequence[Measured]:
    server.stop()
    began = monotonic()
    starting = Thread(target=server.start)
    starting.start()
    while not _acknowledged(server.port):
        assert monotonic() < began + _PATIENCE_S, f"{server.name} has acknowledged nothing since it started"
        sleep(_AGAIN_S)
    took = monotonic() - began
    starting.join()
    return [Measured(took)]


WORKLOAD = Workload(
    "start",
    [Row("start of the process until the first ack", "s", at_most(0.1))],
    _run,
    _prepare,
)
