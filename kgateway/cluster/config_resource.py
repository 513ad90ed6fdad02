"""
What configs are set for: resources of several kinds, and the overrides of each, as they were set.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple


class ConfigKind(IntEnum):
    """
    A kind of resource, by Kafka's numbers.
    """

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """
    One thing that can be configured.
    """

    kind: ConfigKind
    name: str


Overrides = Mapping[str, str]
Change = Callable[[Overrides], Overrides]
AllOverrides = Mapping[ConfigResource, Overrides]  # only of resources that have any

NO_OVERRIDES: Overrides = MappingProxyType({})


def topic(name: str) -> ConfigResource:
    """
    The resource that a topic is.
    """
    return ConfigResource(ConfigKind.TOPIC, name)


def group(group_id: str) -> ConfigResource:
    """
    The resource that a group is, be it there or not.
    """
    return ConfigResource(ConfigKind.GROUP, group_id)


def broker(name: int | str) -> ConfigResource:
    """
    The resource that a broker is, by its id; "" is all brokers.
    """
    return ConfigResource(ConfigKind.BROKER, str(name))


def changed(everything: AllOverrides, resource: ConfigResource, change: Change) -> AllOverrides:
    """
    What is set once this change of one resource is made; the very same where it changes nothing.
    """
    before = everything.get(resource, NO_OVERRIDES)
    after = change(before)
    if after == before:
        return everything
    rest = {other: overrides for other, overrides in everything.items() if other != resource}
    return {**rest, resource: MappingProxyType(dict(after))} if after else rest
