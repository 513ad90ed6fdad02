"""
A distributed Kafka Connect worker whose sources are exactly once, and its REST interface.
"""

import json
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from bench.kafka.servers import free_port
from tests.clients.application import Application

PATIENCE_S = 120
_ANSWER_S = 10
_TOO_EARLY = "org.apache.kafka.common.errors.InvalidTxnStateException"
_RESTARTS = 3
_NOT_YET = {404, 409, 500, 503}  # while it starts, or its group rebalances
_SETTINGS = """\
bootstrap.servers={bootstrap}
listeners=http://127.0.0.1:{port}
group.id=workers
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
exactly.once.source.support=enabled
plugin.discovery=service_load
session.timeout.ms=6000
heartbeat.interval.ms=500
scheduled.rebalance.max.delay.ms=0
"""


class Worker(Application):
    """
    A sequence of workers at the same address.
    """

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.restarts = 0  # of tasks that failed
        self._port = free_port()
        settings = folder / "worker.properties"
        settings.write_text(_SETTINGS.format(bootstrap=bootstrap, port=self._port))
        super().__init__("CONNECT_JARS", folder, "org.apache.kafka.connect.cli.ConnectDistributed", str(settings))

    def configure(self, connector: str, config: Mapping[str, str]) -> None:
        """
        Make the worker run a connector with a task.
        """
        deadline, made = monotonic() + PATIENCE_S, None
        while self.states(connector) != ["RUNNING", "RUNNING"]:
            made = made or self._ask("PUT", f"/connectors/{connector}/config", config)
            assert monotonic() < deadline, self.output()
            sleep(0.2)

    def states(self, connector: str) -> list[str]:
        """
        The states of the connector and of its tasks, none of which may have failed; empty while the worker does not
        know.

        Java's producer of 4.3.1 may send EndTxn before the records of the transaction: its sender looks whether there
        are any, and then waits for the lock under which they are added and the end is requested. Every server refuses
        that, and the task fails; it is then restarted, which is all that its users can do.
        """
        status = self._ask("GET", f"/connectors/{connector}/status")
        if status is None:
            return []
        states = [status["connector"], *status["tasks"]]
        failed = [one for one in states if one["state"] == "FAILED"]
        assert all(_TOO_EARLY in one["trace"] for one in failed), f"{status}\n{self.output()}"
        if failed:
            self.restarts += 1
            assert self.restarts < _RESTARTS, f"{status}\n{self.output()}"
            self._ask("POST", f"/connectors/{connector}/restart?includeTasks=true&onlyFailed=true", {})
        return [one["state"] for one in states]

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """
        The response, or None if there is none yet.
        """
        url, data = f"http://127.0.0.1:{self._port}{path}", None if body is None else json.dumps(body).encode()
        request = Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=_ANSWER_S) as answer:
                return json.load(answer)
        except HTTPError as error:
            with error:
                if error.code not in _NOT_YET:
                    raise AssertionError(error.read().decode()) from error
        except (OSError, HTTPException):  # the worker starts, or was killed
            pass
        return None
