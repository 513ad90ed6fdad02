"""
Places in logs, as people name them.
"""

from argparse import ArgumentTypeError

import pytest

from kgateway.cli.places import BEGINNING, END, Kind, Place, place, resolved
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent, Partition
from kgateway.messages.list_offsets import ListOffsetsResponse
from tests.client.conftest import pair as pair  # a fixture
from tests.client.scripted import Pair

FIRST, SECOND = Partition("orders", 0), Partition("orders", 1)
LOGS = {FIRST: Extent(5, 25), SECOND: Extent(0, 3)}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("beginning", BEGINNING),
        ("end", END),
        ("0", Place(Kind.OFFSET, 0)),
        ("20261121", Place(Kind.OFFSET, 20261121)),
        ("-10", Place(Kind.BACK, 10)),
        ("2026-11-21T18:00:00Z", Place(Kind.TIME, 1_795_284_000_000)),
        ("2026-11-21T19:00:00+01:00", Place(Kind.TIME, 1_795_284_000_000)),
        ("2026-11-21 18:00", Place(Kind.TIME, 1_795_284_000_000)),
    ],
)
def test_what_is_meant(text: str, meant: Place) -> None:
    """
    A number is an offset, a negative one counts from the end; times are UTC where they name no zone.
    """
    assert place(text) == meant


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' is none of them: beginning, end, an offset, -N"),
        ("start", "'start' is none of them: beginning"),
        ("1.5", "'1.5' is none of them"),
        ("1969-12-31", "'1969-12-31' is before 1970 in UTC, when Kafka's time begins: beginning, end"),
        ("9223372036854775808", "is no offset: the last one there can be is 9223372036854775807"),
    ],
)
def test_what_means_nothing(text: str, says: str) -> None:
    """
    Is told, with what there is.
    """
    with pytest.raises(ArgumentTypeError) as wrong:
        place(text)
    assert says in str(wrong.value)


@pytest.mark.parametrize(
    ("wanted", "offsets"),
    [
        (BEGINNING, (5, 0)),
        (END, (25, 3)),
        (Place(Kind.OFFSET, 7), (7, 7)),
        (Place(Kind.BACK, 4), (21, 0)),
        (Place(Kind.BACK, 0), (25, 3)),
    ],
)
def test_where_that_is(pair: Pair, wanted: Place, offsets: tuple[int, int]) -> None:
    """
    In each log; so many before the end are no more than there are.
    """
    assert resolved(pair.cluster, wanted, LOGS) == dict(zip((FIRST, SECOND), offsets, strict=True))


def test_where_a_time_is(pair: Pair) -> None:
    """
    Each leader tells; nowhere, where no record is so late.
    """
    kind = ListOffsetsResponse.Topic
    for server, index, offset in ((pair.first, 0, 7), (pair.second, 1, -1)):
        told = kind.Partition(partition_index=index, error_code=0, timestamp=1, offset=offset)
        server.will(ListOffsetsResponse(topics=[kind(name="orders", partitions=[told])]))
    cluster: Cluster = pair.cluster
    assert resolved(cluster, Place(Kind.TIME, 99), LOGS) == {FIRST: 7, SECOND: None}
    assert pair.first.asked[-1][0].topics[0].partitions[0].timestamp == 99
