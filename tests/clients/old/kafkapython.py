"""
Carries out the tasks of tests/clients/program.py with Debian's kafka-python, as a client of brokers of the given
version: a line of JSON in and one out. The system's Python runs it: `/usr/bin/python3 kafkapython.py 0.10.1`.
"""

import json
import os
import sys
from base64 import b64decode, b64encode
from time import monotonic
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.fetcher import RecordTooLargeError
from kafka.errors import BrokerResponseError

_BEGINNING, _END = -2, -1
_MESSAGE_TOO_LARGE = 10


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _row(found: Any) -> dict[str, Any]:
    return {
        "partition": found.partition,
        "offset": found.offset,
        "timestamp": -1 if found.timestamp is None else found.timestamp,
        "key": _text(found.key),
        "value": _text(found.value),
        "headers": [],
    }


class Client:
    """
    A producer and a consumer.
    """

    def __init__(self, version: tuple[int, ...]) -> None:
        self._version = version
        self._consumer: Any = None
        self._topic = ""

    def send(
        self,
        bootstrap: str,
        topic: str,
        rows: list[dict[str, Any]],
        partition: int | None,
        codec: str,
        acks: int,
        batch_bytes: int | None,
        **_: Any,
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            api_version=self._version,
            compression_type=None if codec == "none" else codec,
            acks=acks,
            batch_size=batch_bytes or 16_384,
            linger_ms=20,
            retries=0,
            max_request_size=10 << 20,
        )
        try:
            sent = [
                producer.send(
                    topic, _bytes(row["value"]), _bytes(row["key"]), None, partition, timestamp_ms=row["timestamp"]
                )
                for row in rows
            ]
            producer.flush()
            return [one.get(30).offset for one in sent]
        finally:
            producer.close()

    def open(self, bootstrap: str, topic: str, fetch_bytes: int = 1 << 20, **settings: Any) -> bool:
        self._topic = topic
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            api_version=self._version,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=fetch_bytes,
            **settings,
        )
        return True

    def assign(self, starts: dict[str, int]) -> bool:
        places = {TopicPartition(self._topic, int(index)): start for index, start in starts.items()}
        self._consumer.assign(list(places))
        for place, start in places.items():
            if start == _BEGINNING:
                self._consumer.seek_to_beginning(place)
            elif start == _END:
                self._consumer.seek_to_end(place)
                self._consumer.position(place)
            else:
                self._consumer.seek(place, start)
        return True

    def seek(self, partition: int, offset: int) -> bool:
        self._consumer.seek(TopicPartition(self._topic, partition), offset)
        return True

    def take(self, count: int, patience: float) -> list[dict[str, Any]]:
        found: list[Any] = []
        deadline = monotonic() + patience
        while len(found) < count and monotonic() < deadline:
            for messages in self._consumer.poll(200, max_records=count - len(found)).values():
                found += messages
        return [_row(one) for one in found]

    def watermarks(self, partition: int) -> list[int]:
        place = TopicPartition(self._topic, partition)
        return [self._consumer.beginning_offsets([place])[place], self._consumer.end_offsets([place])[place]]

    def close(self) -> bool:
        self._consumer.close()
        return True

    def resume(self, bootstrap: str, topic: str, group: str, count: int, patience: float) -> list[dict[str, Any]]:
        """
        Read this many records of a topic as a member of a group, from the group's position, and commit them.
        """
        self.open(bootstrap, topic, group_id=group, enable_auto_commit=False)
        try:
            self._consumer.subscribe([topic])
            rows = self.take(count, patience)
            self._consumer.commit()
            return rows
        finally:
            self.close()


def main(version: str) -> None:
    client = Client(tuple(map(int, version.split("."))))
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer = {"done": getattr(client, task.pop("do"))(**task)}
        except RecordTooLargeError as error:
            answer = {"refused": _MESSAGE_TOO_LARGE, "why": repr(error)}
        except BrokerResponseError as error:
            answer = {"refused": error.errno, "why": repr(error)}
        except Exception as error:
            answer = {"failed": repr(error)}
        print(json.dumps(answer), file=out)


main(sys.argv[1])
