"""
Offsets as people name them.
"""

from argparse import ArgumentTypeError

import pytest

from kgateway.cli.common.offset_spec import BEGINNING, END, Kind, OffsetSpec, offset_spec, resolve
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent
from kgateway.messages.list_offsets import ListOffsetsResponse
from kgateway.topic_partition import TopicPartition
from tests.client.conftest import pair as pair  # a fixture
from tests.client.scripted import Pair

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOGS = {FIRST: Extent(5, 25), SECOND: Extent(0, 3)}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("beginning", BEGINNING),
        ("end", END),
        ("earliest", BEGINNING),
        ("latest", END),
        ("0", OffsetSpec(Kind.OFFSET, 0)),
        ("20261121", OffsetSpec(Kind.OFFSET, 20261121)),
        ("-10", OffsetSpec(Kind.BACK, 10)),
        ("2026-11-21T18:00:00Z", OffsetSpec(Kind.TIME, 1_795_284_000_000)),
        ("2026-11-21T19:00:00+01:00", OffsetSpec(Kind.TIME, 1_795_284_000_000)),
        ("2026-11-21 18:00", OffsetSpec(Kind.TIME, 1_795_284_000_000)),
    ],
)
def test_spellings_of_offsets(text: str, meant: OffsetSpec) -> None:
    """
    A number is an offset, and a negative one counts from the end; times are UTC if they name no zone.
    """
    assert offset_spec(text) == meant


@pytest.mark.parametrize(
    ("text", "ago_ms"),
    [("0s", 0), ("30s", 30_000), ("5m", 300_000), ("5min", 300_000), ("2h", 7_200_000), ("7d", 604_800_000)],
)
def test_ages_are_times(monkeypatch: pytest.MonkeyPatch, text: str, ago_ms: int) -> None:
    """
    A number with a unit is so long ago.
    """
    now_ms = 1_795_284_000_000
    monkeypatch.setattr("kgateway.cli.common.times.time.time_ns", lambda: now_ms * 1_000_000)
    assert offset_spec(text) == OffsetSpec(Kind.TIME, now_ms - ago_ms)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' must be beginning, end, an offset, -N"),
        ("start", "'start' must be beginning"),
        ("1.5", "'1.5' must be beginning"),
        ("-5m", "'-5m' must be beginning"),
        ("5y", "or an age such as 5m, 2h or 7d"),
        ("1969-12-31", "'1969-12-31' is before 1970 in UTC, when Kafka's time begins; it must be beginning, end"),
        ("50000d", "'50000d' is before 1970 in UTC"),
        ("9223372036854775808", "is not an offset: must be at most 9223372036854775807"),
    ],
)
def test_invalid_offsets_are_refused(text: str, says: str) -> None:
    """
    The reason names what is allowed.
    """
    with pytest.raises(ArgumentTypeError) as wrong:
        offset_spec(text)
    assert says in str(wrong.value)


@pytest.mark.parametrize(
    ("wanted", "offsets"),
    [
        (BEGINNING, (5, 0)),
        (END, (25, 3)),
        (OffsetSpec(Kind.OFFSET, 7), (7, 7)),
        (OffsetSpec(Kind.BACK, 4), (21, 0)),
        (OffsetSpec(Kind.BACK, 0), (25, 3)),
    ],
)
def test_offsets_are_resolved_in_each_log(pair: Pair, wanted: OffsetSpec, offsets: tuple[int, int]) -> None:
    """
    An offset from the end is never before the start of its log.
    """
    assert resolve(pair.cluster, wanted, LOGS) == dict(zip((FIRST, SECOND), offsets, strict=True))


def test_a_time_is_resolved_by_the_leaders(pair: Pair) -> None:
    """
    The result is None if no record is late enough.
    """
    kind = ListOffsetsResponse.Topic
    for server, index, offset in ((pair.first, 0, 7), (pair.second, 1, -1)):
        told = kind.Partition(partition_index=index, error_code=0, timestamp=1, offset=offset)
        server.will(ListOffsetsResponse(topics=[kind(name="orders", partitions=[told])]))
    cluster: Cluster = pair.cluster
    assert resolve(cluster, OffsetSpec(Kind.TIME, 99), LOGS) == {FIRST: 7, SECOND: None}
    assert pair.first.asked[-1][0].topics[0].partitions[0].timestamp == 99
