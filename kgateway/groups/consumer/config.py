"""
The config of one group: what is set for it, and the gateway's settings for the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from kgateway.cluster.config_resource import NO_OVERRIDES, AllOverrides, Overrides, group
from kgateway.cluster.group_config import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, SESSION_TIMEOUT, group_values
from kgateway.cluster.view import ClusterView
from kgateway.config.settings import Settings


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """
    Kafka's names are consumer.session.timeout.ms and so on.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000  # between two targets, so that a thousand members that join are one rebalance
    pattern_refresh_ms: int = 600_000  # then expressions are matched again: permissions may have changed
    max_size: int = (1 << 31) - 1
    classic_max_size: int = (1 << 31) - 1
    assignors: tuple[str, ...] = ("uniform", "range")  # the first one is the default
    migration_policy: str = "bidirectional"

    @classmethod
    def from_settings(cls, settings: Settings, overrides: Overrides = NO_OVERRIDES) -> Self:
        values = group_values(overrides, settings)
        return cls(
            session_timeout_ms=values[SESSION_TIMEOUT],
            heartbeat_interval_ms=values[HEARTBEAT_INTERVAL],
            assignment_interval_ms=values[ASSIGNMENT_INTERVAL],
            max_size=settings.group_consumer_max_size,
            classic_max_size=settings.group_max_size,
            assignors=tuple(dict.fromkeys(settings.group_consumer_assignors.split(","))),
            migration_policy=settings.group_consumer_migration_policy,
        )


class CurrentGroupConfig:
    """
    The config of a group as the cluster has it now. It is asked for at each heartbeat, and looked up only if the config
    of any resource has changed. It keeps no view: idle groups would keep all topics that ever existed.
    """

    __slots__ = ("_config", "_overrides", "_resource", "_seen", "_settings", "_view")

    def __init__(self, group_id: str, settings: Settings, view: Callable[[], ClusterView]) -> None:
        self._resource = group(group_id)
        self._settings = settings
        self._view = view
        self._seen: AllOverrides | None = None
        self._overrides = NO_OVERRIDES
        self._config = GroupConfig.from_settings(settings)

    def __call__(self) -> GroupConfig:
        seen = self._view().overrides
        if seen is not self._seen:
            self._seen = seen
            overrides = seen.get(self._resource, NO_OVERRIDES)
            if overrides is not self._overrides:
                self._overrides = overrides
                self._config = GroupConfig.from_settings(self._settings, overrides)
        return self._config
