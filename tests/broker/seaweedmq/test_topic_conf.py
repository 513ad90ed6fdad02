"""
The file topic.conf.
"""

import json

import pytest

from kgateway.broker.seaweed.protos.messaging_pb2 import (
    BrokerPartitionAssignment,
    ConfigureTopicResponse,
    TopicRetention,
)
from kgateway.broker.seaweed.protos.schema_pb2 import Partition
from kgateway.broker.seaweedmq.formats.record import RecordFormat
from kgateway.broker.seaweedmq.layout.topic_conf import generation_of, ranges_of, read_topic_conf, topic_conf
from kgateway.broker.seaweedmq.layout.topic_paths import RingRange
from kgateway.wire.errors import Malformed

# What `weed mq.broker` 4.48 wrote, blanks and all, of a topic of two partitions.
WEED = b"""{
  "brokerPartitionAssignments":  [
    {
      "partition":  {
        "ringSize":  2520,
        "rangeStart":  1260,
        "rangeStop":  2520,
        "unixTimeNs":  "1795321791102361121"
      },
      "leaderBroker":  "127.0.0.1:37515",
      "followerBroker":  "127.0.0.1:37515"
    },
    {
      "partition":  {
        "ringSize":  2520,
        "rangeStart":  0,
        "rangeStop":  1260,
        "unixTimeNs":  "1795321791102361121"
      },
      "leaderBroker":  "127.0.0.1:37515",
      "followerBroker":  "127.0.0.1:37515"
    }
  ],
  "retention":  null,
  "messageRecordType":  null,
  "keyColumns":  [],
  "schemaFormat":  ""
}"""


def conf(*parts: RingRange, unix_time_ns: int = 5) -> ConfigureTopicResponse:
    """
    The topic.conf of a topic with these partitions.
    """
    partitions = [
        Partition(ring_size=2520, range_start=part.start, range_stop=part.stop, unix_time_ns=unix_time_ns)
        for part in parts
    ]
    assignments = [BrokerPartitionAssignment(partition=each, leader_broker="host:17777") for each in partitions]
    return ConfigureTopicResponse(broker_partition_assignments=assignments)


def test_what_a_broker_wrote_is_read() -> None:
    """
    It has partitions, the time of their creation, and their leaders.
    """
    read = read_topic_conf(WEED)
    assert ranges_of(read) == [RingRange(0, 1260), RingRange(1260, 2520)]
    assert generation_of(read) == 1_795_321_791_102_361_121
    assert read.broker_partition_assignments[0].leader_broker == "127.0.0.1:37515"
    assert not read.HasField("message_record_type")


def test_it_is_written_as_a_broker_writes_it() -> None:
    """
    It has the same keys and values, also defaults and nulls, 64-bit numbers as text, and two spaces of indent.
    """
    written = topic_conf(read_topic_conf(WEED))
    assert json.loads(written) == json.loads(WEED)
    assert list(json.loads(written)) == list(json.loads(WEED))
    assert written.startswith(b'{\n  "brokerPartitionAssignments": [')


def test_columns_and_retention_come_back() -> None:
    """
    A topic in record form has everything that the file has a place for.
    """
    full = conf(RingRange(0, 2520))
    full.message_record_type.CopyFrom(RecordFormat().record_type())
    full.retention.CopyFrom(TopicRetention(retention_seconds=3600, enabled=True))
    full.key_columns.append("key")
    full.schema_format = "AVRO"
    assert read_topic_conf(topic_conf(full)) == full


def test_an_unknown_key_is_passed_over() -> None:
    """
    A later SeaweedMQ may write more keys.
    """
    later = {**json.loads(WEED), "somethingNew": {"a": [1]}}
    assert read_topic_conf(json.dumps(later).encode()) == read_topic_conf(WEED)


def test_split_partitions_stand_along_the_ring() -> None:
    """
    Kafka's index follows the ring, however it was split; the latest creation is the time of the generation.
    """
    halved = conf(RingRange(1260, 2520), RingRange(0, 630), RingRange(630, 1260))
    halved.broker_partition_assignments[1].partition.unix_time_ns = 9
    assert ranges_of(halved) == [RingRange(0, 630), RingRange(630, 1260), RingRange(1260, 2520)]
    assert generation_of(halved) == 9


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff",
        b'{"retention": 5}',
        b'{"a":' * 2000,
        WEED.replace(b'"1795321791102361121"', b'"soon"'),
        WEED[:-1],
    ],
)
def test_what_is_no_topic_conf_is_malformed(data: bytes) -> None:
    """
    The text is damaged JSON, other JSON, or a topic without partitions.
    """
    with pytest.raises(Malformed, match=r"topic\.conf"):
        read_topic_conf(data)
