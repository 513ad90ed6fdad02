"""
The documented differences from Kafka are those that the tests beside Kafka find.
"""

from pathlib import Path

import pytest

from tests.clients.admin import differences

PAGE = " ".join((Path(__file__).parents[1] / "docs" / "compatibility.md").read_text().split())
REASONS = {name: reason for name, reason in vars(differences).items() if name.isupper()}
TESTS = "".join(path.read_text() for path in Path(differences.__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("name", REASONS)
def test_users_are_informed(name: str) -> None:
    """
    docs/compatibility.md has the reason, word for word.
    """
    assert REASONS[name].lower() in PAGE.lower()


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_is_used(name: str) -> None:
    """
    A test beside Kafka names it.
    """
    assert f"why.{name}" in TESTS
