"""
Messages are ordinary files: they are copied while everything is down, and read again on a new cluster.
"""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

import grpc
import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import weed_program
from kgateway.broker.seaweed.protos.filer_pb2 import CreateEntryRequest, CreateEntryResponse, Entry, FuseAttributes
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_paths import is_log_file, topic_folder
from kgateway.records.record import Header, Record
from kgateway.testing.kafka import Kafka
from tests.broker.seaweedmq.weed_files import files
from tests.clients.client import Sending
from tests.clients.confluent_client import Confluent

_SECONDS = 30
_PARTITIONS = 2
_BYTES = {"Content-Type": "application/octet-stream"}
_IDEMPOTENT = Sending(idempotent=True)
_HEADERS = (Header("h", b"1"), Header("none", None))


def rows(form: str, first: int, count: int) -> list[Record]:
    """
    Records at these offsets, with everything that the form has a place for.
    """
    if form == "plain":
        return [Record(number, -1, b"k%d" % number, b"v%d" % number) for number in range(first, first + count)]
    return [
        Record(number, 1_700_000_000_000 + number, b"k%d" % number, b"v%d" % number if number % 3 else None, _HEADERS)
        for number in range(first, first + count)
    ]


def fill(client: Confluent, form: str) -> None:
    """
    Create a topic of the form, let it grow, and write its records in several batches.
    """
    client.create_topic(form, 1, {"seaweedmq.format": form})
    client.send(form, rows(form, 0, 30), 0, _IDEMPOTENT)
    client.add_partitions(form, _PARTITIONS)
    client.send(form, rows(form, 30, 30), 0, _IDEMPOTENT)
    client.send(form, rows(form, 0, 10), 1, _IDEMPOTENT)


def found(client: Confluent, form: str, partition: int, count: int) -> list[Record]:
    """
    This many records of a partition from the first on, without their times if those are not the producer's.
    """
    with client.reader(form) as reader:
        reader.assign({partition: 0})
        records = [record for _, record in reader.take(count)]
    return [record._replace(timestamp=-1) for record in records] if form == "plain" else records


def copy(cluster: DevCluster, folder: str, to: Path) -> None:
    """
    Copy all files below a folder of the filer, names and bytes, into a folder of this machine.
    """
    for path in files(cluster, folder):
        copied = to / path.removeprefix("/")
        copied.parent.mkdir(parents=True, exist_ok=True)
        with urlopen(f"http://{cluster.filer}{path}", timeout=_SECONDS) as answer:
            copied.write_bytes(answer.read())


def put(cluster: DevCluster, folder: Path) -> None:
    """
    Restore all files of a folder of this machine by HTTP. The filer puts their bytes into volumes.
    """
    for path in folder.rglob("*"):
        if path.is_file():
            place = f"http://{cluster.filer}/{path.relative_to(folder)}"
            with urlopen(Request(place, path.read_bytes(), _BYTES, method="PUT"), timeout=_SECONDS) as answer:
                answer.read()


def copy_back(cluster: DevCluster, folder: Path) -> None:
    """
    Restore the files with SeaweedFS's own tool.
    """
    home = {"HOME": str(cluster.folder)}
    command = [weed_program(), "filer.copy", str(folder / "topics"), f"http://{cluster.filer}/"]
    subprocess.run(command, check=True, timeout=_SECONDS, cwd=cluster.folder, env=home, capture_output=True)


def create(cluster: DevCluster, folder: Path) -> None:
    """
    Restore the files over gRPC, with the bytes of small files in their entries, as SeaweedMQ writes them.
    """
    host, port = cluster.filer.split(":")
    put(cluster, folder)
    with grpc.insecure_channel(f"{host}:{int(port) + 10_000}") as channel:
        call = channel.unary_unary(
            "/filer_pb.SeaweedFiler/CreateEntry",
            request_serializer=CreateEntryRequest.SerializeToString,
            response_deserializer=CreateEntryResponse.FromString,
        )
        for path in folder.rglob("*"):
            if path.is_file() and not is_log_file(path.name):
                data = path.read_bytes()
                attributes = FuseAttributes(file_size=len(data), file_mode=0o644)
                entry = Entry(name=path.name, content=data, attributes=attributes)
                directory = f"/{path.relative_to(folder).parent}"
                assert not call(CreateEntryRequest(directory=directory, entry=entry), timeout=_SECONDS).error


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """
    Topics of each form, copied from a cluster that is stopped.
    """
    folder = tmp_path_factory.mktemp("backup")
    with ExitStack() as running:
        first = DevCluster(tmp_path_factory.mktemp("first"))
        running.callback(first.kill)
        first.start()
        with Kafka("--broker", f"seaweedmq:{','.join(first.masters)}") as kafka:
            for form in FORMATS:
                fill(Confluent(kafka.bootstrap), form)
        first.broker.kill()
        for form in FORMATS:
            copy(first, topic_folder(form), folder)
    return folder


@pytest.fixture(scope="module", params=[put, copy_back, create])
def kafka(backup: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """
    A gateway in front of a cluster with these topics, restored in one way.
    """
    with ExitStack() as running:
        second = DevCluster(tmp_path_factory.mktemp("second"))
        running.callback(second.kill)
        second.start()
        request.param(second, backup)
        with Kafka("--broker", f"seaweedmq:{','.join(second.masters)}") as kafka:
            yield kafka
            assert "Traceback" not in kafka.log, kafka.log


@pytest.mark.parametrize("form", FORMATS)
def test_a_topic_is_restored(kafka: Kafka, form: str) -> None:
    """
    Every record is complete at its offset, and new ones follow the last.
    """
    client = Confluent(kafka.bootstrap)
    assert client.topics()[form] == _PARTITIONS
    assert client.config(form)["seaweedmq.format"] == form
    assert found(client, form, 0, 60) == rows(form, 0, 60)
    assert found(client, form, 1, 10) == rows(form, 0, 10)
    assert client.send(form, rows(form, 60, 5), 0, _IDEMPOTENT) == [60, 61, 62, 63, 64]
    assert found(client, form, 0, 65) == rows(form, 0, 65)
