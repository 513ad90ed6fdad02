"""
The file beside topic.conf.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.layout.topic_file import (
    Generation,
    GenerationPartition,
    PartitionFolder,
    TopicFile,
    folders_of,
    read_intent,
    read_topic_file,
)
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange, ring_ranges
from kgateway.wire.errors import Malformed
from kgateway.wire.uuids import Uuid

NS = 1_000_000_000
ID = Uuid(range(16))
ONE = TopicFile(
    ID, (Generation(5 * NS, (GenerationPartition(RingRange(0, 2520), 0, 0),)),), {"seaweedmq.format": "batch"}
)

_OFFSETS = st.integers(0, (1 << 63) - 1)
_STRETCHES = st.lists(
    st.builds(GenerationPartition, st.builds(RingRange, st.integers(0, 2519), st.integers(1, 2520)), _OFFSETS, _OFFSETS)
)
_GENERATIONS = st.builds(Generation, _OFFSETS, _STRETCHES.map(tuple))
_KEPT = st.builds(
    TopicFile,
    st.binary(min_size=16, max_size=16).map(Uuid),
    st.lists(_GENERATIONS, min_size=1, max_size=3).map(tuple),
    st.dictionaries(st.text(), st.text(), max_size=3),
    st.booleans(),
    st.booleans(),
)


@given(_KEPT)
def test_a_topic_comes_back(kept: TopicFile) -> None:
    """
    It has its id, generations, configs, and whether it is internal or foreign.
    """
    assert read_topic_file(kept.encoded()) == kept


def test_the_line_stays_as_it_is() -> None:
    """
    The next version of the gateway reads lines of this one.
    """
    line = (
        b'{"version": 1, "id": "AAECAwQFBgcICQoLDA0ODw", "internal": false, "found": false, '
        b'"configs": {"seaweedmq.format": "batch"}, '
        b'"generations": [{"unixTimeNs": "5000000000", "partitions": [[0, 2520, 0, 0]]}]}'
    )
    assert ONE.encoded() == line
    assert read_topic_file(line) == ONE


def test_a_topic_that_is_to_be_has_no_partitions_yet() -> None:
    """
    The line is only valid as an intent.
    """
    intended = TopicFile(ID, (), ONE.configs)
    assert read_intent(intended.encoded()) == intended
    with pytest.raises(Malformed, match="no partitions"):
        read_topic_file(intended.encoded())
    assert intended.partition_count == 0


def test_a_later_key_is_passed_over() -> None:
    """
    Additions of the next version do no harm.
    """
    assert read_topic_file(json.dumps({**json.loads(ONE.encoded()), "more": 1}).encode()) == ONE


def test_form_and_partitions_are_todays() -> None:
    """
    The form is a config, by default that of records; the partitions are those of the last generation.
    """
    assert ONE.format.name == "batch"
    assert TopicFile(ID, ONE.generations).format.name == "record"
    assert ONE.partition_count == 1
    assert ONE.grown(6 * NS, ring_ranges(3), [10]).partition_count == 3


def test_a_topic_that_grows_keeps_what_it_had() -> None:
    """
    Partitions continue at their ends, in a new folder; new ones begin at 0. SeaweedMQ may begin at another offset.
    """
    grown = ONE.grown(6 * NS, ring_ranges(2), [100], [7, 8])
    first, second = "/topics/kafka/t/v1970-01-01-00-00-05/0000-2520", "/topics/kafka/t/v1970-01-01-00-00-06/0000-1260"
    assert folders_of(grown, "t", 0, "kafka") == [
        PartitionFolder(first, 0, 0, 5 * NS, RingRange(0, 2520)),
        PartitionFolder(second, 93, 7, 6 * NS, RingRange(0, 1260)),
    ]
    other = "/topics/other/t/v1970-01-01-00-00-06/1260-2520"
    assert folders_of(grown, "t", 1, "other") == [PartitionFolder(other, -8, 8, 6 * NS, RingRange(1260, 2520))]
    assert grown.configs == ONE.configs


def test_a_topic_that_others_shrank_keeps_its_partitions() -> None:
    """
    SeaweedMQ has fewer; a removed one ends with its last folder.
    """
    grown = ONE.grown(6 * NS, ring_ranges(2), [1]).grown(7 * NS, ring_ranges(1), [5, 6])
    assert grown.assigned_count == 1
    assert [each.first_message + each.shift for each in folders_of(grown, "t", 0, "kafka")] == [0, 1, 5]
    assert [each.first_message + each.shift for each in folders_of(grown, "t", 1, "kafka")] == [0]
    assert grown.partition_count == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"version": None},
        {"id": "short"},
        {"id": 5},
        {"internal": "no"},
        {"found": 1},
        {"configs": {"a": 1}},
        {"configs": []},
        {"configs": {"seaweedmq.format": "novel"}},
        {"generations": []},
        {"generations": [{"unixTimeNs": "x", "partitions": []}]},
        {"generations": [{"unixTimeNs": "5", "partitions": [[0, 1, 2]]}]},
        {"generations": [{"unixTimeNs": "5", "partitions": [[0, 1, "2", 3]]}]},
        {"generations": [{"unixTimeNs": "5", "partitions": [[0, 1, True, 3]]}]},
        {"generations": [{}]},
        {"generations": None},
    ],
)
def test_what_is_no_topic_is_malformed(changes: dict[str, Any]) -> None:
    """
    The version is another one, or a field is invalid.
    """
    with pytest.raises(Malformed, match=r"kgateway\.json v1"):
        read_topic_file(json.dumps({**json.loads(ONE.encoded()), **changes}).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"5", b"{}", b"\xff", b'{"a":' * 2000])
def test_what_is_no_json_object_is_malformed(data: bytes) -> None:
    """
    The file is damaged, or another program's.
    """
    with pytest.raises(Malformed, match=r"kgateway\.json v1"):
        read_topic_file(data)
