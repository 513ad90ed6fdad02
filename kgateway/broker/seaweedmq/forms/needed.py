"""
What the form of a topic's messages needs the topic to be like.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from kgateway.broker.seaweedmq.forms.by_name import FORMS
from kgateway.broker.seaweedmq.kept_topic import FORMAT
from kgateway.cluster.config import TopicConfig
from kgateway.wire.errors import ErrorCode, KafkaError

_AS_PRODUCED = "producer"  # a compression.type


def with_form(config: TopicConfig, topic_defaults: Mapping[str, str]) -> TopicConfig:
    """
    The config with the form among what is set, and what the form needs: it is that of the messages for good, whatever
    holds later.
    """
    form, overrides = FORMS[config.seaweedmq_format], config.overrides
    compression = overrides.get("compression.type", _AS_PRODUCED)
    if not form.batched and compression not in (_AS_PRODUCED, "uncompressed"):
        reason = f"a topic of the form {form.name} keeps single records: compression.type can only be producer"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    for name, value in form.needs.items():
        if overrides.get(name, value) != value:
            reason = f"a topic of the form {form.name} has {name}={value}, not {overrides[name]}"
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
    overrides = {**form.needs, **overrides, FORMAT: form.name}
    if form.needs:
        return TopicConfig.of(overrides, topic_defaults)
    return replace(config, overrides=MappingProxyType(overrides))
