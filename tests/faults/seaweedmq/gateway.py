"""
A gateway in front of a cluster, as a process that is killed, paused and started again, and keeps its port.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode
from tests.faults.client import Client
from tests.faults.victim import free_port

_CREATE_VERSION = 7
_LINES_SHOWN = 30
_PATIENCE_S = 60
_PAUSE_S = 0.2


class Gateway:
    """
    What `kgateway serve --broker seaweedmq:MASTER:PORT` runs.
    """

    def __init__(
        self,
        cluster: DevCluster,
        folder: Path,
        name: str = "gateway",
        node_id: int = 1,
        interface: str = "127.0.0.1",
        advertised: str = "",
        options: Sequence[str] = (),
        watchdog_ms: int = 0,
    ) -> None:
        self.name = name
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.is_running = False
        home = self._home = folder / name
        home.mkdir()
        broker, listen = f"seaweedmq:{cluster.masters[0]}", f"tcp:{self.port}:interface={interface}"
        all_options = ["--listen", listen, "--broker", broker, "--node-id", str(node_id), *options]
        all_options += ["--seaweedmq-watchdog-ms", str(watchdog_ms)]
        if advertised:
            all_options += ["--advertise", advertised]
        self._kafka = Kafka(*all_options, folder=home, patience_s=_PATIENCE_S)

    @property
    def log(self) -> str:
        """
        The content of its log, before and after each start.
        """
        return self._kafka.log

    def tracebacks(self) -> list[str]:
        """
        The tracebacks in its log, each with the lines around it.
        """
        lines = self.log.splitlines()
        places = [number for number, line in enumerate(lines) if "Traceback" in line]
        return ["\n".join(lines[max(number - 2, 0) : number + _LINES_SHOWN]) for number in places]

    @property
    def pid(self) -> int:
        return self._kafka.pid

    def start(self) -> float:
        """
        Start, and wait until clients can connect. Returns the seconds that took.
        """
        began = monotonic()
        self._kafka.start()
        self.is_running = True
        return monotonic() - began

    def stop(self) -> None:
        self._kafka.stop()
        self.is_running = False

    def kill(self) -> None:
        if self.is_running:
            self.is_running = False
            self._kafka.kill()

    def pause(self) -> None:
        """
        Stop the process with a signal: it keeps its connections, and answers nothing.
        """
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """
        Resume the process after a pause.
        """
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """
        Stop the process in order, whatever it is doing, so that the next one need not wait.
        """
        if self.is_running:
            (self._home / "gateway.log").write_text(self.log)
            self.resume()
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()

    def create(self, name: str, partitions: int, acks: str, form: str) -> None:
        configs = {"seaweedmq.acks": acks, "seaweedmq.format": form}
        if form == "plain":
            configs["message.timestamp.type"] = "LogAppendTime"  # no other times have a place there
        asked = CreateTopicsRequest.Topic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[CreateTopicsRequest.Topic.Config(name=key, value=value) for key, value in configs.items()],
        )
        with Client(self.port, patience_s=_PATIENCE_S) as client:
            code = _created(client, asked)
            deadline = monotonic() + _PATIENCE_S
            while code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER) and monotonic() < deadline:
                sleep(_PAUSE_S)  # a broker that was started just now makes no topics yet, or it has and did not say so
                code = _created(client, asked)
                code = ErrorCode.NONE if code == ErrorCode.TOPIC_ALREADY_EXISTS else code
        assert code == ErrorCode.NONE, f"topic {name}: {code.name}"


def _created(client: Client, asked: CreateTopicsRequest.Topic) -> ErrorCode:
    [told] = client.ask(CreateTopicsRequest(topics=[asked]), _CREATE_VERSION).topics
    return ErrorCode(told.error_code)
