"""
What users are told of differences from Kafka is what the tests beside Kafka find.
"""

from pathlib import Path

import pytest

from tests.clients.admin import differences

PAGE = " ".join((Path(__file__).parents[1] / "docs" / "compatibility.md").read_text().split())
REASONS = {name: reason for name, reason in vars(differences).items() if name.isupper()}
TESTS = "".join(path.read_text() for path in Path(differences.__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("name", REASONS)
def test_users_are_told(name: str) -> None:
    """
    docs/compatibility.md has the reason, word for word.
    """
    assert REASONS[name].lower() in PAGE.lower()


@pytest.mark.parametrize("name", REASONS)
def test_it_is_a_reason(name: str) -> None:
    """
    A test beside Kafka names it.
    """
    assert f"why.{name}" in TESTS
