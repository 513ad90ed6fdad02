"""
Says with which Pythons the wheel was tried.
"""

import pytest

from tests.packaging.pythons import told

PLACES: pytest.StashKey[dict[str, str | None]] = pytest.StashKey()


@pytest.fixture(scope="session")
def places(pytestconfig: pytest.Config) -> dict[str, str | None]:
    """
    The Pythons that tests have looked for, for the summary.
    """
    return pytestconfig.stash.setdefault(PLACES, {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if places := config.stash.get(PLACES, {}):
        terminalreporter.section("the wheel")
        for line in told(places):
            terminalreporter.line(line)
