"""
The web service with a real Kafka server, which the fixture `kafka` of kgateway starts.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from kgateway.testing import Kafka

SERVICE = Path(__file__).with_name("web_service.py")
PATIENCE_S = 30


class Service:
    def __init__(self, port: str) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> str:
        with urlopen(self._url + path, timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def wait_for_visits(self, expected: dict[str, int]) -> None:
        """
        The view follows the topic a moment later.
        """
        deadline = time.monotonic() + PATIENCE_S
        while (seen := json.loads(self.get("/visits"))) != expected:
            assert time.monotonic() < deadline, seen
            time.sleep(0.05)


@contextmanager
def starting(bootstrap: str) -> Iterator[tuple[Service, IO[str]]]:
    """
    A service, and what it prints after its first line.
    """
    command = [sys.executable, str(SERVICE), "--bootstrap", bootstrap, "--listen", "tcp:0:interface=127.0.0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            port, _, rest = process.stdout.readline().removeprefix("listening on ").partition(", ")
            assert rest == f"connecting to {bootstrap}\n"
            yield Service(port), process.stdout
        finally:
            process.terminate()
    assert process.returncode == 0


@contextmanager
def running(kafka: Kafka) -> Iterator[Service]:
    with starting(kafka.bootstrap) as (service, output):
        assert output.readline() == "ready: the topic has been read\n"
        yield service


def test_visits_are_counted(kafka: Kafka) -> None:
    with running(kafka) as service:
        assert service.get("/visits") == "{}\n"
        for product in ("apple", "pear", "apple"):
            assert service.get(f"/products/{product}") == f"All about {product}.\n"
        service.wait_for_visits({"apple": 2, "pear": 1})


def test_instances_share_the_topic(kafka: Kafka) -> None:
    """
    A view has the visits of all processes, and of those that have ended.
    """
    with running(kafka) as first, running(kafka) as second:
        first.get("/products/apple")
        second.get("/products/apple")
        for service in (first, second):
            service.wait_for_visits({"apple": 2})
    with running(kafka) as service:
        service.wait_for_visits({"apple": 2})


def test_a_start_before_the_server(kafka: Kafka) -> None:
    """
    Until the service has read the topic its answer is an error.
    """
    with running(kafka) as service:
        service.get("/products/apple")
    bootstrap, listener = kafka.bootstrap, f"tcp:{kafka.port}:interface=127.0.0.1"
    kafka.stop()
    with starting(bootstrap) as (service, output):
        for path in ("/products/apple", "/visits"):
            with pytest.raises(HTTPError) as refused:
                service.get(path)
            with refused.value as answer:
                assert answer.code == 503
                assert b"The topic has not been read yet." in answer.read()
        with Kafka("--listen", listener, folder=kafka.folder):
            assert output.readline() == "ready: the topic has been read\n"
            assert service.get("/visits") == '{"apple": 1}\n'


def test_a_visit_that_is_not_acknowledged(kafka: Kafka) -> None:
    """
    Without a Kafka server the answer is an error, and the visit is not in the topic later.
    """
    with running(kafka) as service:
        kafka.kill()
        with pytest.raises(HTTPError) as refused:
            service.get("/products/apple")
        with refused.value as answer:
            assert answer.code == 503
            assert answer.read().startswith(b"Your visit cannot be recorded: ")
        assert service.get("/visits") == "{}\n"
