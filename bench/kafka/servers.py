"""
The two servers, each as a process of its own with a folder of its own, on a port it keeps when it starts again.

Kafka has the settings it comes with, but for those without which a single node does not do: its addresses, one replica
of internal topics, four partitions as kgateway has. Java runs it as Kafka's own start script would. Neither server
writes more to its log than warnings, in neither does a new group wait for more members, and both look every second for
what they are to compact. Kafka removes the files of a deleted topic after a second, and kgateway at once.
"""

import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Protocol

from bench.kafka.java import java
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.testing.kafka import Kafka, NotStarted
from tests.faults.client import Client

_PATIENCE_S = 60
_BACKOFF_MS = 1_000
_HEAP = ("-server", "-Xms1g", "-Xmx1g")
_COLLECTOR = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms={backoff_ms}
log.segment.delete.delay.ms={backoff_ms}
num.partitions=4
"""


class Server(Protocol):
    """
    What a workload needs of either.
    """

    name: str
    data: Path  # where its topics are
    synced: Mapping[str, str]  # the topic config with which an ack means disk

    @property
    def bootstrap(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def pid(self) -> int: ...

    def start(self) -> object: ...

    def stop(self) -> object: ...


def free_port() -> int:
    """
    One that nobody listens on.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class Gateway(Kafka):
    """
    kgateway. `{data}` in its broker is its data folder.
    """

    name = "kgateway"
    synced: Mapping[str, str] = {"kgateway.acks.fsync": "true"}

    def __init__(self, folder: Path, broker: str) -> None:
        folder.mkdir(parents=True)
        self.data = folder / "data"
        self._port = free_port()
        listen = f"tcp:{self._port}:interface=127.0.0.1"
        broker = broker.format(data=self.data)
        waits = ("--group-initial-rebalance-delay-ms", "0", "--compaction-backoff-ms", str(_BACKOFF_MS))
        super().__init__("--listen", listen, "--log-level", "warn", "--broker", broker, *waits, folder=folder)

    @property
    def bootstrap(self) -> str:
        """
        Known before it has started.
        """
        return f"127.0.0.1:{self._port}"


class Apache:
    """
    Apache Kafka, one node that is broker and controller.
    """

    name = "Kafka"
    synced: Mapping[str, str] = {"flush.messages": "1"}

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.data = folder / "data"
        self.port = free_port()
        self._properties = folder / "server.properties"
        self._properties.write_text(
            _PROPERTIES.format(port=self.port, controller=free_port(), data=self.data, backoff_ms=_BACKOFF_MS)
        )
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        format_data = java("kafka.tools.StorageTool", "format", "--standalone", "-c", str(self._properties))
        subprocess.run([*format_data, "-t", "A" * 22], check=True, capture_output=True, timeout=_PATIENCE_S)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process, "it was not started"
        return self._process.pid

    def start(self) -> None:
        """
        Start, and wait until it answers.
        """
        command = java("kafka.Kafka", str(self._properties), options=(*_HEAP, *_COLLECTOR))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = monotonic() + _PATIENCE_S
        while not self._answers():
            if self._process.poll() is not None or monotonic() > deadline:
                raise NotStarted(f"Kafka did not become ready:\n{self._log.read_text()}")
            sleep(0.05)

    def stop(self) -> None:
        """
        End it in good order.
        """
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def _answers(self) -> bool:
        try:
            with Client(self.port) as client:
                client.ask(ApiVersionsRequest(), 0)
        except (OSError, AssertionError):  # nobody listens, or not for long
            return False
        return True
