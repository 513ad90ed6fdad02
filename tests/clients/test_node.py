"""
kafkajs, as member of a group.
"""

from tests.clients.groups.behaviour import Grouping
from tests.clients.groups.kinds import NODE


class TestNodeGroups(Grouping):
    """
    What members of every client do.
    """

    kind = NODE
