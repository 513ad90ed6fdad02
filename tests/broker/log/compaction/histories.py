"""
Random logs to compact: everything that may be in them, and what should not.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kgateway.broker.log.compaction.compaction_round import CompactionJob, FullSegment
from kgateway.broker.log.compaction.record_filter import LastBatch
from kgateway.broker.log.segments.file_names import LOG, file_name
from kgateway.broker.partition.transactions import AbortedTransaction
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import CODEC_BITS, DELETE_HORIZON_BIT, LOG_APPEND_TIME_BIT, Batch, placed
from kgateway.records.batch_rewrite import hole
from kgateway.records.compression import Codec
from kgateway.records.control import Marker, marker_batch
from kgateway.records.record import Header, Record
from tests.records.crc_batches import sealed
from tests.records.handmade_batches import body, holding
from tests.records.values import batch_of

TOKEN = "token"
NOW_MS = 1_000_000
# A record whose timestamp has too many bytes, which is only noticed if the timestamp is needed.
LONG_TIMESTAMP = b"\x22\0" + b"\xff" * 10 + b"\1\2\2a\1\0"

_KEYS = st.sampled_from([b"", b"a", b"b", b"c" * 7, b"c" * 8, b"c" * 9, b"d" * 15, b"d" * 16, b"e" * 128, b"e" * 129])
_KEY = st.none() | _KEYS | st.integers(0, 30).map(lambda number: b"%d" % number)
_VALUE = st.none() | st.sampled_from([b"", b"v", b"value" * 30])
_HEADERS = st.sampled_from([(), (Header("h", None), Header("g", b"x"))])
_ROWS = st.lists(st.tuples(st.integers(-5, 300), _KEY, _VALUE, _HEADERS), min_size=1, max_size=12)
_PRODUCER = st.sampled_from([-1, 7, 8])


@st.composite
def _plain(draw: Callable[..., Any]) -> Batch:
    rows = draw(_ROWS)
    producer, is_transactional = draw(_PRODUCER), draw(st.booleans())
    known: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 5}
    options = known | {"is_transactional": is_transactional} if producer >= 0 else {}
    sent = batch_of(
        [Record(number, 1_000 + at, *rest) for number, (at, *rest) in enumerate(rows)],
        codec=draw(st.sampled_from(Codec)),
        **options,
    )
    changes: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0:
        changes |= {"attributes": sent.header.attributes | DELETE_HORIZON_BIT, "base_timestamp": NOW_MS + draw(_NEAR)}
    if draw(st.integers(0, 5)) == 0:
        changes["attributes"] = sent.header.attributes | LOG_APPEND_TIME_BIT
    if draw(st.integers(0, 5)) == 0:
        changes["last_offset_delta"] = sent.header.last_offset_delta + draw(st.integers(-1, 100))
    return sealed(sent, **changes) if changes.get("last_offset_delta", 0) >= 0 else sent


_NEAR = st.integers(-2, 2)


@st.composite
def _thinned(draw: Callable[..., Any]) -> Batch:
    """
    With gaps between its records, as after an earlier round; sometimes they are not even in order.
    """
    deltas = draw(st.lists(st.integers(0, 20_000), min_size=1, max_size=6, unique=True))
    if draw(st.integers(0, 5)):
        deltas.sort()
    rows = [body(delta, draw(_KEY)) for delta in deltas]
    last = max(deltas) + draw(st.sampled_from([0, 0, 0, 3, -1]))
    return sealed(holding(b"".join(rows), len(rows), draw(st.sampled_from(Codec))), last_offset_delta=max(last, 0))


@st.composite
def _damaged(draw: Callable[..., Any]) -> Batch:
    """
    A batch of which no one, or not everyone, can read all records.
    """
    whole = draw(_plain())
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return sealed(whole, records_count=whole.header.records_count + draw(st.sampled_from([-20, -1, 1])))
    if kind == 1:
        return sealed(whole, attributes=whole.header.attributes | CODEC_BITS)
    if kind == 2:
        return holding_two(body(0, b"a") + b"no record")
    if kind == 3:
        return holding_two(body(0, b"a") + LONG_TIMESTAMP)
    data = bytearray(whole.data)
    if len(data) > 61 and kind == 4:
        data[61 + draw(st.integers(0, len(data) - 62))] ^= 1 << draw(st.integers(0, 7))
    return sealed(Batch(whole.header, memoryview(bytes(data))))


def holding_two(payload: bytes) -> Batch:
    return sealed(holding(payload, 2), last_offset_delta=1)


_MARKER = st.builds(
    lambda producer, commits: marker_batch(producer, 0, Marker(commits, 0), NOW_MS),
    st.sampled_from([7, 8]),
    st.booleans(),
)
_EMPTY = st.builds(
    lambda producer, delta: sealed(hole(0, delta, 0), producer_id=producer), _PRODUCER, st.integers(0, 5)
)
BATCH = st.one_of(_plain(), _plain(), _plain(), _thinned(), _MARKER, _EMPTY)
ANY_BATCH = st.one_of(BATCH, BATCH, _damaged())


class History(NamedTuple):
    segments: list[list[Batch]]
    gaps: list[int]  # before each segment
    changes: dict[str, Any]  # of the job

    def write(self, folder: Path) -> CompactionJob:
        """
        Write the segments, and return the job to compact them.
        """
        folder.mkdir(parents=True)
        offset, full = 0, list[FullSegment]()
        for segment, gap in zip(self.segments, self.gaps, strict=True):
            base = offset = offset + gap
            data = b""
            for batch in segment:
                data += b"".join(placed(batch, offset, 0))
                offset += batch.header.last_offset_delta + 1
            (folder / file_name(base, LOG)).write_bytes(data)
            full.append(FullSegment(base, offset, len(data)))
        job = CompactionJob(
            folder=str(folder),
            token=TOKEN,
            segments=full,
            first_dirty=0,
            log_start=0,
            now_ms=NOW_MS,
            delete_retention_ms=1_000,
            deletions_stay_from=LONG_MAX,
            segment_bytes=1 << 30,
            segment_index_bytes=10 << 20,
            index_interval_bytes=100,
            last_batches={},
            aborted=[],
        )
        return replace(job, **self.changes)


@st.composite
def histories(draw: Callable[..., Any], batch: st.SearchStrategy[Batch]) -> History:
    segments = draw(st.lists(st.lists(batch, min_size=1, max_size=8), min_size=1, max_size=4))
    gaps = [0, *(draw(st.sampled_from([0, 0, 0, 2])) for _ in segments[1:])]
    end = sum(gaps) + sum(batch.header.last_offset_delta + 1 for segment in segments for batch in segment)
    offset = st.integers(0, end)
    firsts = draw(st.lists(st.tuples(st.sampled_from([7, 8]), offset, offset), max_size=4))
    changes: dict[str, Any] = {
        "first_dirty": draw(st.just(0) | offset),
        "log_start": draw(st.just(0) | offset),
        "deletions_stay_from": draw(st.just(LONG_MAX) | offset),
        "segment_bytes": draw(st.sampled_from([1, 1 << 30])),
        "last_batches": {
            producer: LastBatch(0, draw(st.none() | offset)) for producer in draw(st.sets(st.sampled_from([7, 8])))
        },
        "aborted": [AbortedTransaction(producer, min(a, b), max(a, b), 0) for producer, a, b in firsts],
    }
    return History(segments, gaps, changes)
