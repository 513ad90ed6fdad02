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
    ("text", "says"),
    [
        ("", "'' is none of them: beginning, end, an offset, -N"),
        ("start", "'start' is none of them: beginning"),
        ("1.5", "'1.5' is none of them"),
        ("1969-12-31", "'1969-12-31' is before 1970 in UTC, when Kafka's time begins: beginning, end"),
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
