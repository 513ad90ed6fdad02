"""
ListGroups.
"""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from handlers.list_groups import list_groups
from kgateway.groups.groups import Groups
from kgateway.messages.list_groups import ListGroupsRequest
from kgateway.security.permissions import Operation, Resource
from tests.groups.beginning import empty_consumer
from tests.handlers.grouped import commit, with_member
from tests.serving import Denying, Serving

VERSIONS = range(6)


class ListGroupsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        commit(self.serving, "simple", "orders")
        with_member(self.serving, "busy")
        empty_consumer(self.serving.parts.service(Groups), "new")

    def told(self, version: int = 5, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[Any]:
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        response = self.successResultOf(self.serving.ask(list_groups, request, version))
        assert response.error_code == 0
        groups: list[Any] = sorted(response.groups, key=lambda group: group.group_id)
        return groups

    def names(self, *states: str, types: tuple[str, ...] = ()) -> list[str]:
        return [group.group_id for group in self.told(states=states, types=types)]

    def test_all(self) -> None:
        """
        Each version tells all groups, and more of them the newer it is.
        """
        assert list_groups.versions == VERSIONS
        for version in VERSIONS:
            told = [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in self.told(version)]
            states = ("Stable", "Empty", "Empty") if version >= 4 else ("", "", "")
            types = ("classic", "consumer", "classic") if version >= 5 else ("", "", "")
            assert told == [
                ("busy", "consumer", states[0], types[0]),
                ("new", "consumer", states[1], types[1]),
                ("simple", "", states[2], types[2]),
            ], version

    def test_groups_that_nobody_asked_for(self) -> None:
        """
        Groups of an earlier coordinator are told, also when this is the first that is asked.
        """
        self.serving.parts.stop()
        self.serving.parts.services.clear()
        assert self.names() == ["busy", "new", "simple"]

    def test_states(self) -> None:
        """
        States are compared as Kafka does, whatever their case, and several are alternatives.
        """
        assert self.names("stable") == ["busy"]
        assert self.names(" EMPTY ") == ["new", "simple"]
        assert self.names("Empty", "STABLE") == ["busy", "new", "simple"]
        assert self.names("Dead") == self.names("nonsense") == []

    def test_types(self) -> None:
        """
        So are types, and both filters hold.
        """
        assert self.names(types=("Classic",)) == ["busy", "simple"]
        assert self.names(types=("CONSUMER",)) == ["new"]
        assert self.names(types=("share", "nonsense")) == []
        assert self.names("Empty", types=("classic",)) == ["simple"]

    def test_permission(self) -> None:
        """
        Who may not describe the cluster sees the groups that it may describe.
        """

        def secret(operation: Operation, resource: Resource, name: str) -> bool:
            return resource is Resource.CLUSTER or name == "busy"

        authorizer = self.serving.parts.authorizer = Denying(secret)
        assert self.names() == ["new", "simple"]
        assert {asked[0] for asked in authorizer.asked} == {Operation.DESCRIBE}
        authorizer = self.serving.parts.authorizer = Denying(lambda _, resource, __: resource is Resource.GROUP)
        assert self.names() == ["busy", "new", "simple"]
