"""
The wire codec against kio and kafka-python, in one run: `python -m bench.wire`.

Each codec encodes and decodes the same message of its own classes; all encoders end in one `bytes`. kio encodes in
Python and decodes in Rust. Last comes what importing the codec and handling the first message cost.
"""

import io
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

from kafka.protocol.consumer import FetchResponse as KafkaPythonFetchResponse
from kafka.protocol.metadata import MetadataResponse as KafkaPythonMetadataResponse
from kafka.protocol.producer import ProduceRequest as KafkaPythonProduceRequest
from kio.schema.fetch.v18.response import FetchResponse as KioFetchResponse
from kio.schema.metadata.v13.response import MetadataResponse as KioMetadataResponse
from kio.schema.produce.v13.request import ProduceRequest as KioProduceRequest
from kio.serial import entity_reader, entity_writer

from bench.pairing import timed
from bench.recording import recorded, results_file
from kgateway.messages.fetch import FetchResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.messages.produce import ProduceRequest
from kgateway.wire.codec import decoder, encode, encoder
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

BATCH = bytes(range(256)) * 64

_FIRST_MESSAGE = """
from time import perf_counter
started = perf_counter()
from kgateway.wire.codec import decode, encode
from kgateway.messages.metadata import MetadataRequest
decode(MetadataRequest, 13, encode(MetadataRequest(topics=None), 13))
print(perf_counter() - started)
"""


def metadata() -> MetadataResponse:
    """
    100 topics of 12 partitions on 3 brokers.
    """
    topic, broker = MetadataResponse.Topic, MetadataResponse.Broker
    partitions = [
        topic.Partition(error_code=0, partition_index=i, leader_id=i % 3, replica_nodes=[0, 1, 2], isr_nodes=[0, 1, 2])
        for i in range(12)
    ]
    topics = [topic(error_code=0, name=f"topic-{i}", topic_id=Uuid.random(), partitions=partitions) for i in range(100)]
    brokers = [broker(node_id=i, host="kafka.example", port=9092) for i in range(3)]
    return MetadataResponse(brokers=brokers, cluster_id="cluster", controller_id=0, topics=topics)


def fetch() -> FetchResponse:
    """
    A batch of 16 KiB from each of 10 partitions.
    """
    response = FetchResponse.Response
    partitions = [
        response.Partition(partition_index=i, error_code=0, high_watermark=100, last_stable_offset=100, records=BATCH)
        for i in range(10)
    ]
    return FetchResponse(session_id=7, responses=[response(topic_id=Uuid.random(), partitions=partitions)])


def produce() -> ProduceRequest:
    """
    A batch of 16 KiB for each of 10 partitions.
    """
    topic = ProduceRequest.TopicData
    partitions = [topic.PartitionData(index=i, records=BATCH) for i in range(10)]
    return ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[topic(topic_id=Uuid.random(), partition_data=partitions)]
    )


CASES: list[tuple[str, Message, int, Any, Any]] = [
    ("Metadata response, 100 x 12", metadata(), 13, KafkaPythonMetadataResponse, KioMetadataResponse),
    ("Fetch response, 10 x 16 KiB", fetch(), 18, KafkaPythonFetchResponse, KioFetchResponse),
    ("Produce request, 10 x 16 KiB", produce(), 13, KafkaPythonProduceRequest, KioProduceRequest),
]


def encoders(ours: Message, version: int, kafka_python: Any, kio: Any) -> dict[str, Callable[[], object]]:
    """
    The encoders of this message; all must agree on the bytes.
    """
    data = encode(ours, version)
    write_ours, write_kio = encoder(type(ours), version), entity_writer(kio)
    theirs = kafka_python.decode(data, version=version)
    theirs._header = None  # its encode() asks for it
    of_kio, _ = entity_reader(kio)(data, 0)

    def encode_kio() -> bytes:
        buffer = io.BytesIO()
        write_kio(buffer, of_kio)
        return buffer.getvalue()

    ways: dict[str, Callable[[], object]] = {
        "kgateway": lambda: b"".join(write_ours(ours)),
        "kafka-python": lambda: theirs.encode(version=version),
        "kio": encode_kio,
    }
    assert all(way() == data for way in ways.values())
    return ways


def decoders(ours: Message, version: int, kafka_python: Any, kio: Any) -> dict[str, Callable[[], object]]:
    """
    The decoders of this message.
    """
    data = encode(ours, version)
    read_ours, read_kio = decoder(type(ours), version), entity_reader(kio)
    return {
        "kgateway": lambda: read_ours(data, 0),
        "kafka-python": lambda: kafka_python.decode(data, version=version),
        "kio": lambda: read_kio(data, 0),
    }


def first_message() -> tuple[float, float]:
    """
    Milliseconds from a started interpreter to the first message handled: the median and the worst of nine runs.
    """
    runs = [subprocess.run([sys.executable, "-c", _FIRST_MESSAGE], capture_output=True, check=True) for _ in range(9)]
    found = sorted(float(run.stdout) * 1000 for run in runs)
    return median(found), found[-1]


def measure() -> None:
    """
    Print the tables of docs/benchmarks.md.
    """
    print("| message | work | kgateway | kafka-python | kio | kafka-python / kgateway | kio / kgateway |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, message, version, kafka_python, kio in CASES:
        for work, ways in (("encode", encoders), ("decode", decoders)):
            us = timed(ways(message, version, kafka_python, kio))
            ratios = [f"{us[other] / us['kgateway']:.1f} x" for other in ("kafka-python", "kio")]
            times = [f"{us[codec]:.1f} µs" for codec in ("kgateway", "kafka-python", "kio")]
            print(f"| {name}, v{version} | {work} | {' | '.join([*times, *ratios])} |", flush=True)
    middle, worst = first_message()
    print("\n| import of the codec, and the first message both ways | median of 9, ms | worst, ms |")
    print("|---|---:|---:|")
    print(f"| Metadata request, v13 | {middle:.0f} | {worst:.0f} |")


if __name__ == "__main__":
    with recorded(results_file("wire"), "kio", "kafka-python") as recording, recording.of("wire"):
        measure()
