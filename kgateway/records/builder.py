"""
Builds record batches.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from kgateway.records.batch import (
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Batch,
    BatchHeader,
    written,
)
from kgateway.records.compression import Codec, check_level, compress
from kgateway.records.record import RecordBody
from kgateway.wire.codec import encoder
from kgateway.wire.varints import write_varint, write_varlong

_encode_body = encoder(RecordBody, MAGIC)

Headers = Iterable[tuple[str, bytes | None]]


def size_bound(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """
    The most bytes that a record can add to a batch, before compression.
    """
    # Attributes; the timestamp; the offset and the lengths of record, key, value and headers.
    bound = 1 + 10 + 5 * 5 + len(key or b"") + len(value or b"")
    return bound + sum(2 * 5 + len(_key_bytes(name)) + len(note or b"") for name, note in headers)


def _key_bytes(key: str) -> bytes:
    return key.encode(errors="surrogateescape")


def _body(timestamp_delta: int, offset_delta: int, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """
    The bytes of a record after its length. Most records have no headers, and building them here takes a third of the
    time of the codec.
    """
    if not headers:
        try:
            return _bare_body(timestamp_delta, offset_delta, key, value)
        except (TypeError, ValueError):
            pass  # the codec raises a better error
    body = RecordBody(
        timestamp_delta=timestamp_delta,
        offset_delta=offset_delta,
        key=key,
        value=value,
        headers=[RecordBody.Header(key=_key_bytes(name), value=note) for name, note in headers],
    )
    return b"".join(_encode_body(body))


def _bare_body(timestamp_delta: int, offset_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    sized_key = (_NULL,) if key is None else (_varint(len(key)), key)
    sized_value = (_NULL,) if value is None else (_varint(len(value)), value)
    numbers = _varlong(timestamp_delta), _varint(offset_delta)
    return b"".join((_NO_ATTRIBUTES, *numbers, *sized_key, *sized_value, _NO_HEADERS))


def _cached_encoder(write: Callable[[bytearray, int], None]) -> Callable[[int], bytes]:
    """
    The function that encodes a number, with a cache: the same numbers come again and again.
    """

    @lru_cache(maxsize=1 << 12)
    def written(number: int) -> bytes:
        out = bytearray()
        write(out, number)
        return bytes(out)

    return written


_varint, _varlong = _cached_encoder(write_varint), _cached_encoder(write_varlong)
_NO_ATTRIBUTES, _NO_HEADERS = bytes(1), _varint(0)
_NULL = _varint(-1)


@dataclass(slots=True, kw_only=True)
class BatchBuilder:
    """
    Takes records one by one, at consecutive offsets, and builds their batch.

    With `log_append_time_ms` every record has that timestamp. Their own timestamps are still written, and not seen.
    """

    codec: Codec = Codec.NONE
    level: int | None = None
    base_offset: int = 0
    leader_epoch: int = -1
    log_append_time_ms: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False
    count: int = field(default=0, init=False)
    _base_timestamp: int = field(default=NO_TIMESTAMP, init=False)
    _max_timestamp: int = field(default=NO_TIMESTAMP, init=False)
    _bodies: bytearray = field(default_factory=bytearray, init=False)

    def __post_init__(self) -> None:
        if type(self.codec) is not Codec:
            self.codec = Codec(self.codec)
        if self.level is not None:
            check_level(self.codec, self.level)

    @property
    def size(self) -> int:
        return HEADER_SIZE + len(self._bodies)

    def append(self, key: bytes | None, value: bytes | None, *, timestamp: int, headers: Headers = ()) -> None:
        count = self.count
        base_timestamp = self._base_timestamp if count else timestamp
        encoded = _body(timestamp - base_timestamp, count, key, value, headers)
        bodies = self._bodies
        bodies += _varint(len(encoded))
        bodies += encoded
        if not count:
            self._base_timestamp = self._max_timestamp = timestamp
        elif timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        self.count = count + 1

    def build(self) -> bytes:
        return self.batch().data.tobytes()

    def batch(self) -> Batch:
        """
        The batch. Without records it is what compaction leaves: a header at its offset.
        """
        payload = compress(self.codec, self._bodies, self.level) if self.count else b""
        header = BatchHeader(
            base_offset=self.base_offset,
            batch_length=0,
            partition_leader_epoch=self.leader_epoch,
            crc=0,
            attributes=self._attributes(),
            last_offset_delta=max(self.count - 1, 0),
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp if self.log_append_time_ms is None else self.log_append_time_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            records_count=self.count,
        )
        return written(header, payload)

    def _attributes(self) -> int:
        attributes = int(self.codec) if self.count else 0
        if self.log_append_time_ms is not None:
            attributes |= LOG_APPEND_TIME_BIT
        if self.is_transactional:
            attributes |= TRANSACTIONAL_BIT
        if self.is_control:
            attributes |= CONTROL_BIT
        return attributes
