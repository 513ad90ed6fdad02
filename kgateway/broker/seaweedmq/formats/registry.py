"""
The formats by name, and what each needs of its topic.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from kgateway.broker.seaweedmq.formats.batch import BatchFormat
from kgateway.broker.seaweedmq.formats.format import MessageFormat
from kgateway.broker.seaweedmq.formats.plain import PlainFormat
from kgateway.broker.seaweedmq.formats.record import RecordFormat
from kgateway.cluster.config import TopicConfig
from kgateway.wire.errors import ErrorCode, KafkaError

FORMAT = "seaweedmq.format"  # the config of a topic
FORMATS: dict[str, MessageFormat] = {each.name: each for each in (RecordFormat(), PlainFormat(), BatchFormat())}
_AS_PRODUCED = "producer"  # a compression.type


def with_format(config: TopicConfig, topic_defaults: Mapping[str, str]) -> TopicConfig:
    """
    The config with the format among its overrides, and what that needs: the topic keeps its format, whatever defaults
    change later.
    """
    message_format, overrides = FORMATS[config.seaweedmq_format], config.overrides
    compression = overrides.get("compression.type", _AS_PRODUCED)
    if not message_format.batched and compression not in (_AS_PRODUCED, "uncompressed"):
        reason = (
            f"a topic of the format {message_format.name} stores single records: compression.type can only be producer"
        )
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    for name, value in message_format.needs.items():
        if overrides.get(name, value) != value:
            reason = f"a topic of the format {message_format.name} has {name}={value}, not {overrides[name]}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    overrides = {**message_format.needs, **overrides, FORMAT: message_format.name}
    if message_format.needs:
        return TopicConfig.of(overrides, topic_defaults)
    return replace(config, overrides=MappingProxyType(overrides))
