"""
Configs in descriptions.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.broker_config import LOG_DIRS, SHOWN_ONCE_SET, topic_defaults
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_description import (
    ConfigEntry,
    ConfigSource,
    ConfigSources,
    broker_configs,
    shared_configs,
    topic_configs,
)
from kgateway.cluster.config_resource import AllOverrides, broker
from kgateway.cluster.config_rows import ConfigType
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.config.settings import Settings

# Set for all brokers, for this one, and for another one.
SET: AllOverrides = {
    broker(""): {"log.segment.bytes": "2000000", "log.roll.ms": "7000000"},
    broker(1): {"log.segment.bytes": " 3000000"},
    broker(2): {"log.segment.bytes": "4000000", "log.index.interval.bytes": "1"},
}


def _topic(name: str, settings: Settings | None = None, **overrides: str) -> ConfigEntry:
    config = TopicConfig.of({key.replace("_", "."): value for key, value in overrides.items()})
    return next(
        shown for shown in topic_configs(config, ConfigSources(settings or Settings(), SET)) if shown.name == name
    )


def _broker(name: str, settings: Settings) -> ConfigEntry:
    return next(shown for shown in broker_configs(ConfigSources(settings, SET)) if shown.name == name)


class TopicTests(SynchronousTestCase):
    def test_default(self) -> None:
        """
        An unset config has its default, and the broker's config behind it.
        """
        shown = _topic("retention.ms")
        assert (shown.value, shown.source) == ("604800000", ConfigSource.DEFAULT)
        assert shown.synonyms == (("log.retention.ms", "604800000", ConfigSource.DEFAULT),)

    def test_alone(self) -> None:
        """
        A config of topics only has its default too, and nothing behind it.
        """
        shown = _topic("remote.storage.enable")
        assert (shown.value, shown.source, shown.synonyms) == ("false", ConfigSource.DEFAULT, ())

    def test_topic(self) -> None:
        """
        The topic's value precedes the default, in Kafka's format.
        """
        shown = _topic("cleanup.policy", cleanup_policy=" compact , delete")
        assert (shown.value, shown.source) == ("compact,delete", ConfigSource.TOPIC)
        assert [synonym.name for synonym in shown.synonyms] == ["cleanup.policy", "log.cleanup.policy"]

    def test_read_only_configs(self) -> None:
        """
        Exactly the configs that are fixed at creation are read-only.
        """
        assert [name for name in TOPIC_CONFIGS if _topic(name).read_only] == ["seaweedmq.format"]

    def test_broker(self) -> None:
        """
        The gateway's setting ranks between topic and default.
        """
        settings = Settings(message_max_bytes=77)
        shown = _topic("max.message.bytes", settings)
        assert (shown.value, shown.source) == ("77", ConfigSource.BROKER)
        default = ("message.max.bytes", "1048588", ConfigSource.DEFAULT)
        assert (("message.max.bytes", "77", ConfigSource.BROKER), default) == shown.synonyms
        assert _topic("max.message.bytes", settings, max_message_bytes="5").value == "5"

    def test_defaults_by_settings(self) -> None:
        """
        The gateway's settings are the defaults of topics where they apply.
        """
        assert topic_defaults(Settings(message_max_bytes=77))["max.message.bytes"] == "77"
        assert "retention.bytes" not in topic_defaults(Settings())

    def test_run_time(self) -> None:
        """
        The broker's own run-time value precedes the one for all brokers, and both precede the settings; values for
        other brokers do not count.
        """
        settings = Settings(segment_bytes=5_000_000)
        assert _topic("segment.bytes", settings, segment_bytes="6000000").synonyms == (
            ("segment.bytes", "6000000", ConfigSource.TOPIC),
            ("log.segment.bytes", "3000000", ConfigSource.AT_RUN_TIME),
            ("log.segment.bytes", "2000000", ConfigSource.BROKERS_AT_RUN_TIME),
            ("log.segment.bytes", "5000000", ConfigSource.BROKER),
            ("log.segment.bytes", "1073741824", ConfigSource.DEFAULT),
        )
        assert _topic("segment.bytes", settings).value == "3000000"
        assert _topic("segment.ms").value == "7000000"
        assert _topic("index.interval.bytes").source is ConfigSource.DEFAULT

    def test_defaults_at_run_time(self) -> None:
        """
        Run-time values of the broker are defaults of topics.
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
        assert (shown.value, shown.source, shown.type) == ("true", ConfigSource.DEFAULT, ConfigType.BOOLEAN)

    def test_given(self) -> None:
        """
        A given setting is the broker's own, with the default behind it.
        """
        shown = _broker("num.partitions", Settings(num_partitions=9))
        assert (shown.value, shown.source, shown.type) == ("9", ConfigSource.BROKER, ConfigType.INT)
        assert len(shown.synonyms) == 2

    def test_may_be_changed(self) -> None:
        """
        Configs that topics inherit may be set for a broker at run time, other settings may not.
        """
        names = {shown.name for shown in broker_configs(ConfigSources(Settings(), SET)) if not shown.read_only}
        assert names == {row.synonym for row in TOPIC_CONFIGS.values() if row.synonym} - {"seaweedmq.format"}

    def test_run_time(self) -> None:
        """
        Run-time values apply to the broker; without a name, only those for all brokers are shown.
        """
        shown = _broker("log.segment.bytes", Settings())
        assert (shown.value, shown.source, len(shown.synonyms)) == ("3000000", ConfigSource.AT_RUN_TIME, 3)
        told = {shown.name: (shown.value, shown.source) for shown in shared_configs(SET)}
        source = ConfigSource.BROKERS_AT_RUN_TIME
        assert told == {"log.segment.bytes": ("2000000", source), "log.roll.ms": ("7000000", source)}

    def test_throttles(self) -> None:
        """
        Throttles are shown only where they are set, with no default behind them.
        """
        rate = "leader.replication.throttled.rate"
        everything: AllOverrides = {broker(1): {rate: " 1000"}, broker(""): {rate: "5"}}
        [shown] = [one for one in broker_configs(ConfigSources(Settings(), everything)) if one.name == rate]
        assert shown.synonyms == (
            (rate, "1000", ConfigSource.AT_RUN_TIME),
            (rate, "5", ConfigSource.BROKERS_AT_RUN_TIME),
        )
        assert (shown.type, shown.read_only) == (ConfigType.LONG, False)
        assert not SHOWN_ONCE_SET & {one.name for one in broker_configs(ConfigSources(Settings(), SET))}

    def test_the_log_directory_is_set_with_the_broker(self) -> None:
        """
        The value is the folder; its source is that of the setting `broker`.
        """
        for settings, source in (
            (Settings(), ConfigSource.DEFAULT),
            (Settings(broker="log:/data"), ConfigSource.BROKER),
        ):
            [shown] = [one for one in broker_configs(ConfigSources(settings, {}, "/data")) if one.name == LOG_DIRS]
            assert (shown.value, shown.source, shown.read_only) == ("/data", source, True)
            assert [synonym.source for synonym in shown.synonyms] == [source]

    def test_settings_unknown_to_kafka_are_not_shown(self) -> None:
        assert [shown.name for shown in broker_configs(ConfigSources(Settings(), SET)) if not shown.name] == []
        assert "replication_factor_policy" not in {
            shown.name for shown in broker_configs(ConfigSources(Settings(), SET))
        }
