"""
SeaweedFS's own Kafka gateway, written in Go, in front of a cluster: one side of the tests of how both gateways share
topics. It always tells its clients that it listens on port 9093, so each process has an address of its own on the
loopback interface. It does not start without a schema registry, so it gets one that knows no schemas.
"""

import socket
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import SystemRandom
from threading import Thread
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweed.dev.weed_process import NotStarted, WeedProcess

PORT = 9093
_PATIENCE_S = 30
_PAUSE_S = 0.05
_STOP_S = 5


class GoGateway:
    """
    A process that runs while this context is entered.
    """

    def __init__(self, cluster: DevCluster, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._host = _free_host()
        self._registry = NoSchemas()
        options = {
            "ip": self._host,
            "port": PORT,
            "master": ",".join(cluster.masters),
            "schema-registry-url": self._registry.url,
        }
        command = ["mq.kafka.gateway", *(f"-{name}={value}" for name, value in options.items())]
        self._process = WeedProcess("go-gateway", command, folder)

    @property
    def bootstrap(self) -> str:
        return f"{self._host}:{PORT}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> Self:
        """
        Start, and wait until the gateway accepts connections: it has found the brokers then.
        """
        self._registry.start()
        self._process.start()
        deadline = monotonic() + _PATIENCE_S
        while not self._answers():
            if not self._process.is_running or monotonic() > deadline:
                raise NotStarted(f"the Go gateway did not start:\n{self._process.log_tail()}")
            sleep(_PAUSE_S)
        return self

    def stop(self) -> None:
        self._process.stop(_STOP_S)
        self._registry.stop()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _answers(self) -> bool:
        with suppress(OSError), closing(socket.create_connection((self._host, PORT), _PAUSE_S)):
            return True
        return False


class NoSchemas:
    """
    A schema registry without schemas.
    """

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Answers(BaseHTTPRequestHandler):
    """
    Answers that there are no subjects.
    """

    def do_GET(self) -> None:
        is_list = self.path == "/subjects"
        body = b"[]" if is_list else b'{"error_code": 40401, "message": "there are no schemas"}'
        self.send_response(200 if is_list else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """
        Requests are not logged.
        """


def _free_host() -> str:
    """
    An address of the loopback interface on whose port nobody listens.
    """
    random = SystemRandom()
    while True:
        host = f"127.{random.randrange(64, 128)}.{random.randrange(256)}.{random.randrange(1, 255)}"
        with closing(socket.socket()) as probe, suppress(OSError):
            probe.bind((host, PORT))
            return host
