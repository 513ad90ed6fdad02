"""
How many examples Hypothesis tries: ten a property by default, five hundred with `--hypothesis-profile=deep`, or as many
as DEEP_EXAMPLES says. And what tests leave behind: a machine whose power went, and logs that nobody has closed.
"""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from twisted.logger import globalLogBeginner

pytest.register_assert_rewrite("tests.broker.behaviour")  # what is no test module would fail without saying how

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("default", max_examples=10, deadline=None, suppress_health_check=_SLOW)
_DEEP = int(os.environ.get("DEEP_EXAMPLES", "500"))
settings.register_profile("deep", max_examples=_DEEP, deadline=None, suppress_health_check=_SLOW)
settings.load_profile("default")


_MANY_FILES = 256  # of the 1,024 that `select` can tell of
_KEPT_FILES = pytest.StashKey[int]()  # those that stay open whatever is looked for


def pytest_configure() -> None:
    """
    Until logging begins Twisted keeps all events, with what they tell of: logs of tests that are over.
    """
    globalLogBeginner.beginLoggingTo([], discardBuffer=True, redirectStandardIO=False)


def pytest_collection_finish() -> None:
    """
    Modules and tests stay to the end: looking through them each time that cycles are looked for takes half a second.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """
    A log that a test leaves open is closed when Python finds it in its cycle, which it may do very seldom.
    """
    kept = item.config.stash.get(_KEPT_FILES, 0)
    if _open_files() > kept + _MANY_FILES:
        gc.collect()
        item.config.stash[_KEPT_FILES] = _open_files()


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def power_goes() -> Iterator[None]:
    """
    What was under way when it went fails, and nobody hears of it. Were that found in a later test, it would be blamed.
    """
    yield
    gc.collect()
