"""
Configs as they are shown.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import ConfigType
from kgateway.cluster.described import Described, Source, broker_configs, topic_configs, topic_defaults
from kgateway.config.settings import Settings


def _topic(name: str, settings: Settings | None = None, **overrides: str) -> Described:
    config = TopicConfig.of({key.replace("_", "."): value for key, value in overrides.items()})
    return next(shown for shown in topic_configs(config, settings or Settings()) if shown.name == name)


def _broker(name: str, settings: Settings) -> Described:
    return next(shown for shown in broker_configs(settings) if shown.name == name)


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
        assert "retention.ms" not in topic_defaults(Settings())

    def test_may_be_changed(self) -> None:
        """
        A topic's configs may be set, a broker's may not.
        """
        assert not _topic("retention.ms").read_only
        assert _broker("num.partitions", Settings()).read_only


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

    def test_only_kafkas(self) -> None:
        """
        Settings that Kafka does not have are not shown.
        """
        assert [shown.name for shown in broker_configs(Settings()) if not shown.name] == []
        assert "replication_factor_policy" not in {shown.name for shown in broker_configs(Settings())}
