"""
The resources that configs are set for, and the overrides of each as they were set.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    kind: ResourceType
    name: str


Overrides = Mapping[str, str]
Change = Callable[[Overrides], Overrides]
AllOverrides = Mapping[ConfigResource, Overrides]  # only of resources that have any

NO_OVERRIDES: Overrides = MappingProxyType({})


def topic(name: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, name)


def group(group_id: str) -> ConfigResource:
    """
    The resource of a group, whether the group exists or not.
    """
    return ConfigResource(ResourceType.GROUP, group_id)


def broker(name: int | str) -> ConfigResource:
    """
    The resource of a broker, by its id, or "" for all brokers.
    """
    return ConfigResource(ResourceType.BROKER, str(name))


def changed(everything: AllOverrides, resource: ConfigResource, change: Change) -> AllOverrides:
    """
    The overrides of all resources after a change of one, or the same object if it changes nothing.
    """
    before = everything.get(resource, NO_OVERRIDES)
    after = change(before)
    if after == before:
        return everything
    rest = {other: overrides for other, overrides in everything.items() if other != resource}
    return {**rest, resource: MappingProxyType(dict(after))} if after else rest
