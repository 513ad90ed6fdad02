"""
What holds for topics where they set nothing: what the gateway was started with, and what was set for brokers since.
"""

from collections.abc import Iterator, Mapping

from kgateway.cluster.broker_config import defaults_at_run_time
from kgateway.cluster.config_resource import AllOverrides


class TopicDefaults(Mapping[str, str]):
    """
    By the name of a topic's config; it changes with what is set.
    """

    def __init__(self, node_id: int, started: Mapping[str, str]) -> None:
        self._node_id = node_id
        self._started = self._now = started
        self.have_moved = False  # whether others held before

    def follow(self, everything: AllOverrides) -> bool:
        """
        This is set from now on. Whether anything holds that did not hold before.
        """
        before, self._now = self._now, {**self._started, **defaults_at_run_time(self._node_id, everything)}
        moved = before != self._now
        self.have_moved |= moved
        return moved

    def __getitem__(self, name: str) -> str:
        return self._now[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)
