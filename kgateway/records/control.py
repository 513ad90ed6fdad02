"""
Control batches: batches that a broker writes into a log, and whose records no consumer gets.

A marker is the control batch with which a coordinator says in the log of each partition how a transaction ended. It is
one record. Its key has a version and a type, its value a version and the epoch of the coordinator, by which a partition
recognizes one that has been replaced.
"""

from enum import IntEnum
from typing import NamedTuple

from kgateway.messages.control_records import ControlRecordTypeSchema, EndTxnMarker, LeaderChangeMessage
from kgateway.records.batch import Batch
from kgateway.records.builder import BatchBuilder
from kgateway.records.record import malformed, records
from kgateway.wire.codec import decoder, encode

_VERSION = 0
_PREFIX = _VERSION.to_bytes(2, "big")


class ControlKind(IntEnum):
    """
    The type of a control record. KRaft has more types, for its own log.
    """

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2


class Marker(NamedTuple):
    """
    How a transaction ended, and the epoch of the coordinator that ended it.
    """

    commits: bool
    coordinator_epoch: int


def marker_batch(producer_id: int, producer_epoch: int, marker: Marker, timestamp_ms: int) -> Batch:
    kind = ControlKind.COMMIT if marker.commits else ControlKind.ABORT
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
    )
    builder.append(
        _PREFIX + encode(ControlRecordTypeSchema(type=kind), _VERSION),
        _PREFIX + encode(EndTxnMarker(coordinator_epoch=marker.coordinator_epoch), _VERSION),
        timestamp=timestamp_ms,
    )
    return builder.batch()


def leader_change_batch(leader_id: int, timestamp_ms: int) -> Batch:
    builder = BatchBuilder(is_control=True)
    change = LeaderChangeMessage(version=_VERSION, leader_id=leader_id, voters=[], granting_voters=[])
    builder.append(
        _PREFIX + encode(ControlRecordTypeSchema(type=ControlKind.LEADER_CHANGE), _VERSION),
        encode(change, _VERSION),
        timestamp=timestamp_ms,
    )
    return builder.batch()


def read_marker(batch: Batch) -> Marker | None:
    """
    The marker in a control batch, or `None` if it has none, as compaction leaves it, or is of another type. Malformed
    if it cannot be read. Later versions begin as this one does.
    """
    for record in records(batch):
        key, value = record.key or b"", record.value or b""
        kind = int.from_bytes(key[2:4], "big") if len(key) >= len(_PREFIX) + 2 else None
        if kind not in (ControlKind.ABORT, ControlKind.COMMIT):
            return None
        if len(value) < len(_PREFIX) + 4:
            raise malformed("records", 0, f"the value of a marker has {len(value)} bytes")
        marker, _ = decoder(EndTxnMarker, _VERSION)(value, len(_PREFIX))
        return Marker(kind == ControlKind.COMMIT, marker.coordinator_epoch)
    return None
