"""
Kafka's record classes, options that both builders have, and records as each side returns them.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kgateway.records.batch import Batch
from kgateway.records.record import Header, Record, records
from kgateway.wire.errors import ErrorCode, Malformed
from tests.kafka.oracle import Java

MAX_I16, MAX_I32, MAX_I64 = (1 << 15) - 1, (1 << 31) - 1, (1 << 63) - 1

PRODUCERS = st.fixed_dictionaries(
    {
        "producer_id": st.integers(0, MAX_I64),
        "producer_epoch": st.integers(0, MAX_I16),
        "base_sequence": st.integers(0, MAX_I32),
        "is_transactional": st.booleans(),
    }
)
PLACES = st.fixed_dictionaries(
    {
        "base_offset": st.integers(0, MAX_I64 - 100),
        "leader_epoch": st.integers(-1, MAX_I32),
        "log_append_time_ms": st.none() | st.integers(0, MAX_I64),
    }
)
# Options of both builders: Kafka's takes all options of a producer or none.
OPTIONS = st.builds(dict.__or__, PLACES, st.just({}) | PRODUCERS)

SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


class Refusal(AssertionError):
    """
    Kafka's classes cannot do what they are asked.
    """


class Shown(NamedTuple):
    """
    A batch as Kafka reads it: the header under our names of fields, and the records.
    """

    header: dict[str, Any]
    records: list[Record]


class Kafka:
    """
    Kafka's record classes, which build batches with the options of our builder.
    """

    def __init__(self) -> None:
        self._java = Java("Batches.java", "new")

    def read(self, data: bytes) -> list[Shown]:
        return [Shown(header, [_record(*row) for row in rows]) for header, rows in self._ask("read", data=data)]

    def read_set(self, data: bytes) -> list[tuple[list[int], list[Record]]]:
        """
        The messages of a set: magic, codec, type of timestamps and offset of each, and its records.
        """
        return [(outside, [_record(*row) for row in rows]) for outside, rows in self._ask("read_set", data=data)]

    def opened(self, batch: Batch) -> list[Record]:
        """
        The records of a batch, or none if they do not match the header.
        """
        try:
            [shown] = self.read(bytes(batch.data))
        except Refusal:
            return []
        return shown.records

    def is_valid(self, data: bytes) -> bool | None:
        """
        Whether the first batch is valid, or `None` if it is cut off.
        """
        valid: bool | None = self._ask("is_valid", data=data)
        return valid

    def build(self, rows: Sequence[Record], **options: Any) -> bytes:
        return bytes.fromhex(self._ask("build", records=rows, **options))

    def build_empty(self, **options: Any) -> bytes:
        return bytes.fromhex(self._ask("build_empty", **options))

    def build_marker(self, **options: Any) -> bytes:
        """
        The marker of a transaction's end, with a `type`, `timestamp` and `coordinator_epoch`.
        """
        return bytes.fromhex(self._ask("build_marker", **options))

    def append(self, batch: Batch, **leader: Any) -> tuple[ErrorCode, bytes]:
        """
        The answer of a leader with an empty log to the producer of this batch, and the log afterwards, given a
        `leader_epoch`, `base_offset` and `timestamp_type`.
        """
        return self.append_bytes(bytes(batch.data), **leader)

    def append_bytes(self, data: bytes, **leader: Any) -> tuple[ErrorCode, bytes]:
        """
        The answer and the log for any bytes, which may be a message set.
        """
        code, stored = self._ask("append", data=data, **leader)
        return ErrorCode(code), bytes.fromhex(stored)

    def close(self) -> None:
        self._java.close()

    def _ask(self, task: str, **needed: Any) -> Any:
        answer = self._java.ask(json.dumps({"task": task, **needed}, default=bytes.hex))
        assert answer, "the Java process has ended"
        if answer.startswith("!"):
            raise Refusal(f"{task} {needed}: {answer}")
        return json.loads(answer)


def _record(offset: int, timestamp: int, key: str | None, value: str | None, headers: list[Any]) -> Record:
    notes = tuple(Header(name, _unhex(note)) for name, note in headers)
    return Record(offset, timestamp, _unhex(key), _unhex(value), notes)


def _unhex(shown: str | None) -> bytes | None:
    return None if shown is None else bytes.fromhex(shown)


def at(rows: Sequence[Record], base_offset: int, log_append_time_ms: int | None = None, **_: Any) -> list[Record]:
    """
    The records that a reader finds in a batch built with these options.
    """
    moved = [row._replace(offset=base_offset + row.offset) for row in rows]
    return moved if log_append_time_ms is None else [row._replace(timestamp=log_append_time_ms) for row in moved]


def heard(rows: Sequence[Record]) -> list[Record]:
    """
    The records as Kafka returns them, with a replacement character for broken UTF-8 in header keys.
    """
    return [row._replace(headers=tuple(Header(_mended(key), value) for key, value in row.headers)) for row in rows]


def _mended(key: str) -> str:
    # Java has one replacement character for an encoded surrogate, and Python one for each of its bytes.
    return SURROGATE.sub(b"\xff", key.encode(errors="surrogateescape")).decode(errors="replace")


def opened(batch: Batch) -> list[Record]:
    """
    The records, or none if they do not match the header.
    """
    try:
        return list(records(batch))
    except Malformed:
        return []
