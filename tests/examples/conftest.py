"""
The place of the examples.
"""

from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.examples.acme", "tests.examples.client")


@pytest.fixture(scope="session")
def examples() -> Path:
    return Path(__file__).parents[2] / "examples"
