"""
The table of topic configs, and the settings that are made by it. What Kafka allows was asked of Kafka 4.3.1.
"""

import re

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import ConfigType, show
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.records.batch import TimestampType
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.cluster.clusters import refusal

# config -> texts that Kafka takes, and what it makes of each
_TAKEN = {
    "cleanup.policy": {"": "", "delete,delete": "delete", " compact , delete": "compact,delete", "compact": "compact"},
    "preallocate": {"TRUE": "true", " false ": "false"},
    "max.message.bytes": {" 5 ": "5", "+5": "5", "-0": "0", "2147483647": "2147483647"},
    "retention.ms": {"-1": "-1", "9223372036854775807": "9223372036854775807"},
    "retention.bytes": {"-5": "-5"},
    "min.cleanable.dirty.ratio": {"0.5": "0.5", "1": "1.0", ".5": "0.5", "0.10": "0.1"},
    "compression.gzip.level": {"-1": "-1", "9": "9"},
    "compression.type": {"producer ": "producer"},
    "leader.replication.throttled.replicas": {" * ": "*", "": "", "0:1, 1:2": "0:1,1:2"},
    "message.timestamp.type": {"LogAppendTime": "LogAppendTime"},
    "remote.storage.enable": {"false": "false"},
}
# config -> texts that it refuses
_REFUSED = {
    "cleanup.policy": ["Delete", "delete,", ",", "delete,foo"],
    "preallocate": ["yes", "1", ""],
    "max.message.bytes": ["5.0", "1_000", "2147483648", "", "0x10", "1e3", "-1"],
    "retention.ms": ["-2", "9223372036854775808"],
    "min.cleanable.dirty.ratio": ["1.1", "-0.1", "Infinity", "nan", "half"],
    "compression.gzip.level": ["0", "10"],
    "compression.type": ["none", "GZIP"],
    "leader.replication.throttled.replicas": ["0:1:2", "x:1", "*,0:1"],
    "message.timestamp.type": ["createtime"],
    "segment.bytes": ["1048575"],
    "max.compaction.lag.ms": ["0"],
}


def _refused(**overrides: str) -> KafkaError:
    try:
        TopicConfig.of({name.replace("_", "."): value for name, value in overrides.items()})
    except KafkaError as error:
        return error
    raise AssertionError(f"{overrides} were taken")


class TableTests(SynchronousTestCase):
    def test_taken(self) -> None:
        """
        What Kafka takes is taken, and means the same.
        """
        for name, texts in _TAKEN.items():
            for text, meant in texts.items():
                assert meant == show(TOPIC_CONFIGS[name].read(text)), f"{name}={text!r}"

    def test_refused(self) -> None:
        """
        What Kafka refuses is refused, and the answer has the name, the value and what is allowed.
        """
        for name, texts in _REFUSED.items():
            for text in texts:
                error = refusal(TOPIC_CONFIGS[name].read, text)
                assert error.code == ErrorCode.INVALID_CONFIG
                for part in (name, repr(text), TOPIC_CONFIGS[name].kind.allowed):
                    assert part in str(error.message)

    def test_defaults_are_allowed(self) -> None:
        """
        Each default is a value that its config may have, written as Kafka writes it.
        """
        for name, row in TOPIC_CONFIGS.items():
            assert row.default.removesuffix(".0") == show(row.read(row.default)).removesuffix(".0"), name

    def test_rows_are_told_of(self) -> None:
        """
        Each row says in a sentence what it means, and one without effect says why.
        """
        for name, row in TOPIC_CONFIGS.items():
            assert re.search(r"^[A-Z].*\.$", row.meaning), name
        acted_on = {name for name, row in TOPIC_CONFIGS.items() if not row.without_effect}
        timestamps = {f"message.timestamp.{what}" for what in ("type", "before.max.ms", "after.max.ms")}
        files = {"segment.bytes", "segment.ms", "index.interval.bytes", "flush.messages", "flush.ms"}
        assert {"max.message.bytes", "kgateway.acks.fsync", *timestamps, *files} == acted_on

    def test_no_false_promises(self) -> None:
        """
        A value that Kafka would act on and this gateway cannot is refused with the reason.
        """
        assert "as the producer compressed them" in str(_refused(compression_type="gzip").message)
        assert "no tiered storage" in str(_refused(remote_storage_enable="true").message)

    def test_types(self) -> None:
        """
        Types have Kafka's numbers.
        """
        numbers = {name: TOPIC_CONFIGS[name].kind.type for name in _TAKEN}
        assert ConfigType(1) == numbers["preallocate"]
        assert ConfigType(2) == numbers["compression.type"]
        assert ConfigType(3) == numbers["max.message.bytes"]
        assert ConfigType(5) == numbers["retention.ms"]
        assert ConfigType(6) == numbers["min.cleanable.dirty.ratio"]
        assert ConfigType(7) == numbers["cleanup.policy"]


class TopicConfigTests(SynchronousTestCase):
    def test_nothing_set(self) -> None:
        """
        With nothing set, Kafka's defaults hold.
        """
        assert TopicConfig() == TopicConfig.of({})
        assert TopicConfig().max_message_bytes == 1048588
        assert TopicConfig().timestamp_after_max_ms == 3600000

    def test_set(self) -> None:
        """
        What is set holds, and is kept as it was set.
        """
        config = TopicConfig.of(
            {
                "max.message.bytes": " 7 ",
                "message.timestamp.type": "LogAppendTime",
                "message.timestamp.before.max.ms": "5",
                "message.timestamp.after.max.ms": "6",
                "min.insync.replicas": "2",
            }
        )
        assert config.max_message_bytes == 7
        assert config.timestamp_type == TimestampType.LOG_APPEND_TIME
        assert (config.timestamp_before_max_ms, config.timestamp_after_max_ms) == (5, 6)
        assert config.min_insync_replicas == 2
        assert config.overrides["max.message.bytes"] == " 7 "

    def test_broker_defaults(self) -> None:
        """
        What the broker says holds where the topic says nothing, and is no override.
        """
        config = TopicConfig.of({}, {"max.message.bytes": "9"})
        assert config.max_message_bytes == 9
        assert dict(config.overrides) == {}
        assert TopicConfig.of({"max.message.bytes": "7"}, {"max.message.bytes": "9"}).max_message_bytes == 7

    def test_unknown(self) -> None:
        """
        A name that no config has is refused, and the nearest one is named.
        """
        error = _refused(max_mesage_bytes="5")
        assert error.code == ErrorCode.INVALID_CONFIG
        assert error.message == "Unknown topic config name: max.mesage.bytes; did you mean max.message.bytes?"
        assert _refused(xyz="5").message == "Unknown topic config name: xyz"

    def test_lags(self) -> None:
        """
        The two lags of compaction must not contradict each other.
        """
        both = {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}
        error = refusal(TopicConfig.of, both)
        assert error.code == ErrorCode.INVALID_CONFIG
        TopicConfig.of(both | {"max.compaction.lag.ms": "5"})

    def test_caller_keeps_its_own(self) -> None:
        """
        The settings do not change with the mapping they were made from.
        """
        overrides = {"retention.ms": "5"}
        config = TopicConfig.of(overrides)
        overrides["retention.ms"] = "6"
        assert config.overrides["retention.ms"] == "5"
