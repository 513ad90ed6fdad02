"""
What can be set for one group.
"""

from dataclasses import dataclass
from typing import Self

from kgateway.config.settings import Settings


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """
    The config of a consumer group; Kafka's names are consumer.session.timeout.ms and so on.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000  # between two targets, so that a thousand members that join are one rebalance
    pattern_refresh_ms: int = 600_000  # after how long expressions are matched anew, for permissions may have changed
    max_size: int = (1 << 31) - 1
    classic_max_size: int = (1 << 31) - 1
    assignors: tuple[str, ...] = ("uniform", "range")  # the first one is the default
    migration_policy: str = "bidirectional"

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """
        The one of groups for which nothing is set.
        """
        return cls(
            session_timeout_ms=settings.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
            max_size=settings.group_consumer_max_size,
            classic_max_size=settings.group_max_size,
            assignors=tuple(dict.fromkeys(settings.group_consumer_assignors.split(","))),
            migration_policy=settings.group_consumer_migration_policy,
        )
