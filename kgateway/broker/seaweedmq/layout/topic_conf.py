"""
The file `topic.conf` of a topic: the answer of ConfigureTopic in the JSON form of Protocol Buffers, with two spaces of
indent, and with fields that have their default written out.

The broker refuses the file if there is a key in it that it does not know, so nothing of ours is in there. A key that we
do not know is ignored.
"""

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, Parse, ParseError

from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicResponse
from kgateway.broker.seaweedmq.layout.topic_paths import TOPIC_CONF, RingRange
from kgateway.wire.errors import Malformed, MessageField

_KEYS = ("brokerPartitionAssignments", "retention", "messageRecordType", "keyColumns", "schemaFormat")


def read_topic_conf(data: bytes) -> ConfigureTopicResponse:
    try:
        conf = Parse(data, ConfigureTopicResponse(), ignore_unknown_fields=True)
    except (ParseError, ValueError, RecursionError) as failure:
        raise _malformed(str(failure)) from None
    if not conf.broker_partition_assignments:
        raise _malformed("it describes no partition")
    return conf


def topic_conf(conf: ConfigureTopicResponse) -> bytes:
    written: Mapping[str, Any] = MessageToDict(conf, always_print_fields_with_no_presence=True)
    return json.dumps({key: written.get(key) for key in _KEYS}, indent=2).encode()


def generation_of(conf: ConfigureTopicResponse) -> int:
    """
    When the partitions were made, in nanoseconds; if some were made later than others, the latest time.
    """
    return max(assignment.partition.unix_time_ns for assignment in conf.broker_partition_assignments)


def ranges_of(conf: ConfigureTopicResponse) -> list[RingRange]:
    partitions = [assignment.partition for assignment in conf.broker_partition_assignments]
    return sorted(RingRange(partition.range_start, partition.range_stop) for partition in partitions)


def _malformed(reason: str) -> Malformed:
    return Malformed(MessageField(TOPIC_CONF, 0, "JSON"), 0, reason)
