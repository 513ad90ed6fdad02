"""
A client in another language: a program that carries out a task for each line of JSON, and answers with a line.

    {"do": "send", "bootstrap": "127.0.0.1:9092", "topic": "t", "rows": [...], "partition": 0, "codec": "lz4", ...}
    {"done": [0, 1, 2]}

A task that fails is answered with `{"refused": 3, "why": "..."}`, where the code is Kafka's, or with `{"failed":
"..."}`. Bytes are in base64. Tasks open, use and close a reader; only one is open at a time.
"""

import json
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType
from typing import Any, Self

from kgateway.records.record import Header, Record
from tests.clients.client import PATIENCE_S, PLAIN, REQUEST_BYTES_MAX, Connect, Refused, Sending, Topics


class Program:
    """
    The process of the program, for a `with` block.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def connect(self) -> Connect:
        return partial(ProgramClient, self)

    def ask(self, task: str, **needed: Any) -> Any:
        """
        The result of a task.
        """
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": task, **needed}, default=_text).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._line())
        if "refused" in answer:
            raise Refused(answer["refused"], answer["why"])
        assert "failed" not in answer, answer["failed"]
        return answer["done"]

    def _line(self) -> bytes:
        assert self._process.stdout
        with DefaultSelector() as selector:
            selector.register(self._process.stdout, EVENT_READ)
            assert selector.select(2 * PATIENCE_S), "the program does not answer"
        line = self._process.stdout.readline()
        assert line, "the program has ended"
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _row(record: Record) -> dict[str, Any]:
    headers = [{"key": header.key, "value": header.value} for header in record.headers]
    return {"timestamp": record.timestamp, "key": record.key, "value": record.value, "headers": headers}


def _placed(row: Mapping[str, Any]) -> tuple[int, Record]:
    headers = tuple(Header(header["key"], _bytes(header["value"])) for header in row["headers"])
    record = Record(row["offset"], row["timestamp"], _bytes(row["key"]), _bytes(row["value"]), headers)
    return row["partition"], record


class ProgramReader:
    def __init__(self, program: Program) -> None:
        self._ask = program.ask

    def assign(self, starts: Mapping[int, int]) -> None:
        self._ask("assign", starts=starts)

    def seek(self, partition: int, offset: int) -> None:
        self._ask("seek", partition=partition, offset=offset)

    def take(self, count: int) -> list[tuple[int, Record]]:
        return [_placed(row) for row in self._ask("take", count=count, patience=PATIENCE_S)]

    def offset_at(self, partition: int, timestamp: int) -> int | None:
        offset: int | None = self._ask("offset_at", partition=partition, timestamp=timestamp)
        return offset

    def watermarks(self, partition: int) -> tuple[int, int]:
        low, high = self._ask("watermarks", partition=partition)
        return low, high


class ProgramClient:
    def __init__(self, program: Program, bootstrap: str) -> None:
        self._program = program
        self._ask = partial(program.ask, bootstrap=bootstrap)

    def send(self, topic: str, rows: Sequence[Record], partition: int | None = 0, how: Sending = PLAIN) -> list[int]:
        offsets: list[int] = self._ask(
            "send",
            topic=topic,
            rows=[_row(row) for row in rows],
            partition=partition,
            codec=how.codec.name.lower(),
            acks=how.acks,
            idempotent=how.idempotent,
            batch_bytes=how.batch_bytes,
            request_bytes=REQUEST_BYTES_MAX,
        )
        return offsets

    @contextmanager
    def reader(self, topic: str) -> Iterator[ProgramReader]:
        self._ask("open", topic=topic)
        try:
            yield ProgramReader(self._program)
        finally:
            self._program.ask("close")

    def topics(self) -> Topics:
        topics: Topics = self._ask("topics")
        return topics

    def create_topic(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        self._ask("create_topic", topic=topic, partitions=partitions, config=config)

    def delete_topic(self, topic: str) -> None:
        self._ask("delete_topic", topic=topic)

    def add_partitions(self, topic: str, total: int) -> None:
        self._ask("add_partitions", topic=topic, total=total)

    def config(self, topic: str) -> dict[str, str | None]:
        config: dict[str, str | None] = self._ask("config", topic=topic)
        return config
