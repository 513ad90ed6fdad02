"""
Data folders in all conditions: what a gateway says about one, and what its clients get.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from kgateway.cli.main import main
from kgateway.control.client import ask
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.init_producer_id import InitProducerIdRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.records.batch import batches
from kgateway.records.builder import BatchBuilder
from kgateway.records.record import records
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.faults.client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    Client,
    fetch_request,
    produce_request,
    produced,
)

DATA = "kgateway-data"
TOPIC = "orders"
PATIENCE_S = 30
KEPT_MS = str((1 << 63) - 1)  # the records of the tests are old
_CREATE_VERSION, _INIT_VERSION, _METADATA_VERSION = 7, 4, 9
_PAUSE_S = 0.05
_TIME_MS = 1_700_000_000_000
_LOOPBACK = ["--listen", "tcp:0:interface=127.0.0.1"]


class Got(NamedTuple):
    """
    The response to a fetch.
    """

    error: ErrorCode
    values: dict[int, bytes]  # by offset


class World(Kafka):
    """
    A gateway with its data in DATA, topics of one partition, and the smallest segments, which do not expire. A prefix
    stands in front of its command.
    """

    def __init__(self, folder: Path, *options: str, prefix: Sequence[str] = ()) -> None:
        super().__init__("--segment-bytes", "1MiB", "--retention-ms", KEPT_MS, *options, folder=folder)
        self.data = folder / DATA
        self._prefix = prefix

    def _command(self) -> Sequence[str]:
        return [*self._prefix, *super()._command()]

    def create(self, topic: str = TOPIC, **configs: str) -> ErrorCode:
        """
        Create the topic, with configs whose names have `_` for `.` here.
        """
        config = CreateTopicsRequest.Topic.Config
        rows = [config(name=name.replace("_", "."), value=value) for name, value in configs.items()]
        new = CreateTopicsRequest.Topic(
            name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=rows
        )
        with Client(self.port) as client:
            [told] = client.ask(CreateTopicsRequest(topics=[new]), _CREATE_VERSION).topics
            return ErrorCode(told.error_code)

    def produce(
        self, value: bytes, *, topic: str = TOPIC, producer: tuple[int, int, int] | None = None
    ) -> tuple[ErrorCode, int]:
        """
        Produce a record, perhaps with producer id, epoch and sequence; return the error and the offset.
        """
        producer_id, epoch, sequence = producer or (-1, -1, -1)
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        builder.append(None, value, timestamp=_TIME_MS)
        with Client(self.port) as client:
            request = produce_request(topic, builder.build())
            told = _when_ready(lambda: produced(client.ask(request, PRODUCE_VERSION)))
            return ErrorCode(told.error_code), told.base_offset

    def producer_id(self) -> int:
        with Client(self.port) as client:
            asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
            return int(client.ask(asked, _INIT_VERSION).producer_id)

    def fetch(self, offset: int = 0, topic: str = TOPIC) -> Got:
        """
        Fetch once from the offset on.
        """
        with Client(self.port) as client:
            request = fetch_request(topic, offset=offset)
            told = _when_ready(lambda: client.ask(request, FETCH_VERSION).responses[0].partitions[0])
            found = [record for batch in batches(told.records or b"") for record in records(batch)]
            values = {record.offset: record.value or b"" for record in found if record.offset >= offset}
            return Got(ErrorCode(told.error_code), values)

    def read(self, offset: int = 0, topic: str = TOPIC) -> Got:
        """
        Read all records from the offset up to the end or an error.
        """
        values: dict[int, bytes] = {}
        while True:
            got = self.fetch(offset, topic)
            if got.error or not got.values:
                return Got(got.error, values)
            values |= got.values
            offset = max(values) + 1

    def topics(self) -> set[str]:
        """
        The names of the topics that clients see.
        """
        with Client(self.port) as client:
            return {topic.name for topic in client.ask(MetadataRequest(topics=None), _METADATA_VERSION).topics}

    def ask(self, command: str) -> Any:
        """
        The log that the operator sees.
        """
        return ask(self.control_socket, command, {})

    def wait_for(self, text: str) -> None:
        """
        Wait until the log contains the text.
        """
        wait_for(lambda: text in self.log)


def _when_ready(ask_again: Callable[[], Any]) -> Any:
    """
    The response once the partition is recovered.
    """
    ends = monotonic() + PATIENCE_S
    while True:
        told = ask_again()
        if told.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER or monotonic() > ends:
            return told
        sleep(_PAUSE_S)


def refused(folder: Path, broker: str, *options: str, prefix: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
    """
    The output of a start that is to fail.
    """
    files = ["--control-socket", str(folder / "refused.sock")]
    listen = () if "--listen" in options else _LOOPBACK
    command = [*prefix, sys.executable, "-m", "kgateway", "serve", "--broker", broker, *listen, *files, *options]
    return ran(command, folder)


def ran(command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """
    Run a command to its end.
    """
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def wait_for(happened: Callable[[], bool]) -> None:
    """
    Wait until something has happened.
    """
    ends = monotonic() + PATIENCE_S
    while not happened():
        assert monotonic() < ends, "it did not come about"
        sleep(_PAUSE_S)


def only(text: str) -> str:
    """
    The one line that says why nothing starts.
    """
    [line] = [line for line in text.splitlines() if "cannot start" in line]
    assert "Traceback" not in text
    return line


def contents(folder: Path) -> dict[str, bytes | None]:
    """
    All files with their content, and all folders.
    """
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def checked(folder: Path) -> tuple[int, list[str]]:
    """
    Exit code and lines of `kgateway log check`.
    """
    code, told = 0, StringIO()
    with redirect_stdout(told):
        try:
            main(["log", "check", str(folder)])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, told.getvalue().splitlines()


def flip(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        [byte] = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 0xFF]))


def filled(folder: Path, *options: str, count: int = 13, size: int = 200_000) -> list[bytes]:
    """
    Have a gateway write `count` records, one in a batch and five in a segment, and stop; return their values.
    """
    values = [b"%06d" % number + bytes(size) for number in range(count)]
    with World(folder, *options) as world:
        world.create()
        for offset, value in enumerate(values):
            assert world.produce(value) == (ErrorCode.NONE, offset)
    return values
