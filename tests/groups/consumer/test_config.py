"""
The config of one consumer group.
"""

from weakref import ref

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config_resource import AllOverrides, group
from kgateway.cluster.view import ClusterView, Node
from kgateway.config.settings import Settings
from kgateway.groups.consumer.config import CurrentGroupConfig, GroupConfig
from tests.groups.consumer.model import Watched

SESSION = "consumer.session.timeout.ms"


class ConfigTests(SynchronousTestCase):
    def test_settings_are_the_default(self) -> None:
        settings = Settings(
            group_consumer_session_timeout_ms=1,
            group_consumer_heartbeat_interval_ms=2,
            group_consumer_assignment_interval_ms=3,
            group_consumer_max_size=4,
            group_max_size=5,
            group_consumer_assignors="range,uniform,range",
            group_consumer_migration_policy="upgrade",
        )
        config = GroupConfig.from_settings(settings)
        assert (config.session_timeout_ms, config.heartbeat_interval_ms, config.assignment_interval_ms) == (1, 2, 3)
        assert (config.max_size, config.classic_max_size) == (4, 5)
        assert (config.assignors, config.migration_policy) == (("range", "uniform"), "upgrade")
        assert GroupConfig.from_settings(Settings()) == GroupConfig()

    def test_group_configs_override_the_settings(self) -> None:
        overrides = {
            SESSION: "50000",
            "consumer.heartbeat.interval.ms": "6000",
            "consumer.assignment.interval.ms": "7000",
        }
        config = GroupConfig.from_settings(Settings(), overrides)
        told = (config.session_timeout_ms, config.heartbeat_interval_ms, config.assignment_interval_ms)
        assert told == (50_000, 6_000, 7_000)


class CurrentGroupConfigTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.view = ClusterView("cluster", (Node(1),), 1)
        self.config = CurrentGroupConfig("g", Settings(), lambda: self.view)

    def set(self, overrides: AllOverrides) -> None:
        self.view = self.view.with_overrides(overrides)

    def test_the_view_is_followed(self) -> None:
        """
        A config in the cluster's view applies as long as it is there.
        """
        assert self.config().session_timeout_ms == 45_000
        for timeout_ms in (50_000, 55_000):
            self.set({group("g"): {SESSION: str(timeout_ms)}, group("h"): {SESSION: "60000"}})
            assert self.config().session_timeout_ms == timeout_ms
        self.set({group("h"): {SESSION: "60000"}})
        assert self.config().session_timeout_ms == 45_000

    def test_an_idle_group_keeps_no_old_view(self) -> None:
        """
        A reference to it would keep deleted topics alive.
        """
        self.view = Watched("cluster", (Node(1),), 1)
        before = ref(self.view)
        self.config()
        self.view = ClusterView("cluster", (Node(1),), 1)
        assert before() is None

    def test_a_config_may_precede_its_group(self) -> None:
        self.set({group("g"): {SESSION: "50000"}})
        assert CurrentGroupConfig("g", Settings(), lambda: self.view)().session_timeout_ms == 50_000

    def test_unrelated_views_make_no_new_config(self) -> None:
        self.set({group("g"): {SESSION: "50000"}})
        config = self.config()
        self.set({**self.view.overrides, group("h"): {SESSION: "60000"}})
        assert self.config() is config
