"""
A program that produces and consumes all the time with the library that it is told, as one in service does: it makes its
clients once, and leaves all else to them.

    python -m tests.faults.seaweedmq.client_process LIBRARY TOPIC BOOTSTRAP

It numbers its records. When its input ends it sends no more, waits until what was acknowledged is read, and prints what
it knows.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from tempfile import NamedTemporaryFile
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import aiokafka
import confluent_kafka
import kafka

from tests.clients.java_tools import java

_EVERY_S = 0.025
_REQUEST_MS = 5_000
_DELIVERY_MS = 60_000
_POLL_S = 0.2
_PATIENCE_S = 60.0
_JAVA = f"retries={2**31 - 1}\nrequest.timeout.ms={_REQUEST_MS}\ndelivery.timeout.ms={_DELIVERY_MS}\n"  # it has none


class Work:
    """
    The records that were sent, acknowledged, refused and read.
    """

    def __init__(self, topic: str, bootstrap: str) -> None:
        self.topic = topic
        self.bootstrap = bootstrap
        self.sent = 0
        self.acknowledged: list[int] = []
        self.failed: list[str] = []
        self.read: list[int] = []
        self.is_ending = Event()  # nothing more is to be sent
        self.is_over = Event()

    def next(self) -> bytes:
        """
        The value of the next record.
        """
        self.sent += 1
        return b"%d" % (self.sent - 1)

    def acknowledge(self, value: bytes) -> None:
        self.acknowledged.append(int(value))

    def fail(self, error: object) -> None:
        """
        Note that a record was given up.
        """
        self.failed.append(repr(error))

    def wait(self) -> None:
        """
        Wait until each record has its answer, and is read if it was acknowledged.
        """
        deadline = monotonic() + _PATIENCE_S
        while monotonic() < deadline and not self._is_done():
            sleep(_POLL_S)
        self.is_over.set()

    def _is_done(self) -> bool:
        answered = len(self.acknowledged) + len(self.failed)
        return answered == self.sent > 0 and set(self.acknowledged) <= set(self.read)


def librdkafka_sends(work: Work) -> None:
    config = {"request.timeout.ms": _REQUEST_MS, "message.timeout.ms": _DELIVERY_MS, "enable.idempotence": True}
    producer = confluent_kafka.Producer({"bootstrap.servers": work.bootstrap, **config})

    def delivered(error: object, message: Any) -> None:
        if error:
            work.fail(error)
        else:
            work.acknowledge(message.value() or b"")

    while not work.is_ending.is_set():
        producer.produce(work.topic, work.next(), partition=0, on_delivery=delivered)
        producer.poll(0)
        sleep(_EVERY_S)
    producer.flush(_PATIENCE_S)


def librdkafka_reads(work: Work) -> None:
    """
    confluent-kafka's consumer, in a group.
    """
    config = {"group.id": f"{work.topic}-readers", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": work.bootstrap, **config})
    consumer.subscribe([work.topic])
    while not work.is_over.is_set():
        message = consumer.poll(_POLL_S)
        if message and not message.error():
            work.read.append(int(message.value() or b""))
    consumer.close()


def kafka_python_sends(work: Work) -> None:
    config = {"request_timeout_ms": _REQUEST_MS, "delivery_timeout_ms": _DELIVERY_MS, "enable_idempotence": True}
    producer = kafka.KafkaProducer(bootstrap_servers=work.bootstrap.split(","), **config)
    while not work.is_ending.is_set():
        value = work.next()
        sent = producer.send(work.topic, value, partition=0)
        sent.add_callback(lambda _, value=value: work.acknowledge(value)).add_errback(work.fail)
        sleep(_EVERY_S)
    producer.flush(_PATIENCE_S)


def kafka_python_reads(work: Work) -> None:
    """
    kafka-python's consumer, in a group.
    """
    config = {"group_id": f"{work.topic}-readers", "auto_offset_reset": "earliest"}
    consumer = kafka.KafkaConsumer(work.topic, bootstrap_servers=work.bootstrap.split(","), **config)
    while not work.is_over.is_set():
        for found in consumer.poll(timeout_ms=int(_POLL_S * 1_000)).values():
            work.read += [int(record.value) for record in found]
    consumer.close()


async def aiokafka_sends(work: Work) -> None:
    """
    aiokafka's producer. It gives up a record that is older than its request timeout.
    """
    waiting = set()

    def delivered(sent: "asyncio.Future[Any]", value: bytes) -> None:
        waiting.discard(sent)
        if error := sent.exception():
            work.fail(error)
        else:
            work.acknowledge(value)

    async with aiokafka.AIOKafkaProducer(bootstrap_servers=work.bootstrap, enable_idempotence=True) as producer:
        while not work.is_ending.is_set():
            value = work.next()
            sent = await producer.send(work.topic, value, partition=0)
            waiting.add(sent)
            sent.add_done_callback(lambda sent, value=value: delivered(sent, value))
            await asyncio.sleep(_EVERY_S)
        if waiting:
            await asyncio.wait(waiting, timeout=_PATIENCE_S)


async def aiokafka_reads(work: Work) -> None:
    """
    aiokafka's consumer, in a group.
    """
    config = {"group_id": f"{work.topic}-readers", "auto_offset_reset": "earliest"}
    async with aiokafka.AIOKafkaConsumer(work.topic, bootstrap_servers=work.bootstrap, **config) as consumer:
        while not work.is_over.is_set():
            found = await consumer.getmany(timeout_ms=int(_POLL_S * 1_000))
            work.read += [int(record.value) for records in found.values() for record in records]


def java_sends(work: Work) -> None:
    """
    Kafka's own producer, in a program of Kafka's.
    """
    config = ["--bootstrap-server", work.bootstrap, "--topic", work.topic, "--throughput", str(round(1 / _EVERY_S))]
    with NamedTemporaryFile("w", suffix=".properties") as file:
        file.write(_JAVA)
        file.flush()
        _java_sends(work, _running("VerifiableProducer", [*config, "--command-config", file.name]))


def _java_sends(work: Work, program: subprocess.Popen[str]) -> None:
    with program:
        Thread(target=_end_when, args=(work.is_ending, program), daemon=True).start()
        for told in _told(program):
            if told["name"] == "producer_send_success":
                work.acknowledge(told["value"].encode())
            elif told["name"] == "producer_send_error":
                work.fail(told["message"])
            elif told["name"] == "tool_data":
                work.sent = told["sent"]


def java_reads(work: Work) -> None:
    """
    Kafka's own consumer, in a group, in a program of Kafka's.
    """
    config = ["--bootstrap-server", work.bootstrap, "--topic", work.topic, "--group-id", f"{work.topic}-readers"]
    with _running("VerifiableConsumer", [*config, "--verbose"]) as program:
        Thread(target=_end_when, args=(work.is_over, program), daemon=True).start()
        for told in _told(program):
            if told["name"] == "record_data":
                work.read.append(int(told["value"]))


def _running(name: str, config: list[str]) -> subprocess.Popen[str]:
    command = java(f"org.apache.kafka.tools.{name}", *config)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)


def _told(program: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert program.stdout
    return (json.loads(line) for line in program.stdout if line.startswith("{"))


def _end_when(event: Event, program: subprocess.Popen[str]) -> None:
    event.wait()
    program.terminate()


LIBRARIES: dict[str, tuple[Callable[[Work], None], Callable[[Work], None]]] = {
    "librdkafka": (librdkafka_sends, librdkafka_reads),
    "kafka-python": (kafka_python_sends, kafka_python_reads),
    "aiokafka": (lambda work: asyncio.run(aiokafka_sends(work)), lambda work: asyncio.run(aiokafka_reads(work))),
    "java": (java_sends, java_reads),
}


def main(library: str, topic: str, bootstrap: str) -> None:
    """
    Work until the input ends.
    """
    work = Work(topic, bootstrap)
    threads = [Thread(target=each, args=(work,), daemon=True) for each in LIBRARIES[library]]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    work.is_ending.set()
    work.wait()
    for thread in threads:
        thread.join(_PATIENCE_S)
    print(json.dumps({"sent": work.sent, "acknowledged": work.acknowledged, "failed": work.failed, "read": work.read}))


if __name__ == "__main__":
    main(*sys.argv[1:])
