"""
`kgateway` as a process, and other clients that check its work.
"""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60
NO_RETENTION = ("--retention-ms", "36500d")  # some records of these tests are of 1970
_numbers = count()


class Ended(NamedTuple):
    """
    The exit code and output of a command.
    """

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Tool:
    """
    Runs `kgateway` with the address of a server.
    """

    def __init__(self, bootstrap: str, control_socket: str = "") -> None:
        self.bootstrap = bootstrap
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "KGATEWAY_BOOTSTRAP": bootstrap,
            "KGATEWAY_CONTROL_SOCKET": control_socket,
            "COLUMNS": "200",
        }

    def __call__(self, *arguments: object, text: bytes | str = b"", cwd: Path | None = None) -> Ended:
        given = text.encode() if isinstance(text, str) else text
        command = self.command(*arguments)
        done = subprocess.run(
            command, input=given, capture_output=True, env=self.environment, timeout=PATIENCE_S, check=False, cwd=cwd
        )
        return Ended(done.returncode, done.stdout, done.stderr.decode())

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "kgateway", *map(str, arguments)]

    def start(self, *arguments: object, **files: Any) -> "subprocess.Popen[bytes]":
        """
        Start a command that runs until it is ended.
        """
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **files}
        return subprocess.Popen(self.command(*arguments), env=self.environment, **pipes)


def new_topic(tool: Tool, partitions: int = 1, **config: str) -> str:
    name = f"topic-{next(_numbers)}"
    given = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": tool.bootstrap})
    admin.create_topics([NewTopic(name, partitions, config=given)])[name].result(PATIENCE_S)
    return name


def stored(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[Message]:
    """
    The first records of a topic by partition and offset, as librdkafka reads them; there must be no more.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": False})
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        found: list[Message] = []
        while len(found) < count:
            told = consumer.consume(count - len(found), timeout=PATIENCE_S)
            assert told, f"{len(found)} of {count} records are there"
            found += told
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, index))[1] for index in range(partitions)]
        assert sum(ends) == count
    finally:
        consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))
