"""
The table of topic configs, and the settings made from it. Kafka 4.3.1 was asked which values it accepts.
"""

import re

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import ConfigType, show
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.records.batch import TimestampType
from kgateway.records.compression import Codec
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.cluster.clusters import refusal

# config -> texts that Kafka accepts, and their values
_TAKEN = {
    "cleanup.policy": {"": "", "delete,delete": "delete", " compact , delete": "compact,delete", "compact": "compact"},
    "preallocate": {"TRUE": "true", " false ": "false"},
    "max.message.bytes": {" 5 ": "5", "+5": "5", "-0": "0", "5\x1f": "5", "2147483647": "2147483647"},
    "retention.ms": {"-1": "-1", "9223372036854775807": "9223372036854775807"},
    "retention.bytes": {"-5": "-5"},
    "min.cleanable.dirty.ratio": {
        "0.5": "0.5",
        "1": "1.0",
        ".5": "0.5",
        "0.10": "0.1",
        "1e-5": "1.0E-5",
        "0.00012": "1.2E-4",
        "0.001": "0.001",
        "\x1f+1.e-1 ": "0.1",
    },
    "compression.gzip.level": {"-1": "-1", "9": "9"},
    "compression.type": {"producer ": "producer"},
    "leader.replication.throttled.replicas": {" * ": "*", "": "", "0:1, 1:2": "0:1,1:2"},
    "message.timestamp.type": {"LogAppendTime": "LogAppendTime"},
    "remote.storage.enable": {"false": "false"},
}
# config -> texts that Kafka refuses, and why; before a bar, the text as Kafka shows it
_NO_ITEM = "values must not be empty."
_OF_POLICY = "String must be one of: compact, delete"
_OF_REPLICAS = (
    "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
_REFUSED = {
    "cleanup.policy": {
        "Delete": _OF_POLICY,
        "delete,": _NO_ITEM,
        ",": _NO_ITEM,
        "delete,foo": f"foo|{_OF_POLICY}",
    },
    "preallocate": dict.fromkeys(["yes", "1", ""], "Expected value to be either true or false"),
    "max.message.bytes": dict.fromkeys(
        ["5.0", "\xa05", "5\u2003", "\u0665", "1_000", "2147483648", "", "0x10", "1e3", "-2147483649"],
        "Not a number of type INT",
    )
    | {"-1": "Value must be at least 0", " -1 ": "-1|Value must be at least 0"},
    "retention.ms": {"-2": "Value must be at least -1", "9223372036854775808": "Not a number of type LONG"},
    "min.cleanable.dirty.ratio": {
        "1.1": "Value must be no more than 1",
        "2": "2.0|Value must be no more than 1",
        "-0.1": "Value must be at least 0",
        "Infinity": "Infinity|Value must be no more than 1",
        "nan": "Not a number of type DOUBLE",
        "1_0e-2": "Not a number of type DOUBLE",
        "\u0660.\u0665": "Not a number of type DOUBLE",
        "\xa00.5": "Not a number of type DOUBLE",
        "12345678": "1.2345678E7|Value must be no more than 1",
        "half": "Not a number of type DOUBLE",
    },
    "compression.gzip.level": dict.fromkeys(["0", "10"], "Value must be between 1 and 9 or equal to -1"),
    "compression.lz4.level": {"0": "Value must be at least 1", "18": "Value must be no more than 17"},
    "compression.type": dict.fromkeys(
        ["none", "GZIP"], "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"
    ),
    "leader.replication.throttled.replicas": {
        "0:1:2": f"[0:1:2]|{_OF_REPLICAS}",
        "x:1": f"[x:1]|{_OF_REPLICAS}",
        "*,0:1": f"[*, 0:1]|{_OF_REPLICAS}",
    },
    "message.timestamp.type": {"createtime": "String must be one of: CreateTime, LogAppendTime"},
    "segment.bytes": {"1048575": "Value must be at least 1048576"},
    "max.compaction.lag.ms": {"0": "Value must be at least 1"},
}


def _refused(**overrides: str) -> KafkaError:
    try:
        TopicConfig.of({name.replace("_", "."): value for name, value in overrides.items()})
    except KafkaError as error:
        return error
    raise AssertionError(f"{overrides} were taken")


class TableTests(SynchronousTestCase):
    def test_values_that_kafka_accepts(self) -> None:
        """
        They are accepted, with the same meaning.
        """
        for name, texts in _TAKEN.items():
            for text, meant in texts.items():
                assert meant == show(TOPIC_CONFIGS[name].read(text)), f"{name}={text!r}"

    def test_values_that_kafka_refuses(self) -> None:
        """
        They are refused, in its words.
        """
        for name, texts in _REFUSED.items():
            for text, why in texts.items():
                error = refusal(TOPIC_CONFIGS[name].read, text)
                shown, _, rule = why.rpartition("|")
                wanted = f"Invalid value {shown or text} for configuration {name}: {rule}"
                if rule == _NO_ITEM:
                    wanted = f"Configuration '{name}' {rule}"
                assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, wanted)

    def test_defaults_are_allowed(self) -> None:
        """
        Each default is a valid value of its config, written as Kafka writes it.
        """
        for name, row in TOPIC_CONFIGS.items():
            assert row.default.removesuffix(".0") == show(row.read(row.default)).removesuffix(".0"), name

    def test_rows_are_documented(self) -> None:
        """
        Each row has a sentence with its meaning, and one without effect has the reason.
        """
        for name, row in TOPIC_CONFIGS.items():
            assert re.search(r"^[A-Z].*\.$", row.meaning), name
        acted_on = {name for name, row in TOPIC_CONFIGS.items() if not row.without_effect}
        timestamps = {f"message.timestamp.{what}" for what in ("type", "before.max.ms", "after.max.ms")}
        files = {"segment.bytes", "segment.ms", "index.interval.bytes", "flush.messages", "flush.ms"}
        files |= {"cleanup.policy", "retention.ms", "retention.bytes", "file.delete.delay.ms"}
        files |= {"segment.index.bytes", "segment.jitter.ms", "delete.retention.ms", "min.cleanable.dirty.ratio"}
        files |= {"min.compaction.lag.ms", "max.compaction.lag.ms"}
        others = {"max.message.bytes", "kgateway.acks.fsync", "seaweedmq.acks", "seaweedmq.format"}
        others |= {f"compression.{what}" for what in ("type", "gzip.level", "lz4.level", "zstd.level")}
        assert {*others, *timestamps, *files} == acted_on

    def test_no_false_promises(self) -> None:
        """
        A value that Kafka would act on and this gateway cannot is refused with the reason.
        """
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


class CompressionTests(SynchronousTestCase):
    def test_codecs(self) -> None:
        """
        The codec of the log is that of compression.type, at its level; producer stands for none.
        """
        levels = {"compression.gzip.level": "2", "compression.lz4.level": "4", "compression.zstd.level": "-7"}
        found = {}
        for name in ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"):
            config = TopicConfig.of({"compression.type": name, **levels})
            found[name] = config.codec, config.compression_level
        assert found == {
            "producer": (None, None),
            "uncompressed": (Codec.NONE, None),
            "gzip": (Codec.GZIP, 2),
            "snappy": (Codec.SNAPPY, None),
            "lz4": (Codec.LZ4, 4),
            "zstd": (Codec.ZSTD, -7),
        }
        assert TopicConfig.of({"compression.type": "gzip"}).compression_level == -1


class TopicConfigTests(SynchronousTestCase):
    def test_nothing_set(self) -> None:
        """
        Kafka's defaults apply.
        """
        assert TopicConfig() == TopicConfig.of({})
        assert TopicConfig().max_message_bytes == 1048588
        assert TopicConfig().timestamp_after_max_ms == 3600000

    def test_set(self) -> None:
        """
        The value applies, and is stored as it was written.
        """
        config = TopicConfig.of(
            {
                "max.message.bytes": " 7 ",
                "message.timestamp.type": "LogAppendTime",
                "message.timestamp.before.max.ms": "5",
                "message.timestamp.after.max.ms": "6",
                "min.insync.replicas": "2",
                "cleanup.policy": "compact",
                "retention.ms": "7",
                "retention.bytes": "8",
                "file.delete.delay.ms": "9",
            }
        )
        assert config.max_message_bytes == 7
        assert config.timestamp_type == TimestampType.LOG_APPEND_TIME
        assert (config.timestamp_before_max_ms, config.timestamp_after_max_ms) == (5, 6)
        assert config.min_insync_replicas == 2
        assert (config.retention_ms, config.retention_bytes, config.file_delete_delay_ms) == (7, 8, 9)
        assert (config.deletes, TopicConfig().deletes) == (False, True)
        assert config.overrides["max.message.bytes"] == " 7 "

    def test_broker_defaults(self) -> None:
        """
        A broker's value applies if the topic has none, and is no override.
        """
        config = TopicConfig.of({}, {"max.message.bytes": "9"})
        assert config.max_message_bytes == 9
        assert dict(config.overrides) == {}
        assert TopicConfig.of({"max.message.bytes": "7"}, {"max.message.bytes": "9"}).max_message_bytes == 7

    def test_unknown(self) -> None:
        """
        An unknown name is refused, and the nearest name suggested.
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
