"""
What is kept beside topic.conf.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.kept_topic import Generation, KeptTopic, Stretch, read_intended_topic, read_kept_topic
from kgateway.broker.seaweedmq.layout import Range, ring_ranges
from kgateway.wire.malformed import Malformed
from kgateway.wire.uuids import Uuid

NS = 1_000_000_000
ID = Uuid(range(16))
ONE = KeptTopic(ID, (Generation(5 * NS, (Stretch(Range(0, 2520), 0, 0),)),), {"seaweedmq.format": "batch"})

_OFFSETS = st.integers(0, (1 << 63) - 1)
_STRETCHES = st.lists(
    st.builds(Stretch, st.builds(Range, st.integers(0, 2519), st.integers(1, 2520)), _OFFSETS, _OFFSETS)
)
_GENERATIONS = st.builds(Generation, _OFFSETS, _STRETCHES.map(tuple))
_KEPT = st.builds(
    KeptTopic,
    st.binary(min_size=16, max_size=16).map(Uuid),
    st.lists(_GENERATIONS, min_size=1, max_size=3).map(tuple),
    st.dictionaries(st.text(), st.text(), max_size=3),
    st.booleans(),
    st.booleans(),
)


@given(_KEPT)
def test_a_topic_comes_back(kept: KeptTopic) -> None:
    """
    Id, generations, configs, and whether it is internal or was found.
    """
    assert read_kept_topic(kept.written()) == kept


def test_the_line_stays_as_it_is() -> None:
    """
    Written by one version of the gateway, it is read by the next.
    """
    line = (
        b'{"version": 1, "id": "AAECAwQFBgcICQoLDA0ODw", "internal": false, "found": false, '
        b'"configs": {"seaweedmq.format": "batch"}, '
        b'"generations": [{"unixTimeNs": "5000000000", "partitions": [[0, 2520, 0, 0]]}]}'
    )
    assert ONE.written() == line
    assert read_kept_topic(line) == ONE


def test_a_topic_that_is_to_be_has_no_partitions_yet() -> None:
    """
    It is read as such only where one is looked for.
    """
    intended = KeptTopic(ID, (), ONE.configs)
    assert read_intended_topic(intended.written()) == intended
    with pytest.raises(Malformed, match="no partitions"):
        read_kept_topic(intended.written())
    assert intended.most_partitions == 0


def test_a_later_key_is_passed_over() -> None:
    """
    What the next version adds does not stop this one.
    """
    assert read_kept_topic(json.dumps({**json.loads(ONE.written()), "more": 1}).encode()) == ONE


def test_form_and_partitions_are_todays() -> None:
    """
    The form is a config, and that of records where none is set; the partitions are those of the last generation.
    """
    assert ONE.form.name == "batch"
    assert KeptTopic(ID, ONE.generations).form.name == "record"
    assert ONE.partition_count == 1
    assert ONE.grown(6 * NS, ring_ranges(3), [10]).partition_count == 3


def test_a_topic_that_grows_keeps_what_it_had() -> None:
    """
    Partitions go on at their ends, in a new folder; new ones begin at 0. SeaweedMQ may begin at another offset.
    """
    grown = ONE.grown(6 * NS, ring_ranges(2), [100], [7, 8])
    assert grown.folders("t", 0) == [
        ("/topics/kafka/t/v1970-01-01-00-00-05/0000-2520", Stretch(Range(0, 2520), 0, 0)),
        ("/topics/kafka/t/v1970-01-01-00-00-06/0000-1260", Stretch(Range(0, 1260), 100, 7)),
    ]
    assert grown.folders("t", 1, "other") == [
        ("/topics/other/t/v1970-01-01-00-00-06/1260-2520", Stretch(Range(1260, 2520), 0, 8))
    ]
    assert [stretch.shift for _, stretch in grown.folders("t", 0)] == [0, 93]
    assert grown.configs == ONE.configs


def test_a_topic_that_others_shrank_has_fewer_partitions() -> None:
    """
    The ends of those that are gone are nobody's.
    """
    grown = ONE.grown(6 * NS, ring_ranges(2), [1]).grown(7 * NS, ring_ranges(1), [5, 6])
    assert grown.partition_count == 1
    assert [stretch.kafka_start for _, stretch in grown.folders("t", 0)] == [0, 1, 5]
    assert [stretch.kafka_start for _, stretch in grown.folders("t", 1)] == [0]
    assert grown.most_partitions == 2


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
    Another version, and anything that is not what it should be.
    """
    with pytest.raises(Malformed, match="kept topic v1"):
        read_kept_topic(json.dumps({**json.loads(ONE.written()), **changes}).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"5", b"{}", b"\xff", b'{"a":' * 2000])
def test_what_is_no_json_object_is_malformed(data: bytes) -> None:
    """
    A file that is damaged, or somebody else's.
    """
    with pytest.raises(Malformed, match="kept topic v1"):
        read_kept_topic(data)
