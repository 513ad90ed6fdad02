"""
franz-go, driven by the program in `go/`.
"""

from collections.abc import Iterator

import pytest

from tests.clients.behaviour import Behaviour
from tests.clients.client import Connect
from tests.clients.groups.behaviour import StaticGrouping
from tests.clients.groups.kinds import GO
from tests.clients.program import Program


@pytest.fixture(scope="module")
def connect() -> Iterator[Connect]:
    """
    A client of the program, which the environment has built.
    """
    with Program(["franz-go-client"]) as program:
        yield program.connect


class TestGo(Behaviour):
    pass


class TestGoGroups(StaticGrouping):
    kind = GO
