"""
kafkajs as a group member.
"""

from tests.clients.groups.behaviour import Grouping
from tests.clients.groups.kinds import NODE


class TestNodeGroups(Grouping):
    kind = NODE
