"""
Names of SeaweedMQ's folders and files.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.layout.topic_paths import (
    RING_SIZE,
    RingRange,
    generation_name,
    is_log_file,
    log_name,
    log_second,
    namespace_folder,
    partition_folder,
    ring_ranges,
    topic_folder,
)
from kgateway.wire.errors import ErrorCode, KafkaError

NS = 1_000_000_000
TEN_O_CLOCK = 1_787_392_800


def test_folders_are_named_as_seaweedmq_names_them() -> None:
    """
    The folder of a partition, named by its range, is in that of its generation, which is in that of its topic.
    """
    assert namespace_folder() == "/topics/kafka"
    assert topic_folder("orders") == "/topics/kafka/orders"
    folder = partition_folder("orders", TEN_O_CLOCK * NS + 999, RingRange(0, 630))
    assert folder == "/topics/kafka/orders/v2026-08-22-10-00-00/0000-0630"
    assert partition_folder("a", 0, RingRange(630, 1260), "other") == "/topics/other/a/v1970-01-01-00-00-00/0630-1260"


@given(st.integers(0, 253402300799), st.integers(0, NS - 1))
@example(TEN_O_CLOCK, NS - 1)
def test_names_tell_their_second(second: int, rest: int) -> None:
    """
    Log files and generations are named by a second, which can be read from the name.
    """
    name = log_name(second * NS + rest)
    assert log_second(name) == second
    assert is_log_file(name)
    assert generation_name(second * NS + rest) == f"v{name}"


@pytest.mark.parametrize(
    "name",
    [
        "2026-08-22-10-00-00.parquet",
        "checkpoint.offset",
        "consumers",
        "v2026-08-22-10-00-00",
        "2026-08-22-10-00-60",
        "2026-02-30-10-00-00",
        "2026-8-22-10-00-00",
        "2026-08-22-10-00",
        " 2026-08-22-10-00-00",
        "",
    ],
)
def test_other_files_are_no_log_files(name: str) -> None:
    """
    Archives, positions and whatever else is in the folder of a partition holds no messages.
    """
    assert log_second(name) is None
    assert not is_log_file(name)


@given(st.integers(1, RING_SIZE))
@example(RING_SIZE)
def test_partitions_tile_the_ring(count: int) -> None:
    """
    All have the same size, except for the last, which takes the rest.
    """
    parts = ring_ranges(count)
    assert len(parts) == count
    assert [parts[0].start, *(part.stop for part in parts)] == [*(part.start for part in parts), RING_SIZE]
    assert {part.stop - part.start for part in parts[:-1]} <= {RING_SIZE // count}


@pytest.mark.parametrize("count", [-1, 0, RING_SIZE + 1])
def test_counts_that_kill_a_broker_are_refused(count: int) -> None:
    """
    A topic has 1 to 2520 partitions.
    """
    with pytest.raises(KafkaError) as refused:
        ring_ranges(count)
    assert refused.value.code is ErrorCode.INVALID_PARTITIONS
    assert f"not {count}" in str(refused.value)
