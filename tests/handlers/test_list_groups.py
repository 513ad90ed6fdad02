"""
ListGroups.
"""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.list_groups import list_groups
from kgateway.messages.list_groups import ListGroupsRequest
from kgateway.security.permissions import Operation, Resource
from tests.groups.empty_groups import empty_consumer
from tests.handlers.group_fixtures import commit, with_member
from tests.serving import Denying, Serving

VERSIONS = range(6)


class ListGroupsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        commit(self.serving, "simple", "orders")
        with_member(self.serving, "busy")
        empty_consumer(self.serving.parts.service(GroupCoordinator), "new")

    def told(self, version: int = 5, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> list[Any]:
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        response = self.successResultOf(self.serving.ask(list_groups, request, version))
        assert response.error_code == 0
        groups: list[Any] = sorted(response.groups, key=lambda group: group.group_id)
        return groups

    def names(self, *states: str, types: tuple[str, ...] = ()) -> list[str]:
        return [group.group_id for group in self.told(states=states, types=types)]

    def test_all_groups_are_listed(self) -> None:
        """
        Newer versions have more fields.
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

    def test_groups_of_an_earlier_coordinator_are_listed(self) -> None:
        """
        The request may be the first one.
        """
        self.serving.parts.stop()
        self.serving.parts.services.clear()
        assert self.names() == ["busy", "new", "simple"]

    def test_groups_are_filtered_by_state(self) -> None:
        """
        As in Kafka case does not matter, and several states are alternatives.
        """
        assert self.names("stable") == ["busy"]
        assert self.names(" EMPTY ") == ["new", "simple"]
        assert self.names("Empty", "STABLE") == ["busy", "new", "simple"]
        assert self.names("Dead") == self.names("nonsense") == []

    def test_groups_are_filtered_by_type(self) -> None:
        """
        Both filters must match.
        """
        assert self.names(types=("Classic",)) == ["busy", "simple"]
        assert self.names(types=("CONSUMER",)) == ["new"]
        assert self.names(types=("share", "nonsense")) == []
        assert self.names("Empty", types=("classic",)) == ["simple"]

    def test_permitted_groups_are_listed(self) -> None:
        """
        A client that may not describe the cluster sees the groups that it may describe.
        """

        def secret(operation: Operation, resource: Resource, name: str) -> bool:
            return resource is Resource.CLUSTER or name == "busy"

        authorizer = self.serving.parts.authorizer = Denying(secret)
        assert self.names() == ["new", "simple"]
        assert {asked[0] for asked in authorizer.asked} == {Operation.DESCRIBE}
        authorizer = self.serving.parts.authorizer = Denying(lambda _, resource, __: resource is Resource.GROUP)
        assert self.names() == ["busy", "new", "simple"]
