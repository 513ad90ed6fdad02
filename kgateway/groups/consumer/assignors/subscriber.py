"""
What an assignor is told of a member, and what an assignor is.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kgateway.groups.consumer.assignment import Assignment
from kgateway.wire.uuids import Uuid


class Subscriber(NamedTuple):
    """
    A member: the topics it subscribes to, all of them existing, and what it was to read until now.
    """

    topics: frozenset[Uuid]
    current: Assignment
    instance_id: str | None = None


# Takes the members by id and the partition counts of topics; gives each partition of each topic to one subscriber.
Assignor = Callable[[Mapping[str, Subscriber], Mapping[Uuid, int]], dict[str, Assignment]]
