"""
The traffic of clients and a gateway, judged by Wireshark's dissector, an independent implementation of Kafka's
protocol.

The dissector knows versions up to those of Kafka 2.5, so the clients here are old ones, or are made to speak like one.
"""

import re
import subprocess
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from kgateway.records.compression import Codec
from kgateway.testing.kafka import Kafka
from tests.clients.aiokafka_client import AioKafka
from tests.clients.behaviour import START_MS, rows
from tests.clients.client import BEGINNING, PATIENCE_S, Client, Refused, Sending
from tests.clients.kafkapython_client import KafkaPython
from tests.clients.pcap import Piece, capture
from tests.clients.recorder import Recorder

FIELDS = ("kafka.api_key", "kafka.api_version", "kafka.batch_codec", "_ws.expert.message")
PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS, CREATE_PARTITIONS = 19, 20, 22, 32, 37
BASIC = {PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS}
ADVANCED = {CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS, CREATE_PARTITIONS}
# Wireshark complains of the table in an ApiVersions response, which lists such versions.
TOO_NEW = re.compile(r"Unsupported \w+ version\. Supports v[-\d]+\.|Unknown \d+ API key")


class Packet(NamedTuple):
    """
    tshark's fields of a packet with Kafka in it. Only requests have versions.
    """

    keys: list[int]
    versions: list[int]
    codecs: list[int]
    complaints: list[str]

    @property
    def is_answer(self) -> bool:
        return not self.versions


class Talk(NamedTuple):
    """
    Recorded traffic, and the APIs that should be in it.
    """

    pieces: list[Piece]
    apis: set[int]


def library_talks(client: Client) -> None:
    client.create_topic("talk", 1, {"retention.ms": "86400000"})
    for codec in Codec:
        client.send("talk", rows(20), how=Sending(codec=codec))
    client.send("talk", rows(20), how=Sending(idempotent=True))
    with client.reader("talk") as reader:
        reader.assign({0: BEGINNING})
        reader.take(120)
        reader.watermarks(0)
        reader.offset_at(0, START_MS + 1)
    client.topics()
    client.config("talk")
    client.add_partitions("talk", 3)
    with pytest.raises(Refused):
        client.create_topic("talk", 1, {})
    client.delete_topic("talk")


def kcat_talks(address: str) -> None:
    """
    The traffic of kcat with the same APIs, as far as it has them.
    """
    lines = "".join(f"key {i}:{i:0100}\n" for i in range(20))
    for codec in Codec:
        _kcat(address, "-P", "-t", "talk", "-K:", "-H", "h=1", "-z", codec.name.lower(), text=lines)
    _kcat(address, "-C", "-t", "talk", "-e")
    _kcat(address, "-Q", "-t", "talk:0:1")
    _kcat(address, "-L")


def _kcat(address: str, *arguments: str, text: str = "") -> None:
    command = ["kcat", "-b", address, *arguments]
    subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=True)


def recorded(talk: Callable[[str], None], apis: set[int]) -> Talk:
    """
    The traffic of a client with a gateway of its own.
    """
    with Recorder() as recorder, Kafka("--advertise", recorder.address) as kafka:
        recorder.gateway_port = kafka.port
        talk(recorder.address)
    return Talk(recorder.pieces, apis)


TALKS: dict[str, Callable[[], Talk]] = {
    "aiokafka": lambda: recorded(lambda address: library_talks(AioKafka(address)), BASIC | ADVANCED),
    "kafka-python of Kafka 2.4": lambda: recorded(
        lambda address: library_talks(KafkaPython(address, api_version=(2, 4))), BASIC | ADVANCED
    ),
    "kcat": lambda: recorded(kcat_talks, BASIC),
}


@pytest.fixture(scope="module", params=TALKS)
def talk(request: pytest.FixtureRequest) -> Talk:
    """
    The traffic of each client.
    """
    return TALKS[request.param]()


def tshark(folder: Path, pieces: Sequence[Piece], which: str, fields: Sequence[str]) -> list[list[str]]:
    """
    These fields of the packets that match the filter.
    """
    (folder / "talk.pcap").write_bytes(capture(pieces))
    command = ["tshark", "-n", "-2", "-r", str(folder / "talk.pcap"), "-Y", which, "-T", "fields"]
    wanted = chain.from_iterable(("-e", field) for field in fields)
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def dissected(folder: Path, pieces: Sequence[Piece]) -> list[Packet]:
    """
    The packets with Kafka in them.
    """
    found = tshark(folder, pieces, "kafka", FIELDS)
    return [
        Packet(_numbers(keys), _numbers(versions), _numbers(codecs), complaints.split(",") if complaints else [])
        for keys, versions, codecs, complaints in found
    ]


def _numbers(shown: str) -> list[int]:
    return [int(number) for number in shown.split(",") if number]


def complaints(packets: Sequence[Packet]) -> list[str]:
    """
    The complaints of the dissector, except about versions that an ApiVersions response only lists.
    """
    return [
        f"{packet.keys} {packet.versions}: {complaint}"
        for packet in packets
        for complaint in packet.complaints
        if not (packet.is_answer and packet.keys == [API_VERSIONS] and TOO_NEW.fullmatch(complaint))
    ]


def test_nothing_is_malformed(talk: Talk, tmp_path: Path) -> None:
    """
    The dissector finds no fault with any request or response, knows each version, and matches each response to its
    request.
    """
    assert complaints(dissected(tmp_path, talk.pieces)) == []


def test_everything_is_dissected(talk: Talk, tmp_path: Path) -> None:
    """
    No bytes are left out, and requests and responses of each API occur.
    """
    assert tshark(tmp_path, talk.pieces, "tcp.len > 0 && !kafka && !tcp.reassembled_in", ["frame.number"]) == []
    packets = dissected(tmp_path, talk.pieces)
    for is_answer in (False, True):
        assert {key for packet in packets if packet.is_answer is is_answer for key in packet.keys} >= talk.apis


def test_records_of_each_codec_are_dissected(talk: Talk, tmp_path: Path) -> None:
    """
    Batches of every codec are seen in requests and in responses.
    """
    packets = dissected(tmp_path, talk.pieces)
    produced = [packet for packet in packets if not packet.is_answer and PRODUCE in packet.keys]
    fetched = [packet for packet in packets if packet.is_answer and FETCH in packet.keys]
    for some in (produced, fetched):
        assert {codec for packet in some for codec in packet.codecs} == set(Codec)


def test_a_short_response_is_noticed(talk: Talk, tmp_path: Path) -> None:
    """
    The dissector complains about a response that lacks its last byte.
    """
    damaged = list(talk.pieces)
    index = next(i for i, piece in enumerate(damaged) if not piece.by_client)
    data = damaged[index].data
    damaged[index] = damaged[index]._replace(data=(len(data) - 5).to_bytes(4, "big") + data[4:-1])
    assert complaints(dissected(tmp_path, damaged))
