"""
Configs as they are shown.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.broker_config import LOG_DIRS, SHOWN_ONCE_SET, topic_defaults
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import AllOverrides, broker
from kgateway.cluster.config_rows import ConfigType
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.described import (
    Described,
    Known,
    Source,
    broker_configs,
    shared_configs,
    topic_configs,
)
from kgateway.config.settings import Settings

# Of all brokers, of this one, and of another one.
SET: AllOverrides = {
    broker(""): {"log.segment.bytes": "2000000", "log.roll.ms": "7000000"},
    broker(1): {"log.segment.bytes": " 3000000"},
    broker(2): {"log.segment.bytes": "4000000", "log.index.interval.bytes": "1"},
}


def _topic(name: str, settings: Settings | None = None, **overrides: str) -> Described:
    config = TopicConfig.of({key.replace("_", "."): value for key, value in overrides.items()})
    return next(shown for shown in topic_configs(config, Known(settings or Settings(), SET)) if shown.name == name)


def _broker(name: str, settings: Settings) -> Described:
    return next(shown for shown in broker_configs(Known(settings, SET)) if shown.name == name)


class TopicTests(SynchronousTestCase):
    def test_default(self) -> None:
        """
        What nobody set has its default, and the broker's config that stands for it.
        """
        shown = _topic("retention.ms")
        assert (shown.value, shown.source) == ("604800000", Source.DEFAULT)
        assert shown.synonyms == (("log.retention.ms", "604800000", Source.DEFAULT),)

    def test_alone(self) -> None:
        """
        A config of topics only has its default too, and nothing stands behind it.
        """
        shown = _topic("remote.storage.enable")
        assert (shown.value, shown.source, shown.synonyms) == ("false", Source.DEFAULT, ())

    def test_topic(self) -> None:
        """
        What the topic sets comes before the default, in the form that Kafka writes it.
        """
        shown = _topic("cleanup.policy", cleanup_policy=" compact , delete")
        assert (shown.value, shown.source) == ("compact,delete", Source.TOPIC)
        assert [synonym.name for synonym in shown.synonyms] == ["cleanup.policy", "log.cleanup.policy"]

    def test_what_cannot_change(self) -> None:
        """
        What is decided when a topic is made is shown as read-only, and nothing else.
        """
        assert [name for name in TOPIC_CONFIGS if _topic(name).read_only] == ["seaweedmq.format"]

    def test_broker(self) -> None:
        """
        What the gateway's settings say stands between topic and default.
        """
        settings = Settings(message_max_bytes=77)
        shown = _topic("max.message.bytes", settings)
        assert (shown.value, shown.source) == ("77", Source.BROKER)
        default = ("message.max.bytes", "1048588", Source.DEFAULT)
        assert (("message.max.bytes", "77", Source.BROKER), default) == shown.synonyms
        assert _topic("max.message.bytes", settings, max_message_bytes="5").value == "5"

    def test_defaults_by_settings(self) -> None:
        """
        Topics take from the gateway's settings what these decide.
        """
        assert topic_defaults(Settings(message_max_bytes=77))["max.message.bytes"] == "77"
        assert "retention.bytes" not in topic_defaults(Settings())

    def test_run_time(self) -> None:
        """
        What was set for the broker at run time comes before what was set for all, and both before the settings; what
        was set for others is nothing here.
        """
        settings = Settings(segment_bytes=5_000_000)
        assert _topic("segment.bytes", settings, segment_bytes="6000000").synonyms == (
            ("segment.bytes", "6000000", Source.TOPIC),
            ("log.segment.bytes", "3000000", Source.AT_RUN_TIME),
            ("log.segment.bytes", "2000000", Source.BROKERS_AT_RUN_TIME),
            ("log.segment.bytes", "5000000", Source.BROKER),
            ("log.segment.bytes", "1073741824", Source.DEFAULT),
        )
        assert _topic("segment.bytes", settings).value == "3000000"
        assert _topic("segment.ms").value == "7000000"
        assert _topic("index.interval.bytes").source is Source.DEFAULT

    def test_defaults_at_run_time(self) -> None:
        """
        Topics take that, too.
        """
        defaults = topic_defaults(Settings(segment_bytes=5_000_000), SET)
        assert (defaults["segment.bytes"], defaults["segment.ms"]) == ("3000000", "7000000")
        assert "index.interval.bytes" not in defaults


class BrokerTests(SynchronousTestCase):
    def test_default(self) -> None:
        """
        A setting that was not given is a default.
        """
        shown = _broker("auto.create.topics.enable", Settings())
        assert (shown.value, shown.source, shown.type) == ("true", Source.DEFAULT, ConfigType.BOOLEAN)

    def test_given(self) -> None:
        """
        One that was given is the broker's own, with the default behind it.
        """
        shown = _broker("num.partitions", Settings(num_partitions=9))
        assert (shown.value, shown.source, shown.type) == ("9", Source.BROKER, ConfigType.INT)
        assert len(shown.synonyms) == 2

    def test_may_be_changed(self) -> None:
        """
        What topics follow may be set for a broker at run time, settings may not.
        """
        names = {shown.name for shown in broker_configs(Known(Settings(), SET)) if not shown.read_only}
        assert names == {row.synonym for row in TOPIC_CONFIGS.values() if row.synonym} - {"seaweedmq.format"}

    def test_run_time(self) -> None:
        """
        What was set at run time holds for the broker; without a name, what was set for all is shown and no more.
        """
        shown = _broker("log.segment.bytes", Settings())
        assert (shown.value, shown.source, len(shown.synonyms)) == ("3000000", Source.AT_RUN_TIME, 3)
        told = {shown.name: (shown.value, shown.source) for shown in shared_configs(SET)}
        source = Source.BROKERS_AT_RUN_TIME
        assert told == {"log.segment.bytes": ("2000000", source), "log.roll.ms": ("7000000", source)}

    def test_throttles(self) -> None:
        """
        Throttles are shown where they were set, with no default behind them, and else not.
        """
        rate = "leader.replication.throttled.rate"
        everything: AllOverrides = {broker(1): {rate: " 1000"}, broker(""): {rate: "5"}}
        [shown] = [one for one in broker_configs(Known(Settings(), everything)) if one.name == rate]
        assert shown.synonyms == ((rate, "1000", Source.AT_RUN_TIME), (rate, "5", Source.BROKERS_AT_RUN_TIME))
        assert (shown.type, shown.read_only) == (ConfigType.LONG, False)
        assert not SHOWN_ONCE_SET & {one.name for one in broker_configs(Known(Settings(), SET))}

    def test_itself(self) -> None:
        """
        Where partitions are is told by the broker itself.
        """
        [shown] = [one for one in broker_configs(Known(Settings(), {}, {LOG_DIRS: "/data"})) if one.name == LOG_DIRS]
        assert (shown.value, shown.source, shown.read_only) == ("/data", Source.BROKER, True)

    def test_only_kafkas(self) -> None:
        """
        Settings that Kafka does not have are not shown.
        """
        assert [shown.name for shown in broker_configs(Known(Settings(), SET)) if not shown.name] == []
        assert "replication_factor_policy" not in {shown.name for shown in broker_configs(Known(Settings(), SET))}
