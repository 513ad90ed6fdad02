"""
Kafka and a gateway for all tests of this folder.
"""

from collections.abc import Iterator

import pytest

from tests.clients.admin.sides import Side, both

collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    with both(tmp_path_factory.mktemp("sides")) as found:
        yield found
